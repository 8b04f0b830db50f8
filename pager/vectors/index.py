"""The protocol of a vector index: what the memory calls on an index, and what an index may read of the memory.

An index is a cache. Every vector is in pager.db (a `VectorSource`). An index holds copies and nothing else, so it can
be deleted and rebuilt at any time, and it is never the only way to a fact.

Rules of its use:

- Ids are positive and increasing, and the vector of an id never changes. Vectors are float32 of length one.
- The index is written after the source's commit: `extend()` comes after it, or later, or never.
- The caller compares what the index does not hold yet (ids beyond `through()`) from the source, so a committed fact is
  found at once. After IndexUnavailableError it compares everything from the source.
- Only `open()` opens, builds and mends, which may take long: it is called in the background. Every other call raises
  IndexUnavailableError while the index is not open.
- One process at a time uses an index; its threads may share one object. The source is read in any of these threads.
- The source's `fingerprint` stands for everything that makes old copies worthless, such as the number of purges: so
  the next `open()` mends a crash between a purge and its rebuild.

tests/contract/test_vector_index.py checks these rules; every implementation must pass it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from pager.errors import PagerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]  # one row per id

Stop = Callable[[], bool]  # called now and then by what takes long; True ends it with Stopped


class IndexUnavailableError(PagerError):
    """The index cannot answer now. The source can, so nothing is lost."""


class Stopped(IndexUnavailableError):
    """The caller's `stop` ended it before it was done. Nothing is wrong."""


def never() -> bool:
    """Return False: a `Stop` that does not stop."""
    return False


@dataclass(frozen=True, slots=True)
class OpenReport:
    """What `open()` did, for the ledger."""

    outcome: Literal["reused", "rebuilt"]
    reason: str
    quarantine: str | None = None  # the directory in which the broken index was kept, if it was


class VectorSource(Protocol):
    """The vectors themselves, as the index reads them."""

    @property
    def fingerprint(self) -> str:
        """The embedder, and whatever else makes old copies worthless."""
        ...

    @property
    def dimension(self) -> int: ...

    def count(self, through: int) -> int:
        """Return the number of vectors with an id <= through."""
        ...

    def last_id(self) -> int:
        """Return the highest id that has a vector; 0 if there is none."""
        ...

    def batches(self, after: int, size: int) -> Iterator[tuple[list[int], Vectors]]:
        """Yield every vector with an id > after, ascending, at most `size` at a time."""
        ...


@runtime_checkable
class VectorIndex(Protocol):
    """A cache of the source's vectors that finds the nearest ones."""

    def through(self) -> int:
        """Return the id up to which it holds every vector; 0 if it holds none or is not open. It never goes back."""
        ...

    def open(self, stop: Stop = never) -> OpenReport:
        """Make the index usable: reuse what is there or rebuild it, and report which.

        Another call costs nothing and repeats the report; after a failure, for a while, the error.
        """
        ...

    def extend(self, limit: int | None = None) -> int:
        """Copy what the source has beyond `through()`, oldest first, at most `limit`; return how many it was."""
        ...

    def upsert(self, ids: Sequence[int], vectors: Vectors) -> None:
        """Copy vectors that came late, for ids <= `through()`. Other ids are left to `extend()`."""
        ...

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Return the ids nearest to `vector` with their cosines, best first. The source may have lost some since."""
        ...

    def pending_replay(self) -> int:
        """Return how many entries the next opening has to replay; 0 after `compact()`, and while it is not open."""
        ...

    def compact(self, stop: Stop = never) -> None:
        """Make the next opening fast, with all that the source has. Costs a rebuild; queries go on meanwhile."""
        ...

    def clear(self) -> None:
        """Close it and remove every byte of it from the disk, quarantine included.

        Waits for what another thread is building: stop that first.
        """
        ...

    def close(self) -> None:
        """Close it; it can be opened again. A failure of the index raises nothing: the next opening finds it.

        Waits as `clear` does.
        """
        ...
