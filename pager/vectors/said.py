"""Vectors of what was said: stored in SQLite with one byte for each number, and held in memory while they are searched.

A part gets its vector when it was recorded, or when its step has left the prompt. Until then it is queued in the table
`said_owed`, so nothing is lost when the process dies. A search embeds its question and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pager.blocks import text_of
from pager.search.growing_array import GrowingArray
from pager.search.neighbours import PartTable
from pager.store import Store
from pager.store.rows import Said
from pager.vectors.embedding import LARGEST_BATCH, Batch, Embedding
from pager.vectors.int8_matrix import Int8Matrix, quantize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pager.vectors.index import Vectors

SCALE_BYTES = 4  # before the numbers stands the float32 by which all of them are multiplied


class LoadedVectors:
    """Vectors in memory with the parts that they belong to."""

    def __init__(self, dimension: int) -> None:
        self.matrix = Int8Matrix(dimension)
        self._table: PartTable | None = None
        self._positions = GrowingArray("int64")

    def positions(self, table: PartTable) -> NDArray[np.int64]:
        """Return the position of each part in the table; -1 for a part that came after the table was read."""
        import numpy as np

        if table is not self._table:
            self._table, self._positions = table, GrowingArray("int64")
        found = self._positions.rows
        fresh = table.positions(self.matrix.ids[len(found) :])
        if (fresh < 0).any():
            return np.concatenate([found, fresh])
        self._positions.extend(fresh)
        return self._positions.rows


class SaidVectors:
    """Stores the vectors of parts and compares them with a question. A failure of the embedder raises nothing."""

    def __init__(self, store: Store, embedding: Embedding) -> None:
        self._store = store
        self.embedding = embedding
        self.reset()

    def reset(self) -> None:
        """Drop what is in memory: something was undone or purged."""
        self._row = 0
        self._drops = self.embedding.drops
        self._vectors: LoadedVectors | None = None

    def next_batch(self, limit: int) -> Batch:
        """Return the oldest queued parts."""
        return self._batch(self._store.said.queued(limit))

    def batch_of(self, steps: Sequence[int]) -> Batch:
        """Return what of these steps has no vector; at most `LARGEST_BATCH` of them are looked at."""
        return self._batch(self._store.said.queued_of(steps[:LARGEST_BATCH]))

    def _batch(self, parts: Sequence[Said]) -> Batch:
        self.embedding.check_committed()
        return self.embedding.batch([(part.part, text_to_embed(part)) for part in parts])

    def store_batch(self, batch: Batch, rows: Vectors) -> None:
        """Store the vectors of a batch, unless it is out of date."""
        # After a power cut they would be rebuilt.
        with self._store.transaction(durable=False):
            if self.embedding.is_current(batch, rows):
                self.embedding.check_embedder()
                ids = [part for part, _ in batch.texts]
                self._store.said.store_vectors(list(zip(ids, pack(rows), strict=True)))

    def count_pending(self) -> int:
        """Return the number of queued parts."""
        return self._store.said.count_queued(1 << 62)

    def wrong_parts(self) -> list[int]:
        """Return the parts whose vector has not the length of this embedder's."""
        return self._store.said.wrong_vectors(SCALE_BYTES + self.embedding.embedder.dimension)

    def nearness(self, question: str, table: PartTable) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the positions of all parts that have a vector, and their cosines with the question."""
        import numpy as np

        if not self.embedding.prepare_search():
            return None
        vectors = self._load()
        if vectors is None or (vector := self.embedding.embed(question)) is None:
            return None
        if not self.embedding.vectors_match():
            return None
        positions, cosines = vectors.positions(table), vectors.matrix.cosines(vector)
        in_table = positions >= 0
        return positions[in_table], cosines[in_table].astype(np.float64)

    def _load(self) -> LoadedVectors | None:
        import numpy as np

        if self._drops != self.embedding.drops:
            self.reset()
        fresh = self._store.said.vectors(self._row)
        if not fresh:
            return self._vectors
        self._row = fresh[-1][0]
        raw = np.frombuffer(b"".join(vector for _, _, vector in fresh), dtype=np.uint8).reshape(len(fresh), -1)
        # The dimension is not asked of the embedder: one of Chroma's would embed a text to know it.
        self._vectors = vectors = self._vectors or LoadedVectors(raw.shape[1] - SCALE_BYTES)
        scales = np.ascontiguousarray(raw[:, :SCALE_BYTES]).view(np.float32)[:, 0]
        vectors.matrix.extend([part for _, part, _ in fresh], scales, raw[:, SCALE_BYTES:].view(np.int8))
        return vectors


def text_to_embed(part: Said) -> str:
    """Return what is embedded of a part: its text behind the name of the speaker, because questions name people."""
    text = text_of(part.block)
    return f"{part.name}: {text}" if part.name else text


def pack(rows: Vectors) -> list[bytes]:
    """Return vectors as they are stored, in a quarter of their size."""
    import numpy as np

    scales, numbers = quantize(rows)
    return [scale.tobytes() + row.tobytes() for scale, row in zip(scales, numbers.astype(np.int8), strict=True)]
