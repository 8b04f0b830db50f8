"""An array that grows at its end at a cost that depends on what is new, not on what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class GrowingArray:
    """Rows of one dtype. With `end`, one more element stands behind the last row: the one that index -1 finds."""

    def __init__(self, dtype: Any, *, width: tuple[int, ...] = (), end: float | None = None) -> None:
        import numpy as np

        self._buffer: NDArray[Any] = np.empty((0, *width), dtype=dtype)
        self._end = end
        self._count = 0
        self.extend(np.empty((0, *width), dtype=dtype))

    def extend(self, rows: ArrayLike) -> None:
        """Append rows. When the buffer is full it is copied into one of twice the size."""
        import numpy as np

        fresh = np.asarray(rows, dtype=self._buffer.dtype)
        count = self._count + len(fresh)
        needed = count + (self._end is not None)
        if needed > len(self._buffer):
            buffer = np.empty((max(needed, 2 * len(self._buffer)), *self._buffer.shape[1:]), dtype=self._buffer.dtype)
            buffer[: self._count] = self._buffer[: self._count]
            self._buffer = buffer
        self._buffer[self._count : count] = fresh
        self._count = count
        if self._end is not None:
            self._buffer[count] = self._end

    @property
    def rows(self) -> NDArray[Any]:
        """The rows (and `end`) as a view: what is written to it changes the array."""
        return self._buffer[: self._count + (self._end is not None)]
