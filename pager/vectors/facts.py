"""Meaning: facts as vectors, found by comparing them one by one, and the oldest of very many by the index.

`pager.db` is the truth; the index is a copy that may be missing, behind or broken, and it is approximate: among
thousands that are alike, or versions of one fact, its graph loses what lies apart from them. So the newest `EXACT` are
compared themselves, which takes a hundredth of a second, and so is whatever the index does not hold: a fact that was
committed is found at once. What a transaction stored and may still undo is found in it, but neither the index nor the
tail learns of it before the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pager.store import Store
from pager.vectors.embedding import OWED, Batch, Embedding, owe_vector
from pager.vectors.indexing import Indexing
from pager.vectors.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


EXACT = 100_000  # facts
LATE = "vectors_late"  # the key in the journal of how often facts that were not new got their vectors: for readers
STEP = 8  # where there are more the tail moves on by an eighth of that at a time


class Meaning:
    """Stores what facts mean, and finds by it. Every failure of the embedder or the index is survived."""

    def __init__(self, store: Store, embedding: Embedding, indexing: Indexing | None) -> None:
        self._store = store
        self.embedding = embedding
        self.indexing = indexing
        self._tail = Tail(store)
        self._dropped = embedding.times_dropped
        self._late_known: str | None = None

    # writing

    def store(self, fact: int, vector: Vectors) -> None:
        """In the caller's transaction. The index follows when nobody waits."""
        self.embedding.settle()
        if self.embedding.fits(vector):
            self._store.archive.store_vector(fact, vector)
        else:
            owe_vector(self._store)

    def next_batch(self, limit: int) -> Batch:
        """Facts that have no vector yet (a failed or another embedder)."""
        with self._store.transaction():
            self.embedding.settle()
        if not self._store.settings.get(OWED):
            return self.embedding.batch([])
        found = self._store.archive.without_vector(limit)
        if not found:
            self._store.settings.put(OWED, None)
        return self.embedding.batch(found)

    def keep(self, batch: Batch, rows: Vectors) -> None:
        facts = [fact for fact, _ in batch.texts]
        with self._store.transaction():
            if not self.embedding.may_keep(batch, rows):
                return
            self.embedding.settle()
            self._store.settings.put(LATE, str(int(self._store.settings.get(LATE) or 0) + 1))
            for fact, vector in zip(facts, rows, strict=True):
                self._store.archive.store_vector(fact, vector)
            self._store.after_commit(lambda: self._late(facts, rows))

    def _late(self, facts: Sequence[int], rows: Vectors) -> None:
        self._forget_dropped()
        self._tail.late(facts, rows)
        if self.indexing:
            self.indexing.late(facts, rows)

    def waiting(self) -> int:
        return self._store.archive.count_without_vector() if self._store.settings.get(OWED) else 0

    # reading

    def near(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """The facts nearest to a vector, best first, whatever their validity; to a thousandth."""
        if not self.embedding.is_settled:
            return []
        # In a transaction after its commit: what may be rolled back is not for the tail.
        self._store.after_commit(self._follow)
        found = dict(self.indexing.query(vector, limit)) if self.indexing and self._after() else {}
        # Asked last: an index that broke holds nothing, and all is read.
        is_known = self._dropped == self.embedding.times_dropped
        tail = self._tail if is_known else Tail(self._store)
        found |= tail.near(vector, limit, self._after())
        return _best_first(found)[:limit]

    def among(self, facts: Sequence[int], vector: Vectors) -> list[tuple[int, float]]:
        """These facts by their nearness, exactly, from SQLite."""
        if not self.embedding.is_settled:
            return []
        ids, matrix = self._store.archive.vectors(facts)
        return _best_first(dict(zip(ids, (matrix @ vector).tolist(), strict=True))) if ids else []

    def _follow(self) -> None:
        self._forget_dropped()
        if self._store.read_only and (late := self._store.settings.get(LATE)) != self._late_known:
            self._late_known = late
            self._tail.forget()
        self._tail.follow(self._after())

    def _after(self) -> int:
        """Behind which fact the tail begins: the index holds all up to it."""
        if self.indexing is None:
            return 0
        step = max(1, EXACT // STEP)
        beyond = max(0, self._store.archive.last_vector() - EXACT) // step * step
        return min(beyond, self.indexing.through())

    def _forget_dropped(self) -> None:
        if self._dropped != self.embedding.times_dropped:
            self._dropped = self.embedding.times_dropped
            self._tail.forget()

    # upkeep

    def forget(self) -> None:
        """An interrupt cut something off: what is in memory is read anew."""
        self._tail.forget()
        if self.indexing:
            self.indexing.look_again()

    def clear(self, reason: str) -> None:
        """Nothing that was made from vectors is left but the vectors themselves."""
        self._tail.forget()
        if self.indexing:
            self.indexing.clear(reason)

    @property
    def dimension(self) -> int:
        return self.embedding.embedder.dimension

    def check(self, *, fix: bool) -> list[tuple[str, bool]]:
        """What is wrong with the index, and whether it was mended."""
        return self.indexing.check(fix=fix) if self.indexing else []

    def close(self) -> None:
        if self.indexing:
            self.indexing.close()


def _best_first(found: dict[int, float]) -> list[tuple[int, float]]:
    return sorted(found.items(), key=lambda hit: (-hit[1], -hit[0]))
