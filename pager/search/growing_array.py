"""Arrays that grow at their end, at a cost that goes with what is new and not with what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Growing:
    """Rows of one kind. With `end` there is one more behind the last: what the index -1 finds."""

    def __init__(self, dtype: Any, *, width: tuple[int, ...] = (), end: float | None = None) -> None:
        import numpy as np

        self._room: NDArray[Any] = np.empty((0, *width), dtype=dtype)
        self._end = end
        self._count = 0
        self.extend(np.empty((0, *width), dtype=dtype))

    def extend(self, rows: ArrayLike) -> None:
        import numpy as np

        fresh = np.asarray(rows, dtype=self._room.dtype)
        count = self._count + len(fresh)
        needed = count + (self._end is not None)
        if needed > len(self._room):
            room = np.empty((max(needed, 2 * len(self._room)), *self._room.shape[1:]), dtype=self._room.dtype)
            room[: self._count] = self._room[: self._count]
            self._room = room
        self._room[self._count : count] = fresh
        self._count = count
        if self._end is not None:
            self._room[count] = self._end

    @property
    def rows(self) -> NDArray[Any]:
        """All of them, as they are: what is written there is written here."""
        return self._room[: self._count + (self._end is not None)]
