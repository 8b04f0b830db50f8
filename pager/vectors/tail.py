"""What is compared one by one: the vectors of all facts beyond one, in memory.

What may still be undone is found, too, and not held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pager.store import Store
from pager.vectors.int8_matrix import Packed, in_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Cosines = list[tuple[int, float]]

READ_AT_ONCE = 4096  # vectors


class Tail:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.forget()

    def forget(self) -> None:
        self._after = 0  # it begins behind this fact,
        self._last = 0  # and goes as far as this one
        self._held: Packed | None = None

    def follow(self, after: int) -> None:
        """Begin behind this fact, and go as far as facts are stored: all of them must be committed."""
        if after < self._after:
            self.forget()
        if after > self._after:
            if self._held is not None:
                self._held = self._held.only(self._held.ids > after)
            self._after, self._last = after, max(after, self._last)
        while (fresh := self._store.archive.vectors_after(self._last, READ_AT_ONCE))[0]:
            self._hold(*fresh)
            self._last = fresh[0][-1]

    def _hold(self, facts: Sequence[int], vectors: Vectors) -> None:
        self._held = self._held or Packed(vectors.shape[1])
        self._held.extend(facts, *in_bytes(vectors))

    def late(self, facts: Sequence[int], vectors: Vectors) -> None:
        """Facts that are not new have a vector now."""
        import numpy as np

        known = np.asarray(facts)
        if self._held is not None and np.isin(self._held.ids, known).any():
            self._held = self._held.only(~np.isin(self._held.ids, known))
        fresh = (known > self._after) & (known <= self._last)
        if fresh.any():
            self._hold(known[fresh].tolist(), vectors[fresh])

    def near(self, vector: Vectors, limit: int, after: int) -> Cosines:
        """Of the facts beyond that one at least the nearest `limit`, if there are so many; of equal ones all."""
        reaches = self._after <= after  # or the index has just broken
        found = _nearest(self._held, vector, limit) if reaches and self._held is not None else []
        if self._store.in_transaction or not reaches:
            ids, rows = self._store.archive.vectors_after(self._last if reaches else after, -1)
            if ids:
                beyond = Packed(rows.shape[1])
                beyond.extend(ids, *in_bytes(rows))
                found += _nearest(beyond, vector, limit)
        return found


def _nearest(held: Packed, vector: Vectors, limit: int) -> Cosines:
    import numpy as np

    cosines, facts = held.cosines(vector), held.ids
    if limit < len(cosines):
        close = cosines >= np.partition(cosines, -limit)[-limit]
        cosines, facts = cosines[close], facts[close]
    return list(zip(facts.tolist(), cosines.tolist(), strict=True))
