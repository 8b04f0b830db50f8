"""The seam for the vector index: what the memory asks of any index, and what an index may ask of the memory.

An index is a cache. Every vector lives in pager.db (a `VectorSource`); an index holds copies of them and
nothing else, so it can be thrown away and rebuilt at any time, and it is never the only way to a fact.

Rules of its use:

- Ids are positive and increasing, and the vector of an id never changes. Vectors are float32 of length one.
- The index is written behind the source's commit: `extend()` after a commit, or later, or never.
- What the index does not hold yet (ids beyond `through()`) the caller scores from the source, so a committed
  fact is found at once. `IndexUnavailableError` is survived the same way, with everything from the source.
- Only `open()` opens, builds and mends, which may take long: nobody calls it who is waited for. Whatever else needs an
  open index says IndexUnavailableError while it is not.
- One process at a time uses an index; its threads may share one object. The source is read in whichever thread that is.
- The source's `fingerprint` stands for everything that makes old copies worthless. Put the number of purges
  into it, and a crash between a purge and its rebuild is healed by the next `open()`.

tests/contract/test_vector_index.py holds these rules; every implementation must pass it.
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

Stop = Callable[[], bool]  # asked now and then by what takes long; True ends it with Stopped


class IndexUnavailableError(PagerError):
    """The index cannot answer now; the source can. Nothing is lost."""


class Stopped(IndexUnavailableError):
    """Somebody wanted it to end before it was done. Nothing is wrong."""


def never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class OpenReport:
    """What `open()` had to do, for the ledger."""

    outcome: Literal["reused", "rebuilt"]
    reason: str
    quarantine: str | None = None  # the directory in which the broken index was kept, if it was


class VectorSource(Protocol):
    """Where vectors really live."""

    @property
    def fingerprint(self) -> str:
        """Which embedder made them (and whatever else makes old copies worthless)."""
        ...

    @property
    def dimension(self) -> int: ...

    def count(self, through: int) -> int:
        """How many vectors have an id <= through."""
        ...

    def last_id(self) -> int:
        """The highest id that has a vector; 0 when there is none."""
        ...

    def batches(self, after: int, size: int) -> Iterator[tuple[list[int], Vectors]]:
        """Every vector with an id > after, ascending, at most `size` at a time."""
        ...


@runtime_checkable
class VectorIndex(Protocol):
    """A cache of the source's vectors that finds the nearest ones."""

    def through(self) -> int:
        """Every vector of the source with an id <= this is in the index. 0: nothing, or not open. While it is open
        this never goes back."""
        ...

    def open(self, stop: Stop = never) -> OpenReport:
        """Makes the index usable: reuses what is there or rebuilds it, and says which. Calling it again
        costs nothing and repeats the report; after a failure it costs nothing either, for a while."""
        ...

    def extend(self, limit: int | None = None) -> int:
        """Copies what the source has beyond `through()`, oldest first, at most `limit`; how many it was."""
        ...

    def upsert(self, ids: Sequence[int], vectors: Vectors) -> None:
        """Copies vectors that came late, for ids <= `through()`. Other ids are left to `extend()`."""
        ...

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """The ids nearest to `vector` with their cosine similarity, best first; at most `limit`. May name
        ids that the source has lost since, if `clear` was not called."""
        ...

    def pending_replay(self) -> int:
        """How many entries the next opening has to replay. `compact()` makes it 0. 0, too, when not open."""
        ...

    def compact(self, stop: Stop = never) -> None:
        """Makes the next opening fast, with all that the source has. Costs about as much as a rebuild; other
        threads' queries go on meanwhile."""
        ...

    def clear(self) -> None:
        """No byte of it stays on disk, quarantine included. It is closed; the next `open()` builds it anew. Waits for
        what another thread is building: make that stop first."""
        ...

    def close(self) -> None:
        """Marks the index as cleanly closed. It can be opened again. The index's own trouble is no error
        here: the next opening finds it. Waits as `clear` does."""
        ...
