"""What turns mean: their vectors in SQLite, a byte a number, and all of them in memory while they are searched.

Turns get their vectors when they have been recorded or have left the prompt; until then they wait in `said_owed`. So
nothing is lost when the process dies. A search embeds its question and nothing else, and uses what is there. Every turn
is compared with the question: 100,000 of them take 40 MB and a hundredth of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pager.blocks import text_of
from pager.search.growing_array import Growing
from pager.search.neighbours import Sessions
from pager.store import Store
from pager.store.rows import Said
from pager.vectors.embedding import LARGEST_BATCH, Batch, Embedding
from pager.vectors.int8_matrix import Packed, in_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

HEAD = 4  # bytes before the numbers: the float32 that all of them are multiplied with


class Known:
    """Vectors in memory, by the part that each is of."""

    def __init__(self, dimension: int) -> None:
        self.packed = Packed(dimension)
        self._turns: Sessions | None = None
        self._places = Growing("int64")

    def places(self, turns: Sessions) -> NDArray[np.int64]:
        """The position of each among the turns, -1 for one that was said since they were read. Looked up once."""
        import numpy as np

        if turns is not self._turns:
            self._turns, self._places = turns, Growing("int64")
        known = self._places.rows
        fresh = turns.positions(self.packed.ids[len(known) :])
        if (fresh < 0).any():
            return np.concatenate([known, fresh])
        self._places.extend(fresh)
        return self._places.rows


class SaidMeaning:
    def __init__(self, store: Store, embedding: Embedding) -> None:
        self._store = store
        self.embedding = embedding
        self.forget()

    def forget(self) -> None:
        """Something was undone or purged: what is known of the vectors is read anew."""
        self._row = 0
        self._dropped = self.embedding.times_dropped
        self._known: Known | None = None

    # writing

    def next_batch(self, limit: int) -> Batch:
        return self._batch(self._store.said.owed(limit))

    def batch_of(self, steps: Sequence[int]) -> Batch:
        """What of these steps waits: at most `LARGEST_BATCH` of them."""
        return self._batch(self._store.said.owed_by(steps[:LARGEST_BATCH]))

    def _batch(self, waiting: Sequence[Said]) -> Batch:
        with self._store.transaction():
            self.embedding.settle()
        return self.embedding.batch([(said.part, meant(said)) for said in waiting])

    def keep(self, batch: Batch, rows: Vectors) -> None:
        # Lost with the power they would be made anew.
        with self._store.transaction(durable=False):
            if self.embedding.may_keep(batch, rows):
                self.embedding.settle()
                ids = [part for part, _ in batch.texts]
                self._store.said.store_vectors(list(zip(ids, packed(rows), strict=True)))

    def waiting(self) -> int:
        return self._store.said.count_owed(1 << 62)

    def wrong(self) -> list[int]:
        """Parts whose vector is not one of this embedder."""
        return self._store.said.wrong_vectors(HEAD + self.embedding.embedder.dimension)

    # reading

    def near(self, question: str, turns: Sessions) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """The positions of turns that have a vector, and how near each is to the question."""
        import numpy as np

        if not self.embedding.settle_first():
            return None
        held = self._held()
        if held is None or (vector := self.embedding.embed(question)) is None:
            return None
        if not self.embedding.is_settled:
            return None
        places, cosines = held.places(turns), held.packed.cosines(vector)
        known = places >= 0
        return places[known], cosines[known].astype(np.float64)

    def _held(self) -> Known | None:
        """All vectors, up to what was stored since the last look; None if there are none."""
        import numpy as np

        if self._dropped != self.embedding.times_dropped:
            self.forget()
        fresh = self._store.said.vectors(self._row)
        if not fresh:
            return self._known
        self._row = fresh[-1][0]
        raw = np.frombuffer(b"".join(vector for _, _, vector in fresh), dtype=np.uint8).reshape(len(fresh), -1)
        # Not asked of the embedder: one may have to embed a text to know it.
        self._known = held = self._known or Known(raw.shape[1] - HEAD)
        scale = np.ascontiguousarray(raw[:, :HEAD]).view(np.float32)[:, 0]
        held.packed.extend([part for _, part, _ in fresh], scale, raw[:, HEAD:].view(np.int8))
        return held


def meant(said: Said) -> str:
    """What of a turn is embedded: with the name of who said it, for questions name people."""
    text = text_of(said.block)
    return f"{said.name}: {text}" if said.name else text


def packed(rows: Vectors) -> list[bytes]:
    """A quarter of the size."""
    import numpy as np

    scale, numbers = in_bytes(rows)
    return [
        head.tobytes() + body.tobytes() for head, body in zip(scale, numbers.astype(np.int8), strict=True)
    ]  # fmt: skip
