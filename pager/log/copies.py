"""The copies of readers, known in Postgres, so that a purge reaches them.

A row says that a process has a copy of an agent, for as long as its lease lasts. Who purges the agent writes into these
rows up to which commit each copy has to go; the process that has it follows, and takes that out again. A copy whose
lease has ended is one of a process that has died, or stands still: it is deleted when a selfpager of its user begins
there, or brought up when it goes on.
"""

import os
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import NamedTuple, Self

from pager.errors import PagerError, StorageError, UnavailableError
from pager.log.leases import RENEWALS
from pager.log.postgres import Server

PAUSE_SECONDS = 0.05  # between two looks at what others have done
_QUICK = "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))"
# What a process has left that died a month ago is gone by now.
_ADD = f"""
    {_QUICK}, old AS (DELETE FROM selfpager.copies WHERE lease_until < clock_timestamp() - interval '30 days')
    INSERT INTO selfpager.copies AS c
    SELECT %s, %s, %s, NULL, clock_timestamp() + make_interval(secs => %s) FROM quick
    ON CONFLICT (id) DO UPDATE SET agent = excluded.agent, lease_until = excluded.lease_until,
        awaited = CASE WHEN c.agent = excluded.agent THEN c.awaited END"""
_RENEW = f"""
    {_QUICK} UPDATE selfpager.copies SET lease_until = clock_timestamp() + make_interval(secs => %s) FROM quick
    WHERE id = ANY(%s) RETURNING id, awaited"""
_FOLLOWED = "UPDATE selfpager.copies SET awaited = NULL WHERE id = %s AND awaited <= %s"
_AWAIT = "UPDATE selfpager.copies SET awaited = %s WHERE agent = %s"
_AWAITED = """
    SELECT holder FROM selfpager.copies WHERE agent = %s AND awaited IS NOT NULL AND lease_until > clock_timestamp()"""
_DEAD = """
    DELETE FROM selfpager.copies WHERE agent = %s AND awaited IS NOT NULL AND lease_until <= clock_timestamp()
    RETURNING holder"""


class _Held(NamedTuple):
    agent: int
    follow: Callable[[], int]  # returns the number of the commit that the copy has


class Copies:
    """The copies that this process has of agents in one Postgres."""

    _made: dict[tuple[int, int], Self] = {}  # noqa: RUF012 - of the class: one thread looks after all of them
    _making = Lock()

    @classmethod
    def of(cls, server: Server) -> Self:
        """Return the copies of agents in this Postgres, of this process."""
        with cls._making:
            key = (os.getpid(), id(server))
            if key not in cls._made:
                cls._made[key] = cls(server)
            return cls._made[key]

    def __init__(self, server: Server) -> None:
        self._server = server  # its id is the key
        self._holder = f"process {os.getpid()} on {socket.gethostname()}"
        self._held: dict[uuid.UUID, _Held] = {}
        self._following = set[uuid.UUID]()
        self._lock = Lock()
        self._changed = Event()
        self._thread: Thread | None = None

    def announce(self, copy: uuid.UUID, agent: int) -> None:
        """Let a purge of this agent know of a copy that is about to be made, maybe in place of one of another agent."""
        with self._lock:
            if copy in self._held:
                self._held[copy] = self._held[copy]._replace(agent=agent)
        try:
            self._server.ask(_ADD, (copy, agent, self._holder, self._server.lease_seconds))
        except UnavailableError as error:
            if not error.is_refused:  # by a standby, which takes no writes
                raise

    def keep(self, copy: uuid.UUID, agent: int, follow: Callable[[], int]) -> None:
        """Renew its lease until it is dropped, and let it follow when a purge waits for that, in another thread."""
        with self._lock:
            self._held[copy] = _Held(agent, follow)
            if self._thread is None or not self._thread.is_alive():  # it may not have been started: no more threads
                self._changed.clear()
                self._thread = Thread(target=self._work, name="selfpager copies", daemon=True)
                self._thread.start()

    def drop(self, copy: uuid.UUID) -> None:
        """Say that there is no such copy any more."""
        with self._lock:
            self._held.pop(copy, None)
            if not self._held:
                self._changed.set()
        self._forget(copy)

    def _forget(self, copy: uuid.UUID) -> None:
        with suppress(StorageError):  # its lease ends
            self._server.ask("DELETE FROM selfpager.copies WHERE id = %s", (copy,))

    def _work(self) -> None:
        while True:
            self._changed.wait(self._server.lease_seconds / RENEWALS)
            with self._lock:
                held = dict(self._held)
                self._changed.clear()
                if not held:
                    self._thread = None
                    return
            with suppress(PagerError):  # the next time
                self._renew(held)

    def _renew(self, held: dict[uuid.UUID, _Held]) -> None:
        found = dict(self._server.ask(_RENEW, (self._server.lease_seconds, list(held))))
        for copy, (agent, follow) in held.items():
            if copy not in found:  # a purge took this process for dead, or it was dropped a moment ago
                self.announce(copy, agent)
                if copy not in self._held:
                    self._forget(copy)
                    continue
            if (copy not in found or found[copy] is not None) and copy not in self._following:
                # In a thread of its own: somebody may be reading for long, and the leases go on.
                self._following.add(copy)
                try:
                    Thread(target=self._follow, args=(copy, follow), name="selfpager copy", daemon=True).start()
                except RuntimeError:  # no more threads: the next time
                    self._following.discard(copy)

    def _follow(self, copy: uuid.UUID, follow: Callable[[], int]) -> None:
        try:
            self._server.ask(_FOLLOWED, (copy, follow()))
        except PagerError:  # it is awaited still
            return
        finally:
            self._following.discard(copy)

    # for who purges

    def bring_past(self, agent: int, seq: int) -> list[str]:
        """Return when every copy has this commit: the processes that had one and have died. Raises StorageError with
        those that do not answer."""
        if not self._server.ask(f"{_AWAIT} RETURNING id", (seq, agent)):
            return []
        self._changed.set()  # here, too
        waits_until = time.monotonic() + self._server.lease_seconds
        while living := self._server.ask(_AWAITED, (agent,)):
            if time.monotonic() > waits_until:
                who = ", ".join(sorted({holder for (holder,) in living}))
                way = "Close what reads there (a view, an agent that mounts it) and open the agent again"
                raise StorageError(f"the purge cannot finish while {who} reads an old copy. {way}: it goes on then.")
            time.sleep(PAUSE_SECONDS)
        return sorted({holder for (holder,) in self._server.ask(_DEAD, (agent,))})
