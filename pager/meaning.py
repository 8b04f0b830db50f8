"""Meaning: facts as vectors, the index behind the commit, and what it does not hold yet from SQLite.

`pager.db` is the truth; the index is a copy that may be missing, behind or broken. A fact that was committed is found
at once: whatever lies beyond the index's `through()` is scored here. What a transaction stored and may still undo
is found in it, but neither the index nor the tail learns of it before the commit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pager.embedder import Embedder, EmbedderUnavailable
from pager.errors import StorageError
from pager.index import IndexUnavailable, VectorIndex
from pager.ledger import Ledger
from pager.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

NEARLY_UNIT = 1e-4  # how far from 1 the square of a length may be
BATCH = 256  # vectors that wait in SQLite until the index takes them; fewer than that need no index at all
COMPACT_AT = 4000  # entries that the next process would have to replay
OWED = "vectors_owed"  # the key in the journal that says: some facts may have no vector yet


def owe_vector(store: Store) -> None:
    """A fact is stored without one; it gets it as soon as an embedder works."""
    if store.journal.get(OWED) is None:
        store.journal.put(OWED, "1")


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

    def __init__(self, store: Store, ledger: Ledger, embedder: Embedder, index: VectorIndex | None) -> None:
        self._store = store
        self._ledger = ledger
        self._embedder = embedder
        self._index = index
        self._index_open = False
        self._embedder_is_known = False  # that what is committed was made by this one
        self._told: set[str] = set()
        self._tail_ids: list[int] = []
        self._tail_rows: list[Vectors] = []
        self._tail_after = -1  # the tail holds every vector beyond this id; -1: not loaded

    # writing

    def embed(self, text: str) -> Vectors | None:
        try:
            return self._embedded([text])[0]
        except EmbedderUnavailable as error:
            self._tell("embedder", str(error))
            return None

    def _embedded(self, texts: Sequence[str]) -> Vectors:
        """Rows of unit length. An embedder is anybody's code: whatever goes wrong in it, search goes on without it."""
        import numpy as np

        try:
            rows = np.asarray(self._embedder.embed(texts), dtype=np.float32)
        except EmbedderUnavailable:
            raise
        except Exception as error:
            raise EmbedderUnavailable(f"the embedder failed: {type(error).__name__}: {error}") from error
        wanted = (len(texts), self._embedder.dimension)
        squares = np.einsum("ij,ij->i", rows, rows) if rows.shape == wanted else np.array([math.nan])
        if (abs(squares - 1) < NEARLY_UNIT).all():
            return rows
        if not np.isfinite(squares).all():
            raise EmbedderUnavailable(f"the embedder gave {rows.shape} numbers, not {wanted} finite ones.")
        return (rows / np.sqrt(np.where(squares > 0, squares, 1))[:, None]).astype(np.float32)

    def store(self, fact: int, vector: Vectors) -> None:
        """In the caller's transaction. The index follows at a search: whoever stores does not wait for it."""
        self._check_embedder()
        self._store.archive.store_vector(fact, vector)

    def _check_embedder(self) -> None:
        """Vectors of another embedder are worthless beside these: they are dropped, and made again as time allows."""
        if self._embedder_is_known:
            return
        known = self._store.journal.get("embedder")
        if known == self._embedder.fingerprint:
            self._store.after_commit(self._know_embedder)
            return
        if known is not None:
            self._ledger.write("embedder", reason=f"{known} -> {self._embedder.fingerprint}: facts are embedded anew")
            self._store.archive.drop_vectors()
            self._tail_after = -1
        self._store.journal.put("embedder", self._embedder.fingerprint)
        owe_vector(self._store)

    def _know_embedder(self) -> None:
        self._embedder_is_known = True

    def catch_up(self, limit: int = 1024) -> int:
        """Embed facts that have no vector yet (a failed or another embedder); how many."""
        with self._store.transaction():
            self._check_embedder()
        done = 0
        while done < limit:
            batch = self._store.archive.without_vector(min(64, limit - done))
            if not batch:
                self._store.journal.put(OWED, None)
                break
            vectors = self._embedded([text for _, text in batch])
            with self._store.transaction():
                for (fact, _), vector in zip(batch, vectors, strict=True):
                    self._store.archive.store_vector(fact, vector)
            self._late([fact for fact, _ in batch], vectors)
            done += len(batch)
        return done

    def _late(self, facts: Sequence[int], vectors: Vectors) -> None:
        self._tail_after = -1
        if self._index is None or not self._index_open:
            return
        try:
            self._index.upsert(facts, vectors)
        except IndexUnavailable as error:
            self._tell("index", str(error))

    # reading

    def near(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """The facts nearest to a vector, best first, whatever their validity."""
        # In a transaction after its commit: what may be rolled back is not for the index, nor for the tail.
        self._store.after_commit(self._follow)
        if not self._same_embedder():
            return []
        found = self._from_index(vector, limit)
        found += self._score(*self._beyond_index(), vector)
        return sorted(found, key=lambda hit: (-hit[1], -hit[0]))[:limit]

    def among(self, facts: Sequence[int], vector: Vectors) -> list[tuple[int, float]]:
        """These facts by their nearness, exactly, from SQLite."""
        self._store.after_commit(self._refresh_vectors)
        if not self._same_embedder():
            return []
        ids, matrix = self._store.archive.vectors(facts)
        return sorted(self._score(ids, [matrix], vector), key=lambda hit: (-hit[1], -hit[0]))

    def _follow(self) -> None:
        """Bring vectors, index and tail up to what is committed."""
        self._refresh_vectors()
        self._extend()
        self._load_tail()

    def _same_embedder(self) -> bool:
        return self._store.journal.get("embedder") in (None, self._embedder.fingerprint)

    def _refresh_vectors(self) -> None:
        """Embed what has no vector of this embedder, a part of it at each search."""
        if self._store.read_only:
            if not self._same_embedder():
                known = self._store.journal.get("embedder")
                raise EmbedderUnavailable(f"the facts were embedded by {known}; read them with the same embedder.")
        elif not self._same_embedder() or self._store.journal.get(OWED):
            try:
                self.catch_up()
            except (EmbedderUnavailable, StorageError) as error:
                self._tell("embedder", str(error))

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
        self._told.discard("index")
        if report.outcome == "rebuilt":
            self._note("index", f"rebuilt: {report.reason}")
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
        self._tell("index", str(error))

    def _tell(self, event: str, text: str) -> None:
        """Once for each kind of failure in this process."""
        if event not in self._told:
            self._told.add(event)
            self._note(event, text)

    def _note(self, event: str, text: str) -> None:
        """For the ledger, as long as the disk takes it: what was asked for was done, or goes on without."""
        with suppress(StorageError):
            self._ledger.write(event, reason=text)

    def retry(self) -> None:
        """Tell of failures anew."""
        self._told.clear()

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
        return self._embedder.dimension

    def check(self, *, fix: bool) -> list[tuple[str, bool]]:
        """What is wrong with the index, and whether it was mended. Opening it already mends what is broken."""
        if self._index is None or self._store.archive.count_vectors() < BATCH:
            return []
        self.retry()
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
