"""Vectors of facts: stored in SQLite, and the nearest ones found.

SQLite is the truth. A generation of the vector index (`pager.vectors.indexing`) is asked for what it holds; the facts
that got their vectors after it, the tail, are held in memory and compared one by one. Without a generation all are.

A fact is found as soon as it is stored, also within its own transaction. The tail takes it over only after the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pager.store import Store
from pager.vectors import quantized
from pager.vectors.embedding import LARGEST_BATCH, UNEMBEDDED, Batch, Embedding, mark_unembedded
from pager.vectors.index import Generation, IndexUnavailableError
from pager.vectors.indexing import Indexing
from pager.vectors.quantized import Int8Matrix, quantize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pager.vectors.chroma.collection import LocalCollection, ServerCollection
    from pager.vectors.embedder import Meaning
    from pager.vectors.index import Vectors

    Cosines = list[tuple[int, float]]
    Opened = tuple[Generation, LocalCollection | ServerCollection]

READ_AT_ONCE = 4096  # vectors


class FactVectors:
    """Stores the vectors of facts and finds facts by them. A failure of the embedder or the index raises nothing."""

    def __init__(self, store: Store, embedding: Embedding, indexing: Indexing) -> None:
        self._store = store
        self.embedding = embedding
        self.indexing = indexing
        self.reset()

    def reset(self) -> None:
        """Read again what is cached: an interrupt may have left it half done."""
        self._stamp: str | None = None
        self._tails: dict[int, Tail] = {}  # by the row behind which they begin

    def store(self, fact: int, meaning: Meaning) -> None:
        """Store a fact's vectors, in the caller's transaction. One of another length is made again later."""
        self.embedding.check_embedder()
        if self.embedding.has_current_length(meaning.vector):
            self._store_one(fact, meaning)
        else:
            mark_unembedded(self._store)

    def copy(self, fact: int, to: int) -> None:
        """Store the vectors of a fact for one that says the same, in the caller's transaction; later if it has none."""
        self.embedding.check_embedder()
        self._store.archive.copy_vectors(fact, to)
        mark_unembedded(self._store)

    def _store_one(self, fact: int, meaning: Meaning) -> None:
        self._store.archive.store_vectors(fact, meaning.vector, meaning.tokens and quantized.pack(meaning.tokens))

    def next_batch(self, limit: int) -> Batch:
        """Return the oldest facts without a vector: the embedder failed, or was another one."""
        self.embedding.check_committed()
        if not self._store.settings.get(UNEMBEDDED):
            return self.embedding.batch([])
        texts = self._store.archive.without_vector(limit, tokens=self.embedding.has_tokens)
        if not texts:
            self._store.settings.put(UNEMBEDDED, None)
        return self.embedding.batch(texts)

    def store_batch(self, batch: Batch, meanings: Sequence[Meaning]) -> None:
        """Store the vectors of a batch, unless it is out of date."""
        with self._store.transaction():
            if self.embedding.is_current(batch, meanings):
                self.embedding.check_embedder()
                for (fact, _), meaning in zip(batch.texts, meanings, strict=True):
                    self._store_one(fact, meaning)

    def embed_pending(self, limit: int) -> None:
        """Embed up to `limit` facts that have no vector. Raises EmbedderUnavailableError."""
        done = 0
        while done < limit and (batch := self.next_batch(min(LARGEST_BATCH, limit - done))).texts:
            self.store_batch(batch, self.embedding.embed_batch(batch))
            done += len(batch.texts)

    def count_pending(self) -> int:
        """Return the number of facts without a vector."""
        if not self._store.settings.get(UNEMBEDDED):
            return 0
        return self._store.archive.count_without_vector(tokens=self.embedding.has_tokens)

    def nearest(self, vector: Vectors, limit: int, opened: Opened | None) -> Cosines:
        """Return the facts nearest to a vector, best first, true or not.

        `opened` is the generation to ask (`indexing.open`). Without it every vector is compared, cosines are right to a
        thousandth, and there are more than `limit` where that does not decide.
        """
        stamp = self.embedding.stamp()
        if stamp is None:
            return []
        if stamp != self._stamp:
            self._stamp, self._tails = stamp, {}
        found: dict[int, float] = {}
        begin = 0
        if opened:
            generation, collection = opened
            try:
                if generation.facts:
                    found = dict(collection.query(vector, min(limit, generation.facts)))
                begin = generation.through
            except IndexUnavailableError as error:
                self.indexing.fail(generation, error)
        behind = dict(self._tail(begin).nearest(vector, limit))
        if opened is None:
            return _best_first(behind)
        return _best_first(found | dict(self.cosines_of(list(behind), vector)))[:limit]

    def _tail(self, begin: int) -> Tail:
        if begin not in self._tails:
            # With a new generation the others have served; one of all facts (for a question about the past) is added.
            self._tails = {begin: Tail(self._store, begin)} | (self._tails if not begin else {})
        return self._tails[begin]

    def cosines_of(self, facts: Sequence[int], vector: Vectors) -> Cosines:
        """Return the exact cosines of these facts, best first."""
        if not facts or not self.embedding.vectors_match():
            return []
        ids, matrix = self._store.archive.vectors(facts)
        return _best_first(dict(zip(ids, (matrix @ vector).tolist(), strict=True))) if ids else []

    def clear(self, reason: str) -> None:
        """Remove everything that was made from vectors, on disk and in memory; the vectors themselves stay."""
        self.reset()
        self.indexing.clear(reason)


class Tail:
    """All vectors behind a row, in memory. Holds what is committed; finds what is not, too."""

    def __init__(self, store: Store, begin: int) -> None:
        self._store = store
        self._last = begin
        self._matrix: Int8Matrix | None = None

    def nearest(self, vector: Vectors, limit: int) -> Cosines:
        """Return the nearest facts: at least `limit` if there are so many, and all that are as near as the last."""
        is_open = self._store.in_transaction
        if not is_open:  # what may be rolled back must not be kept
            while (fresh := self._store.archive.vectors_after(self._last, READ_AT_ONCE))[1]:
                self._last, facts, vectors = fresh
                self._matrix = _extended(self._matrix, facts, vectors)
        found, least = list[tuple[int, float]](), -2.0
        if self._matrix:
            found = self._matrix.nearest(vector, limit)
            if len(found) < len(self._matrix.ids):
                least = min(cosine for _, cosine in found)  # of what is farther, not all is here
        if is_open:
            _, facts, vectors = self._store.archive.vectors_after(self._last, -1)
            if facts:
                fresh = _extended(None, facts, vectors).nearest(vector, len(facts))
                found += [(fact, cosine) for fact, cosine in fresh if cosine >= least]
        return found


def _extended(matrix: Int8Matrix | None, facts: Sequence[int], vectors: Vectors) -> Int8Matrix:
    matrix = matrix or Int8Matrix(vectors.shape[1])
    matrix.extend(facts, *quantize(vectors))
    return matrix


def _best_first(found: dict[int, float]) -> Cosines:
    return sorted(found.items(), key=lambda hit: (-hit[1], -hit[0]))
