"""Count the commits of this process, name the kind of each, and kill the process at one of them."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import pytest

from pager.store.database import Database
from tests.crash.children import die

EVERY = pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["each kind", "every commit"]
)
# A COMMIT, or a statement outside of a transaction that writes: both are on disk when they have returned.
_COMMITS = re.compile(r"\s*(INSERT|REPLACE|UPDATE|DELETE|VACUUM|PRAGMA (journal_mode|wal_checkpoint))", re.IGNORECASE)
_WRITE = re.compile(r"\s*(INSERT|REPLACE|UPDATE|DELETE)(?: OR \w+)?(?: INTO| FROM)?\s+([\w.]+)", re.IGNORECASE)
_COMMAND_ID = re.compile(r"(\d{20})-\d+-(\d{6})")


class Commit(NamedTuple):
    kind: str  # which tables it writes, and how
    before: str  # the digest of what another process sees before it


class CommitPoints:
    """Kills this process before commit number `deadly` (1 is the first, 0 kills never), or right after it.

    "After" is the next statement, the return of `transaction()` or the next call of `returned`, whichever comes first.
    No code of the memory that could tell anybody runs in between. With a `directory`, `commits` gets the digest of
    its database at every commit.
    """

    def __init__(self, deadly: int, *, after: bool, directory: Path | None = None) -> None:
        self.count = 0
        self.commits: list[Commit] = []
        self._deadly = deadly
        self._after = after
        self._directory = directory if not deadly else None
        self._writes: set[str] = set()
        connect, transaction = Database._connect, Database.transaction

        def watched(database: Database) -> sqlite3.Connection:
            connection = connect(database)
            connection.set_trace_callback(lambda sql: self._statement(sql, connection.in_transaction))
            return connection

        @contextmanager
        def returning(database: Database, *, durable: bool = True) -> Iterator[None]:
            outermost = not database.in_transaction
            with transaction(database, durable=durable):
                yield
            if outermost:
                self.returned()

        Database._connect = watched  # type: ignore[method-assign]
        Database.transaction = returning  # type: ignore[method-assign]

    def watch(self, database: Database) -> None:
        """Watch a database that was opened before."""
        database.trace(lambda sql: self._statement(sql, database.in_transaction))

    def returned(self) -> None:
        """Note that whatever was committed has returned to its caller."""
        if self._after and self.count == self._deadly:
            die()

    def _statement(self, sql: str, in_transaction: bool) -> None:
        if sql.startswith("--"):
            return  # a part of the statement before: the full-text tables write theirs inside of the COMMIT
        if self.count:
            self.returned()
        if write := _WRITE.match(sql):
            self._writes.add(f"{write[1].lower()} {write[2]}")
        if sql.strip(" ;") != "COMMIT" and (in_transaction or not _COMMITS.match(sql)):
            return
        self.count += 1
        if not self._deadly:
            before = digest(self._directory) if self._directory else ""
            self.commits.append(Commit(", ".join(sorted(self._writes)) or sql.strip(" ;"), before))
        self._writes.clear()
        if not self._after and self.count == self._deadly:
            die()


def digest(directory: Path) -> str:
    with closing(sqlite3.connect(directory / "pager.db")) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        rows = {name: [tuple(row) for row in db.execute(f"SELECT * FROM {name}")] for name in names}
    return blake2b(_COMMAND_ID.sub(r"\1-pid-\2", repr(rows)).encode(), digest_size=12).hexdigest()


def one_of_each(kinds: Sequence[str], *, every: bool) -> Iterable[int]:
    """Return the positions, from 1 on, of the first of each kind, or all of them."""
    first = {kind: number for number, kind in reversed(list(enumerate(kinds, start=1)))}
    return range(1, len(kinds) + 1) if every else sorted(first.values())
