"""The source of a vector index, and its failures.

An index is a cache. Every vector is in pager.db (a `VectorSource`), so an index can be deleted and built anew at any
time, and it is never the only way to a fact: what it does not hold yet is compared from the source, and everything is
after IndexUnavailableError.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING

from pager.errors import PagerError
from pager.store import Store
from pager.vectors.embedder import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]  # one row per id

Stop = Callable[[], bool]  # called now and then by what takes long; True ends it with BuildCancelledError
READ_AT_ONCE = 2_048  # vectors; fewer would be flushed more often


class IndexUnavailableError(PagerError):
    """The index cannot answer now. The source can, so nothing is lost."""


class BuildCancelledError(IndexUnavailableError):
    """The caller's `stop` ended it before it was done. Nothing is wrong."""


def never() -> bool:
    """Return False: a `Stop` that does not stop."""
    return False


class VectorSource:
    """The committed vectors of a memory, by increasing id, for any thread: over connections of its own."""

    def __init__(self, reader: Callable[[], Store], embedder: Embedder) -> None:
        self._reader = reader
        self._embedder = embedder

    def extent(self, through: int | None = None) -> tuple[str, int, int]:
        """Return what makes old copies worthless when it changes, the last id, and the number of vectors up to it.

        The first is the embedder and the number of purges. With `through` that is taken as the last id.
        """
        with closing(self._reader()) as store:
            purges = store.settings.get("purges") or 0
            fingerprint = f"{self._embedder.fingerprint} {store.archive.dimension()}#{purges}"
            last = store.archive.last_vector() if through is None else through
            return fingerprint, last, store.archive.count_vectors(last)

    def batches(self, through: int) -> Generator[tuple[list[int], Vectors]]:
        """Yield every vector with an id <= through, ascending."""
        after = 0
        with closing(self._reader()) as store:
            while after < through:
                ids, vectors = store.archive.vectors_after(after, READ_AT_ONCE)
                rows = sum(each <= through for each in ids)
                if not rows:
                    return
                yield ids[:rows], vectors[:rows]
                after = ids[-1]
