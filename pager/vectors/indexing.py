"""When the index of one memory is built, opened, asked and given up.

`plan` says what is due, `build` does it in the background, and `open` gives a search what it can ask. A failure of the
index is written to the ledger and costs nothing else: SQLite answers meanwhile. Everything but the build itself needs
the memory's lock.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from pager.call_lock import CallLock
from pager.clock import Clock, to_micros
from pager.store import Store
from pager.types import FOREVER
from pager.vectors.embedding import Embedding
from pager.vectors.index import (
    RECALL,
    BuildCancelledError,
    Generation,
    IndexDamagedError,
    IndexUnavailableError,
    Stop,
)

if TYPE_CHECKING:
    from pager.vectors.chroma.collection import LocalCollection, ServerCollection
    from pager.vectors.chroma.places import Directory

SMALLEST = 256  # facts; fewer need no index
DUE_SHARE = 4  # the next generation is due when so much of the newest is behind or has ended, and at least SMALLEST
RETRY_S = 60  # after a failure


class Indexing:
    """The index of one memory."""

    def __init__(self, store: Store, clock: Clock, embedding: Embedding, index: Directory) -> None:
        self._store = store
        self._clock = clock
        self._embedding = embedding
        self._index = index
        self._opened: tuple[Generation, LocalCollection | ServerCollection] | None = None
        self._damaged: Generation | None = None  # it cannot be opened, or failed in use
        self._retry_at = 0.0
        self._failure = ""  # the last one
        self._life = 0  # a build counts only in the life in which it began
        self._is_closed = False

    def open(self, at: int = FOREVER) -> tuple[Generation, LocalCollection | ServerCollection] | None:
        """Return the newest generation and where to ask it; None while none can be asked for what was true then."""
        newest = self._index.newest() if self._store.archive.last_vector() >= SMALLEST else None
        if self._opened and self._opened[0] != newest:
            self.release()
        if newest is None or not newest.is_proven or newest.stamp != self._embedding.stamp():
            return None
        if self._opened is None and newest != self._damaged and not self.is_waiting:
            try:
                if self._store.archive.digest_at(newest.through) != newest.last:
                    raise IndexDamagedError("the index was built from another pager.db than this one")
                self._opened = newest, self._index.open(newest)
            except IndexUnavailableError as error:
                self.fail(newest, error)
        return self._opened if at >= newest.moment or self._lacks_nothing(newest, at) else None

    def _lacks_nothing(self, newest: Generation, at: int) -> bool:
        """Return True for the present, if the clock was set back since the build and nothing ends until its moment."""
        is_past = at < to_micros(self._clock.now())
        return not is_past and not self._store.archive.count_ended(at, newest.moment)

    def fail(self, generation: Generation, error: IndexUnavailableError) -> None:
        """Answer without it. A damaged generation is built anew, one that cannot be reached is asked again later."""
        self.release()
        if isinstance(error, IndexDamagedError):
            self._damaged = generation
        else:
            self._retry_at = time.monotonic() + RETRY_S
        self._failure = str(error)
        self._store.vector_changes += 1  # there may be something to do in the background
        self._embedding.log_once("index", str(error))

    @property
    def is_waiting(self) -> bool:
        """Return True for a while after a failure."""
        return time.monotonic() < self._retry_at

    def plan(self, *, whole: bool = False) -> Generation | None:
        """Return the generation that is due; with `whole` also for a single fact that the newest lacks."""
        stamp = None if self._store.in_transaction or self._is_closed else self._embedding.stamp()
        through = self._store.archive.last_vector()
        if stamp is None or through < SMALLEST or self.is_waiting:
            return None
        newest, now = self._index.newest(), to_micros(self._clock.now())
        if newest and newest.stamp == stamp and newest != self._damaged:
            if newest.is_proven:
                missing = through - newest.through + self._store.archive.count_ended(newest.moment, now)
                is_due = missing >= (1 if whole else max(SMALLEST, newest.facts // DUE_SHARE))
            else:
                is_due = self._lasting(now) >= 2 * newest.facts
        else:
            is_due = self._lasting(now) >= SMALLEST
        if not is_due:
            return None
        return Generation(stamp, through, self._store.archive.digest_at(through), now, self._index.next_name())

    def _lasting(self, now: int) -> int:
        return self._store.archive.count_vectors() - self._store.archive.count_ended(0, now)

    def build(self, plan: Generation, call_lock: CallLock, stop: Stop) -> None:
        """Build what was planned, and publish it under the lock. A failure is written to the ledger."""
        life = self._life
        try:
            self._index.reach()
            with call_lock.lock, call_lock:
                self._index.own()
            built = self._index.build(plan, lambda: self._is_closed or self._life != life or stop())
            with call_lock.lock, call_lock:
                if self._life != life:
                    return  # purged meanwhile, and removed
                self._index.publish(built)
                self._damaged = None
                self._embedding.log_again("index")
                self._embedding.log("index", _told(built))
            self._index.tidy(built.name)
        except BuildCancelledError:
            return
        except IndexUnavailableError as error:
            with call_lock.lock, call_lock:
                self._retry_at = time.monotonic() + RETRY_S
                self._embedding.log_once("index", str(error))

    def check(self) -> list[str]:
        """Return what is wrong with it. The background mends it."""
        self._embedding.log_again()
        self._retry_at = 0.0
        self.release()  # what is opened anew is looked at anew
        newest = self._index.newest()
        if newest is None or newest.stamp != self._embedding.stamp():
            return []
        if not newest.is_proven:
            return [_told(newest)]
        return [] if self.open() else [f"{self._failure}; every fact is compared instead"]

    def clear(self, reason: str) -> None:
        """Remove every byte of it; it is built anew in the background."""
        self.release()
        self._life += 1
        self._index.wait()
        self._index.clear()
        self._embedding.log("index", f"removed: {reason}")

    def close(self) -> None:
        """Close it for good, and stop what another thread is building."""
        self._is_closed = True
        self._life += 1
        self.release()
        self._index.wait()

    def release(self) -> None:
        """Close what is open; the next search opens it again."""
        if self._opened:
            with suppress(IndexUnavailableError):
                self._opened[1].close()
        self._opened = None


def _told(built: Generation) -> str:
    found = f"of what is nearest it finds {built.recall:.2%} (at least {RECALL:.1%} are wanted)"
    if built.is_proven:
        return f"built: {built.facts} facts; {found}"
    return f"not used: {found}, so every fact is compared instead. It is tried again with twice as many"
