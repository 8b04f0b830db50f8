"""Meaning: facts as vectors, the index behind the commit, and what it does not hold yet from SQLite.

`pager.db` is the truth; the index is a copy that may be missing, behind or broken. A fact that was committed is found
at once: whatever lies beyond the index's `through()` is scored here. What a transaction stored and may still undo
is found in it, but neither the index nor the tail learns of it before the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pager.embedder import Embedder
from pager.embedding import OWED, Batch, Embedding
from pager.index import IndexUnavailable, VectorIndex
from pager.ledger import Ledger
from pager.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

BATCH = 256  # vectors that wait in SQLite until the index takes them; fewer than that need no index at all
COMPACT_AT = 4000  # entries that the next process would have to replay


class StoredVectors:
    """The store as the source of an index (`pager.index.VectorSource`)."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    @property
    def fingerprint(self) -> str:
        return f"{self._embedder.fingerprint}#{self._store.journal.get('purges') or 0}"

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def count(self, through: int) -> int:
        return self._store.archive.count_vectors(through)

    def last_id(self) -> int:
        return self._store.archive.last_vector()

    def batches(self, after: int, size: int) -> Iterator[tuple[list[int], Vectors]]:
        return self._store.archive.vector_batches(after, size)


class Meaning:
    """Embeds, stores and finds. Every failure of the embedder or the index is told to the ledger and survived."""

    def __init__(self, store: Store, ledger: Ledger, embedding: Embedding, index: VectorIndex | None) -> None:
        self._store = store
        self._ledger = ledger
        self.embedding = embedding
        self._index = index
        self._index_open = False
        self._tail_ids: list[int] = []
        self._tail_rows: list[Vectors] = []
        self._dropped = 0
        self._tail_after = -1  # the tail holds every vector beyond this id; -1: not loaded

    # writing

    def store(self, fact: int, vector: Vectors) -> None:
        """In the caller's transaction. The index follows at a search: whoever stores does not wait for it."""
        self.embedding.settle()
        self._store.archive.store_vector(fact, vector)

    def next_batch(self, limit: int) -> Batch:
        """Facts that have no vector yet (a failed or another embedder)."""
        with self._store.transaction():
            self.embedding.settle()
        if not self._store.journal.get(OWED):
            return self.embedding.batch([])
        found = self._store.archive.without_vector(limit)
        if not found:
            self._store.journal.put(OWED, None)
        return self.embedding.batch(found)

    def keep(self, batch: Batch, rows: Vectors) -> None:
        with self._store.transaction():
            if not self.embedding.is_current(batch):
                return
            self.embedding.settle()
            for (fact, _), vector in zip(batch.texts, rows, strict=True):
                self._store.archive.store_vector(fact, vector)
        self._late([fact for fact, _ in batch.texts], rows)

    def waiting(self) -> int:
        return self._store.archive.count_without_vector() if self._store.journal.get(OWED) else 0

    def _late(self, facts: Sequence[int], vectors: Vectors) -> None:
        self._tail_after = -1
        if self._index is None or not self._index_open:
            return
        try:
            self._index.upsert(facts, vectors)
        except IndexUnavailable as error:
            self.embedding.tell("index", str(error))

    # reading

    def near(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """The facts nearest to a vector, best first, whatever their validity."""
        if not self.embedding.is_settled:
            return []
        # In a transaction after its commit: what may be rolled back is not for the index, nor for the tail.
        self._store.after_commit(self._follow)
        found = self._from_index(vector, limit)
        found += self._score(*self._beyond_index(), vector)
        return sorted(found, key=lambda hit: (-hit[1], -hit[0]))[:limit]

    def among(self, facts: Sequence[int], vector: Vectors) -> list[tuple[int, float]]:
        """These facts by their nearness, exactly, from SQLite."""
        if not self.embedding.is_settled:
            return []
        ids, matrix = self._store.archive.vectors(facts)
        return sorted(self._score(ids, [matrix], vector), key=lambda hit: (-hit[1], -hit[0]))

    def _follow(self) -> None:
        """Bring index and tail up to what is committed."""
        if self._dropped != self.embedding.times_dropped:
            self._dropped, self._tail_after = self.embedding.times_dropped, -1
            if self._index_open:
                self.rebuild("all is embedded anew")
        self._extend()
        self._load_tail()

    def _score(self, ids: Sequence[int], rows: Sequence[Vectors], vector: Vectors) -> list[tuple[int, float]]:
        if not ids:
            return []
        import numpy as np

        return list(zip(ids, (np.vstack(rows) @ vector).tolist(), strict=True))

    def _from_index(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        if self._index is None or not self._index_open:
            return []
        try:
            return self._index.query(vector, limit)
        except IndexUnavailable as error:
            self._broken(error)
            return []

    def _through(self) -> int:
        return self._index.through() if self._index and self._index_open else 0

    def _load_tail(self) -> None:
        """Everything that the index does not hold. Without a working index that is all."""
        through = self._through()
        known = zip(self._tail_ids, self._tail_rows, strict=True) if 0 <= self._tail_after <= through else ()
        kept = [(fact, row) for fact, row in known if fact > through]
        self._tail_ids, self._tail_rows = [fact for fact, _ in kept], [row for _, row in kept]
        self._tail_after = through
        self._tail_ids, self._tail_rows = self._beyond_index()

    def _beyond_index(self) -> tuple[list[int], list[Vectors]]:
        """The tail, and what was stored since; in a transaction by itself."""
        through = self._through()
        ids, rows = (self._tail_ids, self._tail_rows) if self._tail_after == through else ([], [])
        more, matrix = self._store.archive.vectors_after(ids[-1] if ids else through, -1)
        return [*ids, *more], [*rows, *matrix]

    # the index

    def _open_index(self) -> bool:
        if self._index is None or self._index_open:
            return self._index_open
        if self._store.archive.count_vectors() < BATCH:
            return False
        try:
            report = self._index.open()
        except IndexUnavailable as error:
            self._broken(error)
            return False
        self._index_open = True
        self.embedding.forget_told("index")
        if report.outcome == "rebuilt":
            self.embedding.note("index", f"rebuilt: {report.reason}")
        return True

    def _extend(self) -> None:
        """Hand the index what waits, once it is a batch."""
        if self._index is None or not self._open_index():
            return
        if self._store.archive.last_vector() - self._index.through() < BATCH:
            return
        try:
            self._index.extend()
        except IndexUnavailable as error:
            self._broken(error)

    def _broken(self, error: IndexUnavailable) -> None:
        self._index_open = False
        self._tail_after = -1
        self.embedding.tell("index", str(error))

    def rebuild(self, reason: str) -> None:
        if self._index is not None:
            self._index_open = False
            self._tail_after = -1
            try:
                report = self._index.rebuild(reason)
            except IndexUnavailable as error:
                self._broken(error)  # the old one is gone all the same; the next opening builds a new one
                return
            self._index_open = True
            self._ledger.write("index", reason=f"{report.outcome}: {report.reason}")

    @property
    def dimension(self) -> int:
        return self.embedding.embedder.dimension

    def check(self, *, fix: bool) -> list[tuple[str, bool]]:
        """What is wrong with the index, and whether it was mended. Opening it already mends what is broken."""
        if self._index is None or self._store.archive.count_vectors() < BATCH:
            return []
        self.embedding.forget_told()
        if not self._open_index():
            return [("the vector index cannot be opened; search goes on from pager.db", False)]
        held, should = self._index.through(), self._store.archive.last_vector()
        if should - held < 2 * BATCH:
            return []
        if fix:
            self._extend()
        return [(f"the vector index holds facts up to f{held} of f{should}", fix)]

    def compact(self) -> None:
        self._store.after_commit(self._compact)

    def _compact(self) -> None:
        if self._index is not None and self._open_index():
            self._index.extend()
            self._index.compact()

    @property
    def replay(self) -> int:
        return self._index.pending_replay() if self._index and self._index_open else 0

    def close(self) -> None:
        if self._index is not None and self._index_open:
            if self._index.pending_replay() >= COMPACT_AT:
                try:
                    self._index.compact()
                except IndexUnavailable as error:
                    self._broken(error)
            self._index.close()
