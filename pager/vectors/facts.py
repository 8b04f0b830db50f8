"""Vectors of facts: stored in SQLite, and found by comparing them one by one.

SQLite is the truth. The newest `EXACT` vectors are held in memory and compared themselves (the tail), which takes a
hundredth of a second. The vector index (`pager.vectors.indexing`) answers for older ones only, when it is open: it is
a copy that may be missing, behind or broken, and an approximate one. Among thousands of facts that are alike, or
versions of one fact, its graph loses what lies apart from them.

A fact is found as soon as it is stored, also within its own transaction. The tail and the index take it over only after
the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pager.store import Store
from pager.vectors.embedding import LARGEST_BATCH, UNEMBEDDED, Batch, Embedding, mark_unembedded
from pager.vectors.indexing import Indexing
from pager.vectors.int8_matrix import Int8Matrix, quantize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pager.vectors.index import Vectors

    Cosines = list[tuple[int, float]]


EXACT = 100_000  # facts
TAIL_STEPS = 8  # with an open index the tail drops its oldest facts in steps of EXACT / TAIL_STEPS
READ_AT_ONCE = 4096  # vectors
LATE = "vectors_late"  # the setting how often facts that were not new got their vectors. Readers look at it


class FactVectors:
    """Stores the vectors of facts and finds facts by them. A failure of the embedder or the index raises nothing."""

    def __init__(self, store: Store, embedding: Embedding, indexing: Indexing | None) -> None:
        self._store = store
        self.embedding = embedding
        self.indexing = indexing
        self._tail = Tail(store)
        self._drops = embedding.drops
        self._revision: int | None = None  # of the database, when a reader last updated the tail
        self._late: str | None = None
        self._has_new = True  # something was stored since the tail was updated
        self._through: int = 0  # how far the index went then

    def store(self, fact: int, vector: Vectors) -> None:
        """Store a fact's vector, in the caller's transaction. One of another length is made again later."""
        self.embedding.check_embedder()
        if self.embedding.has_current_length(vector):
            self._has_new = True
            self._store.archive.store_vector(fact, vector)
        else:
            mark_unembedded(self._store)

    def next_batch(self, limit: int) -> Batch:
        """Return the oldest facts without a vector: the embedder failed, or was another one."""
        self.embedding.check_committed()
        if not self._store.settings.get(UNEMBEDDED):
            return self.embedding.batch([])
        texts = self._store.archive.without_vector(limit)
        if not texts:
            self._store.settings.put(UNEMBEDDED, None)
        return self.embedding.batch(texts)

    def store_batch(self, batch: Batch, rows: Vectors) -> None:
        """Store the vectors of a batch, unless it is out of date."""
        facts = [fact for fact, _ in batch.texts]
        with self._store.transaction():
            if not self.embedding.is_current(batch, rows):
                return
            self.embedding.check_embedder()
            self._store.settings.put(LATE, str(int(self._store.settings.get(LATE) or 0) + 1))
            for fact, vector in zip(facts, rows, strict=True):
                self._store.archive.store_vector(fact, vector)
            self._store.after_commit(lambda: self._add_late(facts))

    def embed_pending(self, limit: int) -> None:
        """Embed up to `limit` facts that have no vector. Raises EmbedderUnavailableError."""
        done = 0
        while done < limit and (batch := self.next_batch(min(LARGEST_BATCH, limit - done))).texts:
            self.store_batch(batch, self.embedding.embed_batch(batch))
            done += len(batch.texts)

    def _add_late(self, facts: Sequence[int]) -> None:
        self._reset_tail()  # they are not at its end: the next search reads it again
        if self.indexing:
            self.indexing.add_late(facts)

    def count_pending(self) -> int:
        """Return the number of facts without a vector."""
        return self._store.archive.count_without_vector() if self._store.settings.get(UNEMBEDDED) else 0

    def nearest(self, vector: Vectors, limit: int) -> Cosines:
        """Return the facts nearest to a vector, best first, true or not; cosines are right to a thousandth."""
        if not self.embedding.vectors_match():
            return []
        # In a transaction after its commit: what may be rolled back must not get into the tail.
        self._store.after_commit(self._update_tail)
        found: dict[int, float] = {}
        if self.indexing and self._tail_begin():
            found = dict(self.indexing.query(vector, limit))
        tail = self._tail if self._drops == self.embedding.drops else Tail(self._store)
        # `_tail_begin` is read again: if the index has just failed, everything is compared.
        found |= tail.nearest(vector, limit, self._tail_begin())
        return _best_first(found)[:limit]

    def cosines_of(self, facts: Sequence[int], vector: Vectors) -> Cosines:
        """Return the exact cosines of these facts, best first."""
        if not facts or not self.embedding.vectors_match():
            return []
        ids, matrix = self._store.archive.vectors(facts)
        return _best_first(dict(zip(ids, (matrix @ vector).tolist(), strict=True))) if ids else []

    def _update_tail(self) -> None:
        self._reset_if_dropped()
        through = self._index_through()
        if self._store.read_only:
            revision = self._store.revision()
            self._has_new = revision != self._revision
            if self._has_new and (late := self._store.settings.get(LATE)) != self._late:
                self._late = late
                self._tail.reset()
            self._revision = revision
        if not self._has_new and through == self._through:
            return
        step = max(1, EXACT // TAIL_STEPS)
        begin = max(0, self._store.archive.last_vector() - EXACT) // step * step if through else 0
        self._tail.update(min(begin, through))
        self._has_new, self._through = False, through

    def _tail_begin(self) -> int:
        """Return the fact behind which the tail must be compared: the index holds all up to it."""
        return self._tail.begin if self._tail.begin and self._index_through() >= self._tail.begin else 0

    def _index_through(self) -> int:
        return self.indexing.through() if self.indexing and self.indexing.live else 0

    def _reset_if_dropped(self) -> None:
        if self._drops != self.embedding.drops:
            self._drops = self.embedding.drops
            self._reset_tail()

    def _reset_tail(self) -> None:
        self._tail.reset()
        self._has_new = True

    def reset(self) -> None:
        """Read again what is cached: an interrupt may have left it half done."""
        self._reset_tail()
        if self.indexing:
            self.indexing.reset()

    def clear(self, reason: str) -> None:
        """Remove everything that was made from vectors, on disk and in memory; the vectors themselves stay."""
        self._reset_tail()
        if self.indexing:
            self.indexing.clear(reason)

    def check(self) -> list[str]:
        """Return what is wrong with the index."""
        return self.indexing.check() if self.indexing else []

    def close(self) -> None:
        """Close the index, if there is one."""
        if self.indexing:
            self.indexing.close()


class Tail:
    """The vectors of all facts behind one, in memory. Holds what is committed; finds what is not, too."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reset()

    def reset(self) -> None:
        """Drop everything; the next `update` reads it again."""
        self.begin = 0  # the fact behind which the tail begins
        self._last = 0  # the last fact that was read
        self._matrix: Int8Matrix | None = None

    def update(self, begin: int) -> None:
        """Begin behind this fact, and read up to the newest vector. Everything stored must be committed."""
        if begin != self.begin:
            self.reset()
            self.begin = self._last = begin
        while (fresh := self._store.archive.vectors_after(self._last, READ_AT_ONCE))[0]:
            facts, vectors = fresh
            self._matrix = self._matrix or Int8Matrix(vectors.shape[1])
            self._matrix.extend(facts, *quantize(vectors))
            self._last = facts[-1]

    def nearest(self, vector: Vectors, limit: int, begin: int) -> Cosines:
        """Return the nearest facts behind `begin`: at least `limit` if there are so many, and all equal ones."""
        is_covered = self.begin <= begin  # or the index has just failed
        found = self._matrix.nearest(vector, limit) if is_covered and self._matrix is not None else []
        if self._store.in_transaction or not is_covered:
            ids, rows = self._store.archive.vectors_after(self._last if is_covered else begin, -1)
            if ids:
                beyond = Int8Matrix(rows.shape[1])
                beyond.extend(ids, *quantize(rows))
                found += beyond.nearest(vector, limit)
        return found


def _best_first(found: dict[int, float]) -> Cosines:
    return sorted(found.items(), key=lambda hit: (-hit[1], -hit[0]))
