"""The leases of all agents that this process owns in one Postgres: renewed together, in one statement, by one thread.

A renewal that fails is tried again, also after the lease has ended: as long as nobody else has claimed the agent, its
fence is ours. The lease says when others may claim it; the fence says who owns it.
"""

import os
from threading import Event, Lock, Thread
from time import monotonic
from typing import Protocol, Self

from pager.errors import StorageError
from pager.log.claim import Claim
from pager.log.rows import Rows

RENEWALS = 3  # within one lease


class Renewed(Protocol):
    """Is told the outcome of a renewal."""

    def __call__(self, *, owned: bool, has_commands: bool, until: float) -> None:
        """Take note of it. If it is `owned`, nobody else can claim it before that moment of `monotonic`."""
        ...


class Leases:
    """What is renewed in one Postgres."""

    _made: dict[tuple[int, int], Self] = {}  # noqa: RUF012 - of the class: a process renews them together
    _making = Lock()

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Return the leases in this Postgres, of this process."""
        with cls._making:
            key = (os.getpid(), id(rows.server))
            if key not in cls._made:
                cls._made[key] = cls(rows)
            return cls._made[key]

    def __init__(self, rows: Rows) -> None:
        self._rows = rows  # holds the server, whose id is the key
        self._held: dict[Claim, Renewed] = {}
        self._lock = Lock()
        self._changed = Event()
        self._thread: Thread | None = None

    def add(self, claim: Claim, renewed: Renewed) -> None:
        """Renew the lease of this claim until it is dropped."""
        with self._lock:
            self._held[claim] = renewed
            if self._thread is None or not self._thread.is_alive():  # it may not have been started: no more threads
                self._changed.clear()
                self._thread = Thread(target=self._work, name="selfpager leases", daemon=True)
                self._thread.start()

    def drop(self, claim: Claim) -> None:
        """Renew it no longer."""
        with self._lock:
            self._held.pop(claim, None)
            if not self._held:
                self._changed.set()

    def _work(self) -> None:
        while True:
            self._changed.wait(self._rows.server.lease_seconds / RENEWALS)
            with self._lock:
                held = dict(self._held)
                if not held:
                    self._thread = None
                    return
                self._changed.clear()
            self.renew(held)

    def renew(self, held: dict[Claim, Renewed]) -> None:
        """Renew these leases, and tell each claim if it still holds."""
        until = monotonic() + self._rows.server.lease_seconds
        try:
            found = self._rows.renew(list(held))
        except StorageError:
            return
        for claim, renewed in held.items():
            newest, has_commands = found.get(claim.agent, (None, False))
            renewed(owned=newest == claim.id, has_commands=has_commands, until=until)
