"""The open connections of this process that nobody uses just now. `Pool.lend` gives one of them out, or a new one.

Whoever needs a new one makes it, at once. (psycopg's own pool makes them in the background, and pauses longer after
each failure: who came after an outage would wait for the end of such a pause.) A connection that the other side has
ended is noticed before it is used: there is something to read, though nothing was asked.
"""

import select
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Generic, Protocol, TypeVar

IDLE_SECONDS = 600.0  # then a connection is closed


class BusyError(Exception):
    """All connections are in use."""


class Lent(Protocol):
    """A connection, as far as the pool looks at it."""

    @property
    def closed(self) -> bool:
        """Return True if it cannot be used any more."""
        ...

    def fileno(self) -> int:
        """Return the number of its socket."""
        ...

    def close(self) -> None:
        """Close it. It may be closed already."""
        ...


C = TypeVar("C", bound=Lent)


class Pool(Generic[C]):
    """At most `limit` connections, made by `connect`. Every call may come from any thread."""

    def __init__(self, connect: Callable[[], C], limit: int) -> None:
        self._connect = connect
        self._limit = limit
        self._idle: list[tuple[float, C]] = []  # since when; the newest is the last, and the first that is lent
        self._lock = Lock()
        self._free = BoundedSemaphore(limit)
        self._is_closed = False

    @contextmanager
    def lend(self, wait_seconds: float) -> Generator[C]:
        """Lend a connection for a block, which may close it. Raises BusyError, and what `connect` raises."""
        if not self._free.acquire(timeout=wait_seconds):
            raise BusyError(f"all {self._limit} connections to it have been in use for {wait_seconds:g} seconds")
        try:
            connection = self._take() or self._connect()
            try:
                yield connection
            finally:
                self._put_back(connection)
        finally:
            self._free.release()

    def drop_idle(self, before: float = float("inf")) -> None:
        """Close the connections that nobody uses, or has used since that moment."""
        with self._lock:
            dropped = [connection for since, connection in self._idle if since < before]
            del self._idle[: len(dropped)]  # they are sorted
        for connection in dropped:
            connection.close()

    def close(self) -> None:
        """Close these connections, and each other one when it is given back."""
        self._is_closed = True
        self.drop_idle()

    def _take(self) -> C | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                _, connection = self._idle.pop()
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLIN)
            if not poll.poll(0):
                return connection
            connection.close()

    def _put_back(self, connection: C) -> None:
        if self._is_closed:
            connection.close()
        if not connection.closed:
            with self._lock:
                self._idle.append((monotonic(), connection))
        self.drop_idle(monotonic() - IDLE_SECONDS)
