"""Connections to Postgres: a pool for each address, no statement without a time limit, errors that say what to do.

`ask` is for what may run twice, and is tried twice: not every lost connection is noticed before. `tell` runs its
statements once, in one transaction; when it raises, nobody knows if they were committed.
"""

import atexit
import os
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pager.errors import NewerFormatError, RejectedError, StorageError
from pager.log.pool import BusyError, Pool
from pager.log.tables import CREATE, LAYOUT
from pager.safety.redaction import public_address, redacted

try:
    import psycopg
    from psycopg import Connection
    from psycopg.pq import TransactionStatus
    from psycopg.rows import TupleRow
except ImportError:
    raise RejectedError(
        "a home in Postgres needs the package psycopg, which is not installed: pip install 'selfpager[fleet]', "
        "or 'selfpager-memory[fleet]' where the agent is not"
    ) from None

Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]
Statement = tuple[str, Values]
CONNECTIONS = 8  # of a process, to one address
OPTIONS = {  # also in the query of an address: default, least, most
    "lease_seconds": (10.0, 0.1, 3600.0),
    "limit_seconds": (10.0, 0.1, 3600.0),
    "keep_days": (7.0, 0.0, 3650.0),  # of the past of each agent
}


class UnavailableError(StorageError):
    """Postgres cannot be reached, or refuses."""


class _Limited(Connection[TupleRow]):
    """A connection on which nothing waits for ever, whatever lies between it and Postgres."""

    limit_seconds = OPTIONS["limit_seconds"][0]

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for Postgres, as long as the limit allows."""
        return super().wait(gen, interval, self.limit_seconds if timeout is None else timeout)


class Transaction:
    """The statements of one transaction."""

    def __init__(self, connection: Connection[TupleRow]) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        """Run a statement and return its rows."""
        cursor = self._connection.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each of these values, in as few round trips as possible."""
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.encode(), values)


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
        self.advertised = ""  # where this process takes requests for the agents that it owns
        self._address, options = _own_options(address)
        self.lease_seconds, self.limit_seconds = options["lease_seconds"], options["limit_seconds"]
        self.keep_days = options["keep_days"]
        self._class = type("_Limited", (_Limited,), {"limit_seconds": self.limit_seconds})
        self._arguments: dict[str, Any] = {
            "autocommit": True, "connect_timeout": max(2, int(self.limit_seconds)), "application_name": "selfpager",
            "tcp_user_timeout": int(self.limit_seconds * 1000), "keepalives_idle": 30,
        }  # fmt: skip
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

    def ask(self, sql: str, values: Values = ()) -> list[Row]:
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

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Run a transaction, whose locks end with it also when this process stands still."""
        with self._connection() as connection, connection.transaction():
            transaction = Transaction(connection)
            transaction.rows("SET LOCAL idle_in_transaction_session_timeout = '60s'")
            yield transaction

    @contextmanager
    def snapshot(self) -> Generator[Transaction]:
        """Read everything inside as of one moment."""
        with self._connection() as connection, connection.transaction():
            transaction = Transaction(connection)
            transaction.rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield transaction

    @contextmanager
    def _connection(self) -> Generator[Connection[TupleRow]]:
        if os.getpid() != self._owner:
            raise StorageError(
                "a forked child cannot use its parent's connections to Postgres; open a home of its own."
            )
        try:
            with self._pool.lend(self.limit_seconds) as connection:
                try:
                    yield connection
                except BaseException as error:
                    is_known = isinstance(error, Exception) and not isinstance(error, psycopg.OperationalError)
                    if not is_known or connection.info.transaction_status != TransactionStatus.IDLE:
                        connection.close()  # nobody knows in which state it is
                    raise
        except (psycopg.Error, BusyError) as error:
            raise self._unavailable(error) from error

    def _connect(self) -> Connection[TupleRow]:
        connection = self._class.connect(self._address, **self._arguments)
        try:
            # A commit that Postgres has not written is not durable. Stronger settings of the server stay.
            durable = "set_config('synchronous_commit', 'on', false)"
            connection.execute(f"SELECT CASE WHEN current_setting('synchronous_commit') = 'off' THEN {durable} END")
        except BaseException:
            connection.close()
            raise
        return connection

    def _unavailable(self, error: Exception) -> StorageError:
        reason = redacted(" ".join(str(error).split()), [self._address]) or type(error).__name__
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            way = "Give its user the right to create a schema there (GRANT CREATE ON DATABASE ...)"
        elif isinstance(error, psycopg.errors.SerializationFailure | BusyError):
            way = "Try again"
        else:
            way = "Check that it runs and takes this user, then try again; what was acknowledged is there"
        return UnavailableError(f"the Postgres at {self.public} does not do it: {reason}. {way}.")

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


def _own_options(address: str) -> tuple[str, dict[str, float]]:
    """Return an address without our own options in its query, and these."""
    parts = urlsplit(address)
    options, rest = {name: default for name, (default, _, _) in OPTIONS.items()}, list[tuple[str, str]]()
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in options:
            rest.append((name, value))
            continue
        try:
            options[name] = float(value)
        except ValueError:
            options[name] = -1
        _, least, most = OPTIONS[name]
        if not least <= options[name] <= most:
            given, unit = f"{name} in the address of the home is {value!r:.40}", name.rpartition("_")[2]
            raise RejectedError(f"{given}; give {unit}, {least:g} to {most:g}.")
    return urlunsplit(parts._replace(query=urlencode(rest))), options
