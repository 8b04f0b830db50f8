"""The one connection to `pager.db`: opening, transactions, and errors that say what to do.

`transaction()` nests: the outermost is a real transaction, inner ones are savepoints. What has to happen after
the commit (and only then) is handed to `after_commit`.
"""

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from pager.errors import NewerFormatError, NoAgentError, OlderFormatError, PagerError, RejectedError, StorageError
from pager.safety import foreign_files, forks
from pager.safety.sources import names_one, stored_name
from pager.store.schema import APPLICATION_ID, MIGRATIONS, VERSION
from pager.store.shape import SCHEMA, difference, shape_of

PAGE_BYTES = 2048
LOG_HEADER_BYTES = 24  # of each page in the log
LOG_PAGES = 512
Row = sqlite3.Row
Values = Sequence[Any] | Mapping[str, Any]


class _Explained:
    """SQLite's errors leave the block inside as a StorageError. A class: every statement runs in such a block."""

    def __init__(self, explain: Callable[[sqlite3.Error], str]) -> None:
        self._explain = explain

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.InterfaceError | sqlite3.ProgrammingError) and "binding parameter" in str(error):
            raise RejectedError(f"a value has a type that cannot be stored ({error}); use text or a number.") from error
        if isinstance(error, UnicodeDecodeError):
            error = sqlite3.DatabaseError(f"SQLITE_CORRUPT: {error}")
        if isinstance(error, sqlite3.Error):
            raise StorageError(self._explain(error)) from error


def _migrate_to(connection: sqlite3.Connection, number: int, scripts: Sequence[str]) -> None:
    """Run the scripts to a version in one transaction: a kill leaves what was there before, or all of it."""
    connection.create_function("text_digest", 1, text_digest, deterministic=True)
    mark = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number}"
    connection.executescript(f"BEGIN IMMEDIATE; {'; '.join(scripts)}; {mark}; COMMIT;")


@cache
def schema_of(migrations: tuple[str, ...]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return what SQLite stores of the schema to which these lead: (type, name) -> its table and its SQL."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _migrate_to(connection, len(migrations), migrations)
        return {(row[0], row[1]): shape_of(row) for row in connection.execute(SCHEMA)}


class CommitLog(Protocol):
    """Where each commit has to be before it is acknowledged: `pager.log`. The file is a cache of it."""

    def attach(self, database: "Database") -> None:
        """Begin with a database that was just opened, and holds what the log holds."""
        ...

    def sync(self) -> None:
        """Return when everything that was committed is in the log. Raises AgentLostError."""
        ...

    @property
    def is_sure(self) -> bool:
        """Return False if another process may own the agent by now."""
        ...

    def settle(self) -> None:
        """Return when nothing reads the file in the background."""
        ...

    def detach(self) -> None:
        """Read the file no more: it is about to be closed, and so to change."""
        ...

    def forget_past(self) -> list[str]:
        """Return when nobody has an earlier state: the processes that have died with one. Raises StorageError."""
        ...


class _Refusing:
    """In the place of a connection that must not be used any more: a forked child's, or that of a lost agent."""

    def __init__(self, error: PagerError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


def text_digest(text: str) -> int:
    """Return a number that equal texts share, and hardly any others."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def names_stored(names: Collection[str]) -> str:
    """Return untrusted sources as a column holds them. Nearly always there are none."""
    return json.dumps(sorted(names), ensure_ascii=False) if names else "[]"


def stored_names(column: str) -> frozenset[str]:
    """Return the untrusted sources in a column."""
    return frozenset() if column == "[]" else frozenset(map(stored_name, json.loads(column)))


def sources_name(sources: str, wanted: str) -> bool:
    """Return True if stored sources of a fact or a step name this one, or what it stands behind."""
    if wanted.partition(":")[0] not in sources:
        return False
    rows: list[Any] = json.loads(sources)  # names, or a dict for each source of a fact
    named = [[row] if isinstance(row, str) else [row["source"], *row.get("via", ())] for row in rows]
    return any(names_one(name, wanted) for names in named for name in names)


def is_damage(error: BaseException | None) -> bool:
    """Return True if SQLite says by this error that the file is not what was written."""
    lost = ("no such table", "no such column", "already exists", "duplicate column", "SQLITE_CORRUPT", "to UTF-8")
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or any(words in str(error) for words in lost)


class Database:
    """A SQLite file in WAL mode with full synchronisation, or the same read-only."""

    def __init__(self, path: Path, *, read_only: bool = False, log: CommitLog | None = None) -> None:
        self.path = path
        self._log = log
        self.read_only = read_only
        self._explained = _Explained(self._explain)
        self._depth = 0
        self._after: list[Callable[[], object]] = []
        self._on_rollback: list[Callable[[], None]] = []
        self.vector_changes = 0  # by this process, of vectors and of what waits for one
        self._made: set[str] = set()  # temporary tables of this connection
        self._lost: sqlite3.Connection | None = None  # the real one, while every statement is refused
        with self._explained:
            if not read_only and not path.exists():
                self._create()
            if path.stat().st_size == 0:
                raise StorageError(f"{path} is empty, so it is damaged. Restore a backup of its directory.")
            if not read_only and not os.access(path, os.W_OK):
                # SQLite would open it all the same, and refuse the first change.
                raise StorageError(f"{path} cannot be written. Check the rights on it, or open it for reading.")
            self._refuse_odd_files()
            self._connection = self._connect()
            forks.abandon_in_child(self)
            try:
                version = self._recognised()
                if foreign := self.foreign_schema(version):
                    raise StorageError(f"{path} {foreign}. It was left as it is: restore a backup, or export it again.")
                if not read_only:
                    self._set_up()
                if log is not None:
                    log.attach(self)
                self._migrate(version)
                self._sync()
            except BaseException:
                if log is not None:
                    log.detach()
                (self._lost or self._connection).close()
                raise

    def _refuse_odd_files(self) -> None:
        """Refuse a pipe, a device or a link in the place of a file that SQLite opens: it would wait for ever."""
        for suffix in ("-journal", "-wal", "-shm"):
            path = self.path.with_name(f"{self.path.name}{suffix}")
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(path.lstat().st_mode):
                    raise StorageError(f"{path} is a pipe, a device, a link or a directory, not a file. Remove it.")

    def _create(self) -> None:
        """Create the file in one piece, with our mark in it: an empty one is never ours, but a lost one."""
        aside = self.path.with_name(f"{self.path.name}.new")
        try:
            aside.unlink(missing_ok=True)
            with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = OFF")
                # A commit writes a dozen pages with a few bytes changed in each: half the size, half to write.
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            aside.chmod(0o600)
            aside.replace(self.path)
            foreign_files.sync_directory(self.path.parent)
        except OSError as error:
            way = "Check its directory's rights, and its free space"
            raise StorageError(f"{self.path} cannot be created ({error.strerror}). {way}.") from error

    def _connect(self) -> sqlite3.Connection:
        if not self.read_only:
            return self._connection_to("mode=rwc")
        connection = self._connection_to("mode=ro")
        try:
            connection.execute("PRAGMA user_version")
        except sqlite3.Error as error:
            connection.close()
            damaged = not isinstance(error, sqlite3.OperationalError)
            if damaged or self.path.with_name(f"{self.path.name}-wal").exists():
                raise
            # On a disk that takes no writes SQLite cannot share the log with others. There is none, so it need not.
            connection = self._connection_to("immutable=1")
        return connection

    def _connection_to(self, how: str) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?{how}"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=30)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA trusted_schema = OFF")  # until it was compared with ours
        connection.execute("PRAGMA foreign_keys = ON")
        connection.create_function("sources_name", 2, sources_name, deterministic=True)
        connection.execute("PRAGMA temp_store = MEMORY")  # what is asked is in no file that a purge does not know
        return connection

    def _recognised(self) -> int:
        """Return the version of a file that is ours. Nothing is written before that is clear."""
        version: int = self.value("PRAGMA user_version")
        empty = version == 0 and not self.value("SELECT count(*) FROM sqlite_master")
        if not empty and self.value("PRAGMA application_id") != APPLICATION_ID:
            raise StorageError(f"{self.path} is a database of another program; choose another place.")
        if version > VERSION:
            way = "Install a newer selfpager, or restore a backup made with this one"
            known = f"this selfpager knows formats up to {VERSION}"
            raise NewerFormatError(f"{self.path} has format {version}; {known}. {way}.")
        return version

    def foreign_schema(self, version: int | None = None) -> str:
        """Return what its schema has or lacks beside ours of that version; empty if it is ours to the letter.

        A trigger, a view or a check of somebody else would run with our statements and change what they store.
        """
        found, ours = {(row[0], row[1]): shape_of(row) for row in self.rows(SCHEMA)}, schema_of(MIGRATIONS[:version])
        return difference(found, ours)

    def _set_up(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        # With a commit log the file is not read again after a crash, and frames must not go before they were read.
        self._connection.execute(f"PRAGMA synchronous = {'OFF' if self._log else 'FULL'}")
        self._connection.execute("PRAGMA secure_delete = ON")
        # The log is copied into the file at 1 MB, and is cut to 4 MB after a larger transaction.
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {0 if self._log else LOG_PAGES}")
        self._connection.execute(f"PRAGMA journal_size_limit = {4 << 20}")
        # It gets its full length at once: a commit that makes a file longer takes the disk half as long again.
        # On a disk without that much room the log grows as far as it goes, as it would have.
        log_path = self.path.with_name(f"{self.path.name}-wal")
        with suppress(OSError), open(log_path, "ab", opener=foreign_files.private) as log:
            log.write(bytes(max(0, LOG_PAGES * (PAGE_BYTES + LOG_HEADER_BYTES) - log.tell())))

    def _migrate(self, version: int) -> None:
        if version == VERSION:
            return
        if self.read_only and version == 0:  # its making was interrupted
            raise NoAgentError(f"there is no memory in {self.path} yet; Memory.open makes one.")
        if self.read_only:
            way = "open it once for writing to bring it up"
            raise OlderFormatError(f"{self.path} has the older format {version}; {way}.")
        _migrate_to(self._connection, VERSION, MIGRATIONS[version:])

    def _explain(self, error: sqlite3.Error) -> str:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_FULL"):
            return f"the disk is full; nothing of this change was written to {self.path}. Free some space, try again."
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            if self.read_only:
                return f"{self.path} cannot be read ({error}). Check the rights on it and on its directory."
            return f"{self.path} cannot be written ({error}). Check the rights on its directory, or open it to read."
        if is_damage(error):
            return f"{self.path} is damaged ({error}). It was left as it is: restore a backup of its directory."
        if name.startswith("SQLITE_BUSY"):
            return f"{self.path} is locked by another program ({error}). Close it and try again."
        if name.startswith("SQLITE_IOERR"):
            way = "Check the disk and its free space, and try again."
            return f"the disk refused ({error}) while {self.path} was in use; nothing of this change was written. {way}"
        if "closed database" in str(error):
            return "the memory is closed; open it again"
        return f"{self.path}: {error}"

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Generator[None]:
        """Run the block all or nothing; inner ones are savepoints. Without `durable` a later commit flushes the log."""
        if self._depth:
            with self._savepoint():
                yield
            return
        with self._explained:
            if not (durable or self._log):
                self._connection.execute("PRAGMA synchronous = NORMAL")
            try:
                self._connection.execute("BEGIN" if self.read_only else "BEGIN IMMEDIATE")
                self._depth = 1
                yield
                self._connection.execute("COMMIT")
                if durable and self._log is not None:
                    self._log.sync()
            except BaseException:
                self._after.clear()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                self._rolled_back()
                raise
            finally:
                self._depth = 0
                if not (durable or self._log):
                    self._connection.execute("PRAGMA synchronous = FULL")
        after, self._after = self._after, []
        for action in after:
            action()

    @contextmanager
    def _savepoint(self) -> Generator[None]:
        if not self._connection.in_transaction:
            raise StorageError(f"{self.path}: the transaction was undone by the error before; begin it again.")
        name, waiting = f"level_{self._depth}", len(self._after)
        self._connection.execute(f"SAVEPOINT {name}")
        self._depth += 1
        try:
            yield
        except BaseException:
            # A full disk can end the whole transaction by itself; then there is no savepoint to return to.
            if self._connection.in_transaction:
                self._connection.execute(f"ROLLBACK TO {name}")
                self._connection.execute(f"RELEASE {name}")
            del self._after[waiting:]  # what was undone was not committed, even if the caller goes on
            self._rolled_back()
            raise
        else:
            self._connection.execute(f"RELEASE {name}")
        finally:
            self._depth -= 1

    def undo(self) -> None:
        """Roll back whatever transaction an interrupt left open. Not for use within one of the caller's own."""
        self._depth = 0
        self._after.clear()
        if self._connection.in_transaction:
            self.run("ROLLBACK")
        if self._log is None:
            self.run("PRAGMA synchronous = FULL")
        self._rolled_back()

    def when_rolled_back(self, action: Callable[[], None]) -> None:
        """Run `action` after every rollback: caches of uncommitted rows are invalid then."""
        self._on_rollback.append(action)

    def _rolled_back(self) -> None:
        self._made.clear()
        for action in self._on_rollback:
            action()

    def after_commit(self, action: Callable[[], object]) -> None:
        """Run `action` after the outermost commit, at once if no transaction is open, never after a rollback."""
        if self._depth:
            self._after.append(action)
        else:
            action()

    @property
    def in_transaction(self) -> bool:
        """Return True inside of a transaction."""
        return self._depth > 0

    def run(self, sql: str, values: Values = ()) -> int:
        """Run one statement. Return the id of the row that it inserted."""
        with self._explained:
            row = self._connection.execute(sql, values).lastrowid or 0
        if self._log is not None:
            self._sync()
        return row

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        with self._explained:
            self._connection.executemany(sql, rows)
        self._sync()

    def _sync(self) -> None:
        """Acknowledge what was written outside of a transaction only when the commit log has it."""
        if self._log is not None and not self._depth:
            self._log.sync()

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        """Return all rows of a query."""
        with self._explained:
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Values = ()) -> Row | None:
        """Return the first row of a query, if there is one."""
        with self._explained:
            return self._connection.execute(sql, values).fetchone()

    def value(self, sql: str, values: Values = (), default: Any = None) -> Any:
        """Return the first value of a query, or `default`."""
        row = self.row(sql, values)
        return default if row is None or row[0] is None else row[0]

    def make_temporary(self, *statements: str) -> None:
        """Create temporary tables of this connection, unless that was done."""
        for sql in statements:
            if sql not in self._made:
                self.run(sql)
                self._made.add(sql)

    def last_before(self, table: str, step: int) -> int:
        """Return the last id of a table that was written before `step`. Steps grow with ids, so halve."""
        low, high = 0, self.value(f"SELECT max(id) FROM {table}", default=0)
        while low < high:
            middle = (low + high + 1) // 2
            row = self.row(f"SELECT id, step FROM {table} WHERE id <= ? ORDER BY id DESC LIMIT 1", (middle,))
            if row is None or row["step"] < step:
                low = middle
            else:
                high = row["id"] - 1
        return low

    def revision(self) -> int:
        """Return a number that changes when another process commits."""
        return self.value("PRAGMA data_version")

    def trace(self, watch: Callable[[str], None] | None) -> None:
        """Call `watch` with every statement before it runs. Crash tests kill at each COMMIT."""
        self._connection.set_trace_callback(watch)

    def abandon(self) -> None:
        """In a forked child: refuse every use. Also to roll back or to close would change what the parent has."""
        refusing = _Refusing(forks.inherited(os.getppid()))
        connection, self._connection = self._connection, cast("sqlite3.Connection", refusing)
        forks.never_free(connection)

    def checkpoint(self, *, truncate: bool = False) -> bool:
        """Copy the log into the file. Return True if all of it could be copied: no reader needs an older state."""
        if self._log is not None:
            self._log.settle()
        with self._explained:
            how = "TRUNCATE" if truncate else "PASSIVE"
            busy, pages, copied = self._connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        return not busy and pages == copied

    @property
    def is_sure(self) -> bool:
        """Return False if another process may own the agent by now, and what the file holds may be old."""
        return self._log is None or self._log.is_sure

    def forget_past(self) -> list[str]:
        """Erase earlier states from the commit log, if there is one, and from what reads it.

        Returns the processes that have died with such a state. Raises StorageError.
        """
        return self._log.forget_past() if self._log is not None else []

    def refuse(self, error: PagerError) -> None:
        """Raise this error at every further statement: the file is not the truth any more."""
        if self._lost is None:
            self._lost, self._connection = self._connection, cast("sqlite3.Connection", _Refusing(error))

    def close(self) -> None:
        """Close the connection. What was committed and is not flushed is in the commit log before."""
        connection, log = self._lost or self._connection, self._log
        self._log = None  # it may be closed by the time that this is called again
        try:
            if log is not None and self._lost is None:
                log.sync()
                log.settle()
        finally:
            if log is not None:
                log.detach()  # to close the file is to change it
            with self._explained:
                connection.close()


def any_of(words: Sequence[str]) -> str:
    """Return a full-text query for any of these words, in any order."""
    return " OR ".join(f'"{word}"' for word in words)
