"""Vectors in memory, a byte a number: 100,000 of 384 numbers take 40 MB, and a hundredth of a second to compare.

What that changes of a cosine is a thousandth. All of them are compared: nothing that is near is missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pager.search.growing_array import Growing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float32]

LARGEST = 127
SCORED_AT_ONCE = 512  # rows that are floats at one time: what a processor keeps near is ten times as quick


class Packed:
    """Rows with their ids, in the order in which they came."""

    def __init__(self, dimension: int) -> None:
        self._ids, self._scale = Growing("int64"), Growing("float32")
        self._numbers = Growing("int8", width=(dimension,))

    @property
    def ids(self) -> NDArray[np.int64]:
        return self._ids.rows

    def extend(self, ids: ArrayLike, scale: Floats, numbers: ArrayLike) -> None:
        """Rows as `in_bytes` gives them."""
        self._ids.extend(ids)
        self._scale.extend(scale)
        self._numbers.extend(numbers)

    def only(self, chosen: NDArray[np.bool_]) -> Packed:
        found = Packed(self._numbers.rows.shape[1])
        found.extend(self._ids.rows[chosen], self._scale.rows[chosen], self._numbers.rows[chosen])
        return found

    def cosines(self, vector: Floats) -> Floats:
        """Of each row with a vector of unit length."""
        import numpy as np

        numbers = self._numbers.rows
        # Whole numbers on both sides: their sums are exact, so equal rows are equally near wherever they stand.
        [scale], [asked] = in_bytes(vector[np.newaxis])
        starts = range(0, len(numbers), SCORED_AT_ONCE)
        pieces = [numbers[start : start + SCORED_AT_ONCE].astype(np.float32) @ asked for start in starts]
        return np.concatenate([np.empty(0, dtype=np.float32), *pieces]) * (self._scale.rows * scale)


def in_bytes(rows: Floats) -> tuple[Floats, Floats]:
    """Whole numbers from -LARGEST to LARGEST, and what those of a row are multiplied with."""
    import numpy as np

    scale = (np.maximum(np.abs(rows).max(axis=1), 1e-9) / LARGEST).astype(np.float32)
    return scale, np.rint(rows / scale[:, np.newaxis])
