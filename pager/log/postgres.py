"""Connections to Postgres: a pool for each address, no statement without a time limit, errors that say what to do.

`ask` is for what may run twice, and is tried twice: not every lost connection is noticed before. `tell` runs its
statements once, in one transaction; when it raises, nobody knows if they were committed.
"""

import atexit
import logging
import os
import re
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import count
from threading import Lock
from time import monotonic
from typing import Any, Self

from pager.errors import NewerFormatError, RejectedError, StorageError, UnavailableError
from pager.log.address import given, hosts, split_options
from pager.log.failures import explain
from pager.log.pool import BusyError, Pool
from pager.log.tables import CREATE, LAYOUT
from pager.safety.redaction import public_address, redacted

try:
    import psycopg
    from psycopg import Connection, Cursor
    from psycopg.errors import Diagnostic, error_from_result
    from psycopg.generators import execute
    from psycopg.pq import ExecStatus, Format, TransactionStatus
    from psycopg.pq.abc import PGresult
    from psycopg.rows import TupleRow
except ImportError:
    raise RejectedError(
        "a home in Postgres needs the package psycopg, which is not installed: pip install 'selfpager[fleet]', "
        "or 'selfpager-memory[fleet]' where the agent is not"
    ) from None

# It warns of a rollback on a connection that is lost, which Python would print: we raise an error for that.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any]]
# The number of its type in every Postgres, and the form in which it is sent.
_TYPES = {bytes: (17, Format.BINARY), int: (20, Format.TEXT), uuid.UUID: (2950, Format.BINARY)}
CONNECTIONS = 8  # of a process, to one address
FAILURE_SECONDS = 30.0  # then it is worth another try
LEAST_STILL, MOST_STILL = 5, 60  # seconds between two statements of a transaction


class _UnconfirmedError(psycopg.OperationalError):
    """A commit is in Postgres, and its synchronous standby may lack it."""


class _Limited(Connection[TupleRow]):
    """A connection on which nothing waits for ever, whatever lies between it and Postgres."""

    limit_seconds: float
    _is_unconfirmed = False

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for Postgres, as long as the limit allows."""
        return super().wait(gen, interval, self.limit_seconds if timeout is None else timeout)

    @cached_property
    def only_cursor(self) -> Cursor[TupleRow]:
        """Return the cursor of all its statements. To make one takes as long as Postgres takes to commit."""
        return self.cursor()

    def first_value(self, sql: str, values: Sequence[int | uuid.UUID | bytes]) -> bytes | None:
        """Run a statement of this program that is prepared once. Return the first value of its first row as text.

        Each commit runs it: what psycopg does around other statements takes as long as Postgres takes for this one.
        """
        if sql not in self._statements:
            name, numbers = b"selfpager%d" % len(self._statements), count(1)
            query = re.sub("%[sb]", lambda _: f"${next(numbers)}", sql)
            kinds = [_TYPES[type(value)] for value in values]
            self.pgconn.send_prepare(name, query.encode(), [oid for oid, _ in kinds])
            self._result()
            self._statements[sql] = (name, [format_ for _, format_ in kinds])
        name, formats = self._statements[sql]
        self.pgconn.send_query_prepared(name, [*map(_on_the_wire, values)], formats)
        result = self._result()
        return result.get_value(0, 0) if result.ntuples else None

    @cached_property
    def _statements(self) -> dict[str, tuple[bytes, list[Format]]]:
        return {}  # SQL -> its name, and the form of its values

    def _result(self) -> PGresult:
        results = self.wait(execute(self.pgconn))
        for result in results:
            if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
                raise error_from_result(result)
        if len(results) != 1:  # a connection that ends may bring none, or several errors
            raise psycopg.OperationalError(f"there are {len(results)} answers to one statement")
        return results[0]

    def notice(self, diagnostic: Diagnostic) -> None:
        """Take note of a warning. Where somebody cancels a commit, Postgres reports success, and warns that it has not
        waited for its standby."""
        self._is_unconfirmed = self._is_unconfirmed or diagnostic.source_function == "SyncRepWaitForLSN"

    def check(self) -> None:
        """Raise an error if a commit was reported that a promoted standby may lack."""
        if self._is_unconfirmed:
            raise _UnconfirmedError("it stopped waiting for its synchronous standby")


def _on_the_wire(value: int | uuid.UUID | bytes) -> bytes:
    return b"%d" % value if isinstance(value, int) else value.bytes if isinstance(value, uuid.UUID) else value


class Transaction:
    """The statements of one transaction."""

    def __init__(self, connection: _Limited) -> None:
        self._cursor = connection.only_cursor

    def rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        """Run a statement and return its rows."""
        cursor = self._cursor.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each of these values, in as few round trips as possible."""
        self._cursor.executemany(sql.encode(), values)


class Server:
    """The Postgres at an address, for this process. Made by `Server.at`; every call may come from any thread."""

    _made: dict[tuple[int, str], Self] = {}  # noqa: RUF012 - of the class: a process has one pool for each address
    _making = Lock()

    @classmethod
    def at(cls, address: str) -> Self:
        """Return the server at `postgresql://...`. Its tables are created if they are missing."""
        with cls._making:
            key = (os.getpid(), address)  # a forked child has its parent's pool, but not the threads of it
            if key not in cls._made:
                cls._made[key] = cls(address)
                atexit.register(cls._made[key].close)
            return cls._made[key]

    def __init__(self, address: str) -> None:
        self.public = public_address(address)
        self.worker = uuid.uuid4().hex  # tells this process from others
        self.left: dict[int, uuid.UUID] = {}  # agent -> the claim that this process gave up, as Postgres may not know
        self.at_work = set[str]()  # agents for which this process does something
        self.advertised = ""  # where this process takes requests for the agents that it owns
        self._address, options = split_options(address)
        self.lease_seconds, self.limit_seconds = options["lease_seconds"], options["limit_seconds"]
        self.keep_days = options["keep_days"]
        # When this process stands still within a transaction, others wait for what that has locked: no longer than for
        # its lease.
        self._still_seconds = int(min(max(self.lease_seconds, LEAST_STILL), MOST_STILL))
        self._hosts = hosts(self._address)
        self._class = type("_Limited", (_Limited,), {"limit_seconds": self.limit_seconds})
        defaults: dict[str, Any] = {
            "autocommit": True, "application_name": "selfpager", "keepalives_idle": 30,
            # What psycopg prepares by itself it deallocates after every rollback, and with it what we prepare.
            "prepare_threshold": None,
            "connect_timeout": max(2, int(self.limit_seconds / max(1, len(self._hosts)))),  # to each host
            "tcp_user_timeout": int(self.limit_seconds * 1000),
            # A standby has an earlier state, and takes no writes. To read there is for who asks for it.
            "target_session_attrs": os.environ.get("PGTARGETSESSIONATTRS", "read-write"),
        }  # fmt: skip
        self._arguments = {name: value for name, value in defaults.items() if name not in given(self._address)}
        self._failure: tuple[float, str] | None = None  # of the last commit
        self._owner = os.getpid()
        self._pool = Pool(self._connect, CONNECTIONS)
        try:
            self._create_tables()
        except BaseException:
            self._pool.close()
            raise

    def close(self) -> None:
        """Close all connections. Not in a forked child: they are its parent's."""
        if os.getpid() == self._owner:
            with self._making:
                for key in [key for key, made in self._made.items() if made is self]:
                    del self._made[key]
            self._pool.close()

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement that may run twice, and return its rows."""
        with suppress(UnavailableError):
            return self.tell((sql, values))
        self._pool.drop_idle()  # what ended one of them has ended the others
        return self.tell((sql, values))

    def tell(self, *statements: Statement) -> list[Row]:
        """Run statements once, in one transaction, and return the rows of the first. An error tells nothing about
        whether they were committed. The others run only if the first has a row."""
        with self._connection() as connection:
            if len(statements) == 1:
                return Transaction(connection).rows(*statements[0])
            with connection.transaction():
                transaction = Transaction(connection)
                if found := transaction.rows(*statements[0]):
                    for statement in statements[1:]:
                        transaction.rows(*statement)
                return found

    def commit(self, first: Statement, *more: Statement) -> bytes | None:
        """Do what `tell` does with a statement that every commit runs. Return the first value of its row as text. Note
        if commits cannot be stored now."""
        try:
            with self._connection() as connection:
                found = self._commit(connection, first, more)
        except UnavailableError as error:
            self._failure = (monotonic(), error.reason)
            raise
        self._failure = None
        return found

    def _commit(self, connection: _Limited, first: Statement, more: Sequence[Statement]) -> bytes | None:
        if not more:
            return connection.first_value(*first)
        with connection.transaction():
            transaction, found = Transaction(connection), connection.first_value(*first)
            for statement in more if found is not None else ():
                transaction.rows(*statement)
            return found

    @property
    def failure(self) -> str | None:
        """Return why the last commit of this process was not stored; None if it was, or if that was long ago."""
        failed = self._failure
        return failed[1] if failed and monotonic() - failed[0] < FAILURE_SECONDS else None

    def write_anew(self, table: str) -> int:
        """Write the file of a table anew. Return how many deleted rows it holds still, as a transaction that began
        before may see them."""
        told = list[str]()

        def note(diagnostic: Diagnostic) -> None:
            told.append(diagnostic.message_detail or "")

        with self._connection() as connection:
            connection.add_notice_handler(note)
            try:
                connection.execute(f"VACUUM (FULL, VERBOSE) {table}".encode())
            finally:
                connection.remove_notice_handler(note)
        found = re.search(r"\d+", " ".join(told))  # in whatever language: the first number is theirs
        if found is None:
            raise StorageError(f"the Postgres at {self.public} does not say what is left in {table}.")
        return int(found[0])

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Run a transaction."""
        with self._connection() as connection, connection.transaction():
            yield Transaction(connection)

    @contextmanager
    def snapshot(self) -> Generator[Transaction]:
        """Read everything inside as of one moment."""
        with self._connection() as connection, connection.transaction():
            transaction = Transaction(connection)
            transaction.rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield transaction

    @contextmanager
    def _connection(self) -> Generator[_Limited]:
        is_refused = True  # until something is sent
        if os.getpid() != self._owner:
            raise StorageError(
                "a forked child cannot use its parent's connections to Postgres; open a home of its own."
            )
        try:
            with self._pool.lend(self.limit_seconds) as connection:
                is_refused = False
                try:
                    yield connection
                    connection.check()
                except BaseException as error:
                    is_idle = connection.info.transaction_status == TransactionStatus.IDLE
                    is_refused = is_idle and isinstance(error, psycopg.Error) and error.sqlstate is not None
                    is_known = isinstance(error, Exception) and not isinstance(error, psycopg.OperationalError)
                    if not is_known or not is_idle:
                        connection.close()  # nobody knows in which state it is
                    raise
        except (psycopg.Error, BusyError) as error:
            raise self._unavailable(error, is_refused=is_refused) from error

    def _connect(self) -> _Limited:
        known, arguments = self._hosts, self._arguments
        if known:
            order: dict[str, Any] = {
                "host": ",".join(host for host, _ in known),
                "port": ",".join(str(port) for _, port in known),
            }
            arguments = arguments | order
        connection = self._class.connect(self._address, **arguments)
        connection.add_notice_handler(connection.notice)
        # The one that answered comes first from now on: one that is gone would cost a time-out for each connection.
        answered = (connection.info.host, connection.info.port)
        self._hosts = sorted(known, key=lambda host: host != answered)
        try:
            # A commit that Postgres has not written is not durable. Stronger settings of the server stay.
            durable = "set_config('synchronous_commit', 'on', false)"
            still = f"set_config('idle_in_transaction_session_timeout', '{self._still_seconds}s', false)"
            connection.execute(
                f"SELECT {still}, CASE WHEN current_setting('synchronous_commit') = 'off' THEN {durable} END".encode()
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _unavailable(self, error: Exception, *, is_refused: bool) -> StorageError:
        text = str(error).rpartition("All failures were:\n")[2]  # those before it are the last one, once more
        said = redacted(" ".join(text.split()), [self._address]).rstrip(".") or type(error).__name__
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        reason, way = explain(state, said, self.limit_seconds)
        text = f"the Postgres at {self.public} cannot do it: {reason} ({said}). {way}."
        return UnavailableError(text, reason, is_refused=is_refused)

    def _create_tables(self) -> None:
        with self._connection() as connection:
            if connection.execute("SELECT to_regclass('selfpager.about')").fetchone() == (None,):
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(7364001)")  # of two that begin at once
                    for statement in CREATE:
                        connection.execute(statement.encode())
            found = connection.execute("SELECT max(layout) FROM selfpager.about").fetchone()
            if found and found[0] != LAYOUT:
                known = f"this selfpager knows {LAYOUT}"
                raise NewerFormatError(
                    f"the tables in {self.public} have layout {found[0]}; {known}. Install a newer one."
                )
