"""Vectors of what was said: stored in SQLite with one byte for each number, and held in memory while they are searched.

A part gets its vector when it was recorded, or when its step has left the prompt. Until then it is queued in the table
`said_owed`, so nothing is lost when the process dies. A search embeds its question and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pager.blocks import text_of
from pager.search.neighbours import PartTable
from pager.store import Store
from pager.vectors import quantized
from pager.vectors.embedder import Meaning, Rows
from pager.vectors.embedding import Batch, Embedding
from pager.vectors.quantized import Int8Matrix, quantize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCALE_BYTES = 4  # before the numbers stands the float32 by which all of them are multiplied


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
        self._vectors: Int8Matrix | None = None

    def next_batch(self, limit: int, *, newest: bool = False) -> Batch:
        """Return the oldest queued parts, or the newest."""
        self.embedding.check_committed()
        parts = self._store.said.queued(limit, newest=newest)
        # Questions name people, so the name of the speaker is embedded, too.
        texts = [(part.part, (f"{part.name}: " if part.name else "") + text_of(part.block)) for part in parts]
        return self.embedding.batch(texts)

    def store_batch(self, batch: Batch, meanings: Sequence[Meaning]) -> None:
        """Store the vectors of a batch, unless it is out of date."""
        import numpy as np

        with self._store.transaction(durable=False):  # after a power cut they would be made again
            if self.embedding.is_current(batch, meanings):
                self.embedding.check_embedder()
                vectors = pack(np.stack([each.vector for each in meanings]))
                tokens = [each.tokens and quantized.pack(each.tokens) for each in meanings]
                parts = [part for part, _ in batch.texts]
                self._store.said.store_vectors(list(zip(parts, vectors, tokens, strict=True)))

    def count_pending(self) -> int:
        """Return the number of queued parts."""
        return self._store.said.count_queued()

    def nearness(self, question: str, table: PartTable) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the positions of all parts that have a vector, and their cosines with the question."""
        import numpy as np

        if not self.embedding.prepare_search() or (vectors := self._load()) is None:
            return None
        meaning = self.embedding.embed(question)
        if meaning is None or not self.embedding.vectors_match():  # it may have another length than before
            return None
        positions, cosines = table.positions(vectors.ids), vectors.cosines(meaning.vector)
        in_table = positions >= 0  # another process may have stored some since the table was read
        return positions[in_table], cosines[in_table].astype(np.float64)

    def best_cosines(
        self, question: str, rarities: Mapping[str, float], table: PartTable, positions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Rows, Rows] | None:
        """Return which of the positions have token vectors, ascending, and `Embedding.best_cosines` of those."""
        import numpy as np

        parts = table.part[positions].tolist()
        found = self.embedding.best_cosines(question, rarities, self._store.said.token_vectors, parts)
        return found and (table.positions(np.array(found[0])), *found[1:])

    def cosines_of(self, steps: Sequence[int], vector: Rows) -> dict[int, float]:
        """Return of each of these steps with a vector the cosine of its nearest part."""
        import numpy as np

        found: dict[int, float] = {}
        for step, raw in self._store.said.vectors_of(steps):
            row = np.frombuffer(raw, dtype=np.int8, offset=SCALE_BYTES) * np.frombuffer(raw[:SCALE_BYTES], np.float32)
            found[step] = max(found.get(step, -1.0), float(row @ vector))
        return found

    def _load(self) -> Int8Matrix | None:
        import numpy as np

        if self._drops != self.embedding.drops:
            self.reset()
        if fresh := self._store.said.vectors(self._row):
            self._row = fresh[-1][0]
            raw = np.frombuffer(b"".join(vector for _, _, vector in fresh), dtype=np.uint8).reshape(len(fresh), -1)
            # The dimension is not asked of the embedder: one of Chroma's would embed a text to know it.
            self._vectors = self._vectors or Int8Matrix(raw.shape[1] - SCALE_BYTES)
            scales = np.ascontiguousarray(raw[:, :SCALE_BYTES]).view(np.float32)[:, 0]
            self._vectors.extend([part for _, part, _ in fresh], scales, raw[:, SCALE_BYTES:].view(np.int8))
        return self._vectors


def pack(rows: Rows) -> list[bytes]:
    """Return vectors as they are stored, in a quarter of their size."""
    import numpy as np

    scales, numbers = quantize(rows)
    return [scale.tobytes() + row.tobytes() for scale, row in zip(scales, numbers.astype(np.int8), strict=True)]
