"""A vector source in memory, and vectors for it: what the tests of vector indexes stand on."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from pager.vectors.index import VectorSource

BATCH = 16


def unit_vectors(count: int, dimension: int = 16, *, seed: int = 0) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class MemorySource(VectorSource):
    """What pager.db is to an index: vectors by id, and which embedder made them."""

    def __init__(self, dimension: int = 16, embedder: str = "model-a") -> None:
        self.dimension = dimension
        self.embedder = embedder
        self.vectors: dict[int, NDArray[np.float32]] = {}

    @classmethod
    def of(cls, count: int, dimension: int = 16, *, seed: int = 0) -> MemorySource:
        """Ids 1 to count."""
        source = cls(dimension)
        source.grow(count, seed=seed)
        return source

    def grow(self, count: int, *, seed: int = 1) -> list[int]:
        """That many more vectors behind the last id; their ids."""
        ids = list(range(self.last_id() + 1, self.last_id() + 1 + count))
        self.vectors |= dict(zip(ids, unit_vectors(count, self.dimension, seed=seed + self.last_id()), strict=True))
        return ids

    def nearest(self, vector: NDArray[np.float32], limit: int) -> list[tuple[int, float]]:
        """The truth, by looking at all of them."""
        scored = [(each, float(self.vectors[each] @ vector)) for each in self.vectors]
        return sorted(scored, key=lambda hit: -hit[1])[:limit]

    def last_id(self) -> int:
        return max(self.vectors, default=0)

    # what is overridden

    def extent(self, through: int | None = None) -> tuple[str, int, int]:
        last = self.last_id() if through is None else through
        return self.embedder, last, sum(each <= last for each in self.vectors)

    def batches(self, through: int) -> Generator[tuple[list[int], NDArray[np.float32]]]:
        ids = sorted(each for each in self.vectors if each <= through)
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            yield some, np.stack([self.vectors[each] for each in some])
