"""Opens and builds the vector index, in the background only.

A search asks the index, if it is open, for facts that are too many to be compared (`pager.vectors.facts`). What takes
time is a task. It is chosen under the lock (`next_task`), runs without it (`run`: the index reads over a connection of
its own), and its outcome is applied under the lock (`finish`). A failure of the index is written to the ledger and
costs nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pager.errors import StorageError
from pager.store import Store
from pager.vectors.embedding import Embedding
from pager.vectors.index import BuildCancelledError, IndexUnavailableError, Stop, never

if TYPE_CHECKING:
    from pager.vectors.chroma.index import ChromaIndex, LiveGeneration
    from pager.vectors.index import Vectors

BATCH = 256  # fewer facts need no index at all
REBUILT_SHARE = 4  # it is built anew when it lacks one fact for so many that it holds, and at least BATCH
RETRY_S = 60  # after a failure


class Task(NamedTuple):
    """Work on the index that takes time."""

    act: Callable[[Stop], LiveGeneration]
    stop: Stop
    life: int  # the life of the index in which the task was chosen

    def run(self) -> LiveGeneration | IndexUnavailableError:
        """Do it, without the memory's lock."""
        try:
            return self.act(self.stop)
        except IndexUnavailableError as error:
            return error


class Indexing:
    """The index of one memory. Everything but a task's `run` needs the memory's lock."""

    def __init__(self, store: Store, embedding: Embedding, index: ChromaIndex) -> None:
        self._store = store
        self._embedding = embedding
        self._index = index
        self.live: LiveGeneration | None = None
        self._is_broken = False  # the live generation failed in use
        self._life = 0  # a task's outcome counts only in the life in which it was chosen
        self._is_halted = False
        self._drops = embedding.drops
        self._retry_at = 0.0

    def through(self) -> int:
        """Return the fact up to which it holds every committed vector; 0 while it cannot be asked."""
        return self.live.through if self.live and self._drops == self._embedding.drops else 0

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Return facts near a vector, best first; none if the index fails."""
        try:
            return self.live.collection.query(vector, limit) if self.live else []
        except IndexUnavailableError as error:
            self._end_life()
            self._is_broken = True
            self._fail(error)
            return []

    def add_late(self, facts: Sequence[int]) -> None:
        """Close it if one of these facts, whose vectors came late, should be in it; the next opening builds it anew."""
        if min(facts) <= self.through():
            self._end_life()
        self._life += 1  # a build that runs at this moment may have passed their places

    def next_task(self, stop: Stop, *, whole: bool = False) -> Task | None:
        """Return the next task, if there is one that is worth it; with `whole` down to the last vector."""
        if self._is_halted or self._store.in_transaction or not self._embedding.vectors_match():
            return None
        if self._drops != self._embedding.drops:
            self.clear("all is embedded anew")
        stored = self._store.archive.last_vector()
        if stored < BATCH or time.monotonic() < self._retry_at:
            return None
        if self.live is None:
            act = self._index.build if self._is_broken else self._index.open
        elif stored - self.live.through >= (1 if whole else max(BATCH, self.live.through // REBUILT_SHARE)):
            act = self._index.build
        else:
            return None
        return Task(act, lambda: self._is_halted or stop(), self._life)

    def finish(self, task: Task, outcome: LiveGeneration | IndexUnavailableError) -> bool:
        """Apply a task's outcome. Return True if there may be more to do."""
        if isinstance(outcome, BuildCancelledError):
            return False
        if task.life != self._life:
            if not isinstance(outcome, IndexUnavailableError):
                outcome.close()  # the next opening counts what it holds
            return not self._is_halted
        if isinstance(outcome, IndexUnavailableError):
            self._fail(outcome)
            return False
        if self.live:
            self.live.discard()
        self.live, self._is_broken = outcome, False
        self._embedding.log_again("index")
        if outcome.built_because:
            self._embedding.log("index", f"rebuilt: {outcome.built_because}")
        return True

    def _fail(self, error: IndexUnavailableError) -> None:
        self._retry_at = time.monotonic() + RETRY_S
        self._embedding.log_once("index", str(error))

    def check(self) -> list[str]:
        """Return what is wrong with it, and cannot be mended by opening it."""
        if self._store.archive.last_vector() < BATCH or not self._embedding.vectors_match():
            return []
        self._embedding.log_again()
        self._retry_at = 0.0
        while self.live is None and (task := self.next_task(never)):
            if not self.finish(task, task.run()):
                return ["the vector index cannot be opened; search goes on from pager.db"]
        return []

    def clear(self, reason: str) -> None:
        """Remove every byte of it; it is built anew in the background."""
        with self._halted():
            self._drops, self._is_broken = self._embedding.drops, False
            try:
                self._index.clear()
            except IndexUnavailableError as error:
                raise StorageError(f"{error}. Check the rights on its files, and try again.") from error
        self._embedding.log("index", f"removed: {reason}")

    def reset(self) -> None:
        """Close it, because an interrupt may have cut an update off: the next opening counts what it holds."""
        with self._halted():
            self._index.wait()

    def close(self) -> None:
        """Close it for good, and stop what another thread is building."""
        self._is_halted = True
        self._end_life()
        self._index.wait()

    @contextmanager
    def _halted(self) -> Generator[None]:
        self._is_halted = True
        self._end_life()
        try:
            yield
        finally:
            self._is_halted = False

    def _end_life(self) -> None:
        self._life += 1
        if self.live:
            self.live.close()
        self.live = None
