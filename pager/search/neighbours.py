"""A table of every searchable part with its neighbours in the session.

A conversation spreads what it says over several messages: the question names what the answer is about. So a part has
neighbours, the parts before and after it in the same session. A session is what was said under one name (the
conversation itself, what a program recorded for a `session`, what it recorded without). Where no name was given, a
pause longer than `PAUSE` begins another session.

The table is read from the store, grows with it, and is read anew when something was undone or purged. A position is the
place of a part in the order in which parts came; -1 is no part. Columns that are looked up by a neighbour's position
have a last element that stands for -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pager.search.growing_array import GrowingArray
from pager.store.rows import SaidMeta

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Positions = NDArray[np.int64]

PAUSE = 6 * 3600 * 1_000_000  # microseconds
REACH = 4  # so many neighbours to each side lend their words
DECAY = 0.75  # what a neighbour lends, for each step of distance
BACKWARD = 0.9  # what is lent to parts before, against parts behind: an answer follows its question
FULL_WORDS = 10  # a longer neighbour lends less of each word, in proportion
SPARSE = 16  # if more than one part in so many is reached, looking at all of them is quicker than sorting
Speaker = tuple[str, str | None]  # role and name


class PartTable:
    """Every searchable part, as columns by position."""

    part: Positions
    step: Positions
    at: Positions
    speaker: Positions  # an index into `speakers`
    session: Positions
    before: Positions  # the neighbour before it
    after: Positions
    length: Floats  # in words
    lends: Floats  # the share of its words that it lends to a neighbour, before `DECAY`
    pooled_length: Floats  # its length with what its neighbours lend it
    neighbourhood: Floats  # what its neighbours would lend it if each had a value of 1

    def __init__(self) -> None:
        self.speakers: list[Speaker] = []  # in the order in which they first spoke
        self.first_at: int = 0  # the earliest moment
        self.last_at: int = 0  # the latest
        self.mean_length = 0.0  # the mean of `pooled_length`
        self._columns = {name: GrowingArray("int64") for name in ("part", "step", "at", "speaker", "session")}
        self._columns |= {name: GrowingArray("int64", end=-1) for name in ("before", "after")}
        floats = ("length", "lends", "pooled_length", "neighbourhood")
        self._columns |= {name: GrowingArray("float64", end=0.0) for name in floats}
        self._sums = GrowingArray("float64", end=0.0)  # zeros, except during `with_neighbours`
        self._latest: dict[tuple[bool, str | None], int] = {}  # session name -> its last position
        self._speakers: dict[Speaker, int] = {}
        self._session_count = 0
        self._refresh_columns()

    def __len__(self) -> int:
        return len(self.part)

    @property
    def newest_part(self) -> int:
        """The part that came last; 0 for none."""
        return int(self.part[-1]) if len(self) else 0

    def extend(self, rows: Sequence[SaidMeta]) -> None:
        """Append parts that came since."""
        import numpy as np

        if not rows:
            return
        first = len(self)
        before, session = self._link(rows, first)
        at, length = [row.at for row in rows], np.array([float(max(1, row.length)) for row in rows])
        fresh: dict[str, Any] = {
            "part": [row.part for row in rows], "step": [row.step for row in rows], "at": at, "session": session,
            "speaker": [self._speakers.setdefault((row.role, row.name), len(self._speakers)) for row in rows],
            "before": before, "after": [-1] * len(rows), "length": length,
            "lends": np.minimum(1.0, FULL_WORDS / length), "pooled_length": length,
            "neighbourhood": np.zeros(len(rows)),
        }  # fmt: skip
        for name, column in self._columns.items():
            column.extend(fresh[name])
        self._sums.extend(np.zeros(len(rows)))
        self._refresh_columns()
        self.speakers = list(self._speakers)
        self.first_at = min([*at, self.first_at]) if first else min(at)
        self.last_at = max([*at, self.last_at]) if first else max(at)
        linked = np.flatnonzero(self.before[first:-1] >= 0) + first
        self.after[self.before[linked]] = linked
        self._pool_lengths(np.arange(first, len(self)))

    def _refresh_columns(self) -> None:
        for name, column in self._columns.items():
            setattr(self, name, column.rows)

    def _link(self, rows: Sequence[SaidMeta], first: int) -> tuple[list[int], list[int]]:
        """Return for each new part the position before it in its session, and its session."""
        before: list[int] = []
        session: list[int] = []
        for position, row in enumerate(rows, start=first):
            name = (row.kind == "record", row.session)
            last = self._latest.get(name, -1)
            at = -1 if last < 0 else int(self.at[last]) if last < first else rows[last - first].at
            if last >= 0 and (row.session is not None or abs(row.at - at) <= PAUSE):
                session.append(int(self.session[last]) if last < first else session[last - first])
            else:
                last = -1
                session.append(self._session_count)
                self._session_count += 1
            before.append(last)
            self._latest[name] = position
        return before, session

    def _pool_lengths(self, fresh: Positions) -> None:
        import numpy as np

        changed = self._and_before(fresh)
        lenders = self._and_before(changed)
        reached, lengths = self.with_neighbours(lenders, self.length[lenders])
        _, ones = self.with_neighbours(lenders, np.ones(len(lenders)))
        old, places = int(fresh[0]), reached.searchsorted(changed)
        total = self.mean_length * old - float(self.pooled_length[changed[changed < old]].sum())
        self.pooled_length[changed], self.neighbourhood[changed] = lengths[places], ones[places] - 1
        self.mean_length = (total + float(self.pooled_length[changed].sum())) / len(self)

    def _and_before(self, positions: Positions) -> Positions:
        import numpy as np

        found = [positions]
        for _ in range(REACH):
            found.append(self.before[found[-1]])
        return _distinct(np.concatenate(found))

    def positions(self, parts: Positions) -> Positions:
        """Return the positions of these parts, -1 for one that is not in the table."""
        import numpy as np

        if not len(self):
            return np.full(len(parts), -1)
        found = np.searchsorted(self.part, parts)
        found[found == len(self)] = -1
        return np.where(self.part[found] == parts, found, -1)

    def with_neighbours(self, positions: Positions, values: Floats) -> tuple[Positions, Floats]:
        """Add to each value what neighbours lend. Return whoever gets something, in order; `positions` are distinct."""
        import numpy as np

        sums, lent = self._sums.rows, values * self.lends[positions]
        sums[positions] = values
        every = [positions]
        for link, worth in ((self.before, BACKWARD), (self.after, 1.0)):
            reached = positions
            for distance in range(1, REACH + 1):
                reached = link[reached]
                sums[reached] += worth * DECAY**distance * lent
                every.append(reached)
        sums[-1] = 0.0
        if len(every) * len(positions) * SPARSE > len(self):
            touched = np.flatnonzero(sums != 0.0)  # of truth values, which takes a tenth of the time
        else:
            touched = _distinct(np.concatenate(every))
        found = sums[touched]
        sums[touched] = 0.0
        return touched, found


def _distinct(positions: Positions) -> Positions:
    """Return each once, ascending, without -1. `np.unique` takes ten times as long: it asks a hash table for each."""
    import numpy as np

    ordered = np.sort(positions)
    ordered = ordered[ordered.searchsorted(0) :]
    return ordered[np.diff(ordered, prepend=-1) > 0]
