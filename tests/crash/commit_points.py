"""Every moment at which this process commits something, counted; and the death at one of them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from pager.store.database import Database
from tests.crash.children import die

# A COMMIT, or a statement outside of a transaction that writes: both are on disk when they have returned.
_WRITES = re.compile(r"\s*(INSERT|REPLACE|UPDATE|DELETE|VACUUM|PRAGMA (journal_mode|wal_checkpoint))", re.IGNORECASE)


class CommitPoints:
    """Dies before the commit number `deadly`; or after it, as soon as the process does anything else with the store.

    "After" comes with the next statement, the return of `transaction()` or what the test calls `returned`, whichever is
    first: nothing of the memory's own code runs in between that could tell anybody.
    """

    def __init__(self, deadly: int, *, after: bool) -> None:
        self.count = 0
        self._deadly = deadly
        self._after = after
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
        """One that was opened before."""
        database.trace(lambda sql: self._statement(sql, database.in_transaction))

    def returned(self) -> None:
        """Whatever was committed is done."""
        if self._after and self.count == self._deadly:
            die()

    def _statement(self, sql: str, in_transaction: bool) -> None:
        if sql.startswith("--"):
            return  # a part of the statement before: the full-text tables write theirs inside of the COMMIT
        if self.count:
            self.returned()
        if sql.strip(" ;") == "COMMIT" or (not in_transaction and _WRITES.match(sql)):
            self.count += 1
            if not self._after and self.count == self._deadly:
                die()
