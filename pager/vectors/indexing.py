"""The vector index beside the memory: who opens, builds and extends it, and when. Never somebody who waits.

A search asks it for what is too much to be compared (`pager.vectors.facts`), if it is ready. What takes time is a task,
chosen in a turn (`next_task`), run in none (`run`: the index reads over a connection of its own), and taken note of in
the next one (`done`). Every failure of the index is told to the ledger and survived.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pager.errors import StorageError
from pager.store import Store
from pager.vectors.embedder import Embedder
from pager.vectors.embedding import Embedding
from pager.vectors.index import IndexUnavailableError, OpenReport, Stop, Stopped, VectorIndex, never

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

BATCH = 256  # vectors that wait in SQLite until the index takes them; fewer than that need no index at all
EXTENDED_AT_ONCE = 32  # for so long every thread stands still: some hundredths of a second
REBUILT_AT = 4000  # vectors that are in no flushed file: to be written, or to be replayed by the next opening;
REBUILT_SHARE = 8  # or, of many, one in so many. Then all are written anew, by a process of its own


class StoredVectors:
    """The store as the source of an index (`pager.vectors.index.VectorSource`), in any thread: it reads what is committed over
    a connection of its own."""

    def __init__(self, reader: Callable[[], Store], embedder: Embedder) -> None:
        self._reader = reader
        self._embedder = embedder

    @property
    def fingerprint(self) -> str:
        with closing(self._reader()) as store:
            return f"{self._embedder.fingerprint}#{store.settings.get('purges') or 0}"

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def count(self, through: int) -> int:
        with closing(self._reader()) as store:
            return store.archive.count_vectors(through)

    def last_id(self) -> int:
        with closing(self._reader()) as store:
            return store.archive.last_vector()

    def batches(self, after: int, size: int) -> Iterator[tuple[list[int], Vectors]]:
        while True:
            with closing(self._reader()) as store:
                ids, vectors = store.archive.vectors_after(after, size)
            if not ids:
                return
            yield ids, vectors
            after = ids[-1]


Outcome = OpenReport | IndexUnavailableError | int | None


class Task(NamedTuple):
    act: Callable[[], Outcome]
    life: int  # that the index had when the task was chosen

    def run(self) -> Outcome:
        try:
            return self.act()
        except IndexUnavailableError as error:
            return error


class Indexing:
    """The index as its memory sees it. All but a task's `run` takes a turn."""

    def __init__(self, store: Store, embedding: Embedding, index: VectorIndex) -> None:
        self._store = store
        self._embedding = embedding
        self._index = index
        self._is_open = False
        self._life = 0  # counts what makes a task's outcome worthless
        self._is_halted = False
        self._dropped = embedding.times_dropped

    # what a search asks

    @property
    def is_open(self) -> bool:
        """Whether it may be asked. What was embedded anew since is unknown to it."""
        return self._is_open and self._dropped == self._embedding.times_dropped

    def through(self) -> int:
        """It holds every committed vector up to this fact."""
        return self._index.through() if self.is_open else 0

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        if not self.is_open:
            return []
        try:
            return self._index.query(vector, limit)
        except IndexUnavailableError as error:
            self._broken(error)
            return []

    def late(self, facts: Sequence[int], vectors: Vectors) -> None:
        """Facts that are not new have a vector now."""
        if not self.is_open:
            self._life += 1  # whoever opens it at this moment may have passed their places
            return
        try:
            self._index.upsert(facts, vectors)
        except IndexUnavailableError as error:
            self._broken(error)

    # what nobody waits for

    def next_task(self, stop: Stop, *, whole: bool = False) -> Task | None:
        """What there is to do, if it is worth it; with `whole` down to the last vector."""
        if self._is_halted or self._store.in_transaction or not self._embedding.is_settled:
            return None
        if self._dropped != self._embedding.times_dropped:
            self.clear("all is embedded anew")

        def halt() -> bool:
            return self._is_halted or stop()

        stored = self._store.archive.last_vector()
        if not self._is_open:
            return Task(partial(self._index.open, halt), self._life) if stored >= BATCH else None
        behind, replay = stored - self._index.through(), self._index.pending_replay()
        if behind + replay >= (1 if whole else max(REBUILT_AT, stored // REBUILT_SHARE)):
            return Task(partial(self._index.compact, halt), self._life)
        return Task(partial(self._index.extend, EXTENDED_AT_ONCE), self._life) if behind >= BATCH else None

    def done(self, task: Task, outcome: Outcome) -> bool:
        """Whether it came to something, so that there may be more to do."""
        if isinstance(outcome, Stopped) or outcome == 0:
            return False
        if task.life != self._life:
            self._index.close()  # the next opening counts what it holds
            return not self._is_halted
        if isinstance(outcome, IndexUnavailableError):
            self._broken(outcome)
            return False
        if isinstance(outcome, OpenReport):
            self._is_open = True
            self._embedding.forget_told("index")
            if outcome.outcome == "rebuilt":
                self._embedding.note("index", f"rebuilt: {outcome.reason}")
        return True

    def _broken(self, error: IndexUnavailableError) -> None:
        self._is_open = False
        self._embedding.tell("index", str(error))

    def check(self, *, fix: bool) -> list[tuple[str, bool]]:
        """What is wrong with it, and whether it was mended. Opening it already mends what is broken."""
        if self._store.archive.last_vector() < BATCH or not self._embedding.is_settled:
            return []
        self._embedding.forget_told()
        while not self._is_open and (task := self.next_task(never)):
            if not self.done(task, task.run()):
                return [("the vector index cannot be opened; search goes on from pager.db", False)]
        held, should = self.through(), self._store.archive.last_vector()
        if should - held < 2 * BATCH:
            return []
        while fix and (task := self.next_task(never)) and self.done(task, task.run()):
            pass
        return [(f"the vector index holds facts up to f{held} of f{should}", fix)]

    # its end

    def clear(self, reason: str) -> None:
        """No byte of it is left; it is built anew when nobody waits."""
        with self._halted():
            self._life, self._is_open, self._dropped = self._life + 1, False, self._embedding.times_dropped
            try:
                self._index.clear()
            except IndexUnavailableError as error:
                raise StorageError(f"{error}. Check the rights on its files, and try again.") from error
        self._embedding.note("index", f"removed: {reason}")

    def look_again(self) -> None:
        """It may have been told by halves: the next opening counts what it holds."""
        with self._halted():
            self._life, self._is_open = self._life + 1, False
            self._index.close()

    def close(self) -> None:
        self._is_halted, self._is_open = True, False
        self._index.close()

    @contextmanager
    def _halted(self) -> Generator[None]:
        """What another thread is building stops."""
        self._is_halted = True
        try:
            yield
        finally:
            self._is_halted = False
