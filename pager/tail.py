"""What the vector index does not hold: the vectors of all facts beyond one, as a matrix in memory, scored exactly.

Without an index that is every fact: 100,000 of them take 150 MB and a fiftieth of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pager.growing import Growing
from pager.store import Store

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
        self._held: Growing | None = None

    def follow(self, through: int) -> None:
        """Begin behind what the index holds, and go as far as facts are stored: all of them must be committed."""
        if through < self._after:
            self.forget()
        if through > self._after:
            held, self._held = self._held, None
            if held is not None and len(left := held.rows[held.rows["fact"] > through]):
                self._held = _grown(None, left)
            self._after, self._last = through, max(through, self._last)
        while (fresh := self._store.archive.vectors_after(self._last, READ_AT_ONCE))[0]:
            self._held, self._last = _grown(self._held, _joined(*fresh)), fresh[0][-1]

    def late(self, facts: Sequence[int], vectors: Vectors) -> None:
        """Facts that are not new have a vector now."""
        import numpy as np

        fresh = _joined(facts, vectors)
        fresh = fresh[(fresh["fact"] > self._after) & (fresh["fact"] <= self._last)]
        if self._held is not None:
            others = self._held.rows[~np.isin(self._held.rows["fact"], fresh["fact"])]
            if len(others) < len(self._held.rows):
                self._held = _grown(None, others)
        if len(fresh):
            self._held = _grown(self._held, fresh)

    def near(self, vector: Vectors, limit: int, through: int) -> Cosines:
        """Of the facts beyond that one at least the nearest `limit`, if there are so many."""
        reaches = self._after <= through  # or the index has just broken
        found = nearest(self._held.rows, vector, limit) if reaches and self._held is not None else []
        if self._store.in_transaction or not reaches:
            # What a transaction may still undo is found, and not held.
            ids, rows = self._store.archive.vectors_after(self._last if reaches else through, -1)
            found += nearest(_joined(ids, rows), vector, limit) if ids else []
        return found


def nearest(held: NDArray[Any], vector: Vectors, limit: int) -> Cosines:
    import numpy as np

    cosines = held["vector"] @ vector
    facts = held["fact"]
    if limit < len(cosines):
        close = cosines >= np.partition(cosines, -limit)[-limit]
        cosines, facts = cosines[close], facts[close]
    return list(zip(facts.tolist(), cosines.tolist(), strict=True))


def _joined(facts: Sequence[int], vectors: Vectors) -> NDArray[Any]:
    import numpy as np

    rows = np.empty(len(facts), dtype=[("fact", "int64"), ("vector", "float32", (vectors.shape[1],))])
    rows["fact"], rows["vector"] = facts, vectors
    return rows


def _grown(held: Growing | None, rows: NDArray[Any]) -> Growing:
    held = held or Growing(rows.dtype)
    held.extend(rows)
    return held
