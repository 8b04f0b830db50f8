"""When the vector index is opened, built and extended: in the background only.

A search asks the index, if it is open, for facts that are too many to be compared (`pager.vectors.facts`). What takes
time is a task. It is chosen under the lock (`next_task`), runs without it (`run`: the index reads over a connection of
its own), and its outcome is applied under the lock (`finish`). A failure of the index is written to the ledger and
costs nothing else.
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

BATCH = 256  # vectors that the index takes at a time; fewer facts need no index at all
EXTENDED_AT_ONCE = 32  # vectors: Chroma blocks every thread meanwhile, some hundredths of a second
# The index is written anew, by a child process, when so many vectors are in no flushed file (not written yet, or to be
# replayed by the next opening), or one in so many of all.
REBUILT_AT = 4000
REBUILT_SHARE = 8


class StoredVectors:
    """The VectorSource of a memory, for any thread: it reads what is committed, over a connection of its own."""

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
    """Work on the index that takes time."""

    act: Callable[[], Outcome]
    life: int  # the life of the index in which the task was chosen

    def run(self) -> Outcome:
        """Do it, without the memory's lock."""
        try:
            return self.act()
        except IndexUnavailableError as error:
            return error


class Indexing:
    """The index of one memory. Everything but a task's `run` needs the memory's lock."""

    def __init__(self, store: Store, embedding: Embedding, index: VectorIndex) -> None:
        self._store = store
        self._embedding = embedding
        self._index = index
        self.is_open = False
        self._life = 0  # a task's outcome counts only in the life in which it was chosen
        self._is_halted = False
        self._drops = embedding.drops

    # searching

    def through(self) -> int:
        """Return the fact up to which it holds every committed vector; 0 while it cannot be asked."""
        return self._index.through() if self._is_usable() else 0

    def _is_usable(self) -> bool:
        return self.is_open and self._drops == self._embedding.drops

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Return facts near a vector, best first; none if the index fails."""
        try:
            return self._index.query(vector, limit)
        except IndexUnavailableError as error:
            self._fail(error)
            return []

    def add_late(self, facts: Sequence[int], vectors: Vectors) -> None:
        """Take over the vectors of facts that are not new."""
        if not self._is_usable():
            self._life += 1  # a build that runs at this moment may have passed their places
            return
        try:
            self._index.upsert(facts, vectors)
        except IndexUnavailableError as error:
            self._fail(error)

    # background work

    def next_task(self, stop: Stop, *, whole: bool = False) -> Task | None:
        """Return the next task, if there is one that is worth it; with `whole` down to the last vector."""
        if self._is_halted or self._store.in_transaction or not self._embedding.vectors_match():
            return None
        if self._drops != self._embedding.drops:
            self.clear("all is embedded anew")

        def halt() -> bool:
            return self._is_halted or stop()

        stored = self._store.archive.last_vector()
        if not self.is_open:
            return Task(partial(self._index.open, halt), self._life) if stored >= BATCH else None
        behind, replay = stored - self._index.through(), self._index.pending_replay()
        if behind + replay >= (1 if whole else max(REBUILT_AT, stored // REBUILT_SHARE)):
            return Task(partial(self._index.compact, halt), self._life)
        return Task(partial(self._index.extend, EXTENDED_AT_ONCE), self._life) if behind >= BATCH else None

    def finish(self, task: Task, outcome: Outcome) -> bool:
        """Apply a task's outcome. Return True if there may be more to do."""
        if isinstance(outcome, Stopped) or outcome == 0:
            return False
        if task.life != self._life:
            self._index.close()  # the next opening counts what it holds
            return not self._is_halted
        if isinstance(outcome, IndexUnavailableError):
            self._fail(outcome)
            return False
        if isinstance(outcome, OpenReport):
            self.is_open = True
            self._embedding.log_again("index")
            if outcome.outcome == "rebuilt":
                self._embedding.log("index", f"rebuilt: {outcome.reason}")
        return True

    def _fail(self, error: IndexUnavailableError) -> None:
        self.is_open = False
        self._embedding.log_once("index", str(error))

    def check(self, *, fix: bool) -> list[tuple[str, bool]]:
        """Return what is wrong with it, each with True if it was mended. Opening it mends what is broken."""
        if self._store.archive.last_vector() < BATCH or not self._embedding.vectors_match():
            return []
        self._embedding.log_again()
        while not self.is_open and (task := self.next_task(never)):
            if not self.finish(task, task.run()):
                return [("the vector index cannot be opened; search goes on from pager.db", False)]
        held, should = self.through(), self._store.archive.last_vector()
        if should - held < 2 * BATCH:
            return []
        while fix and (task := self.next_task(never)) and self.finish(task, task.run()):
            pass
        return [(f"the vector index holds facts up to f{held} of f{should}", fix)]

    # closing

    def clear(self, reason: str) -> None:
        """Remove every byte of it; it is built anew in the background."""
        with self._halted():
            self._life, self.is_open, self._drops = self._life + 1, False, self._embedding.drops
            try:
                self._index.clear()
            except IndexUnavailableError as error:
                raise StorageError(f"{error}. Check the rights on its files, and try again.") from error
        self._embedding.log("index", f"removed: {reason}")

    def reset(self) -> None:
        """Close it, because an interrupt may have cut an update off: the next opening counts what it holds."""
        with self._halted():
            self._life, self.is_open = self._life + 1, False
            self._index.close()

    def close(self) -> None:
        """Close it for good, and stop what another thread is building."""
        self._is_halted, self.is_open = True, False
        self._index.close()

    @contextmanager
    def _halted(self) -> Generator[None]:
        """Stop what another thread is building."""
        self._is_halted = True
        try:
            yield
        finally:
            self._is_halted = False
