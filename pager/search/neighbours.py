"""Which turns stand beside each other: every searchable part, its session, and what is known of it but its text.

What is said in a conversation is said across turns: the question names what the answer is about. So a part has its
neighbours, the parts before and after it in the same session. A session is what was said under one name (the
conversation itself, what a program recorded for a `session`, what it recorded without). Where no name was given, a
pause longer than `PAUSE` begins another one: what was said one day and what was said another are no neighbours.

It is made from the store, grows with it, and is made anew when something was undone or purged. Positions are the
order in which the parts came; -1 is no part at all, and what leads to a part has a last element that stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pager.search.growing_array import Growing
from pager.store.rows import SaidMeta

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.int64]

PAUSE = 6 * 3600 * 1_000_000  # microseconds
REACH = 4  # how many neighbours to each side lend their words
DECAY = 0.75  # what a neighbour lends, for each step to it
BACKWARD = 0.9  # what is lent to turns before, against turns behind: an answer follows its question
FULL = 10  # a longer neighbour, in words, lends so much less of each
MANY = 16  # where more than one in so many is reached, looking at all is quicker than sorting
Speaker = tuple[str, str | None]


class Sessions:
    """Arrays by position. `lent` is how much a part lends of itself at no distance."""

    part: Places
    step: Places
    at: Places
    speaker: Places
    session: Places
    before: Places
    after: Places
    length: Floats
    lent: Floats
    size: Floats  # its own length with what its neighbours lend it
    around: Floats  # what they would lend it if each had one

    def __init__(self) -> None:
        self.speakers: list[Speaker] = []  # role and name, in the order of their first words
        self.first = self.last = 0  # the earliest and the latest moment
        self.mean_size = 0.0
        self._columns = {name: Growing("int64") for name in ("part", "step", "at", "speaker", "session")}
        self._columns |= {name: Growing("int64", end=-1) for name in ("before", "after")}
        self._columns |= {name: Growing("float64", end=0.0) for name in ("length", "lent", "size", "around")}
        self._scratch = Growing("float64", end=0.0)  # zeros, but for a moment
        self._latest: dict[tuple[bool, str | None], int] = {}  # of each name the position that came last
        self._speakers: dict[Speaker, int] = {}
        self._count = 0
        self._show()

    def __len__(self) -> int:
        return len(self.part)

    @property
    def newest(self) -> int:
        """The part that came last; 0 for none."""
        return int(self.part[-1]) if len(self) else 0

    def extend(self, told: Sequence[SaidMeta]) -> None:
        """What was said since."""
        import numpy as np

        if not told:
            return
        first = len(self)
        before, session = self._placed(told, first)
        at, length = [each.at for each in told], np.array([float(max(1, each.length)) for each in told])
        fresh: dict[str, Any] = {
            "part": [each.part for each in told], "step": [each.step for each in told], "at": at, "session": session,
            "speaker": [self._speakers.setdefault((each.role, each.name), len(self._speakers)) for each in told],
            "before": before, "after": [-1] * len(told),
            "length": length, "lent": np.minimum(1.0, FULL / length), "size": length, "around": np.zeros(len(told)),
        }  # fmt: skip
        for name, column in self._columns.items():
            column.extend(fresh[name])
        self._scratch.extend(np.zeros(len(told)))
        self._show()
        self.speakers = list(self._speakers)
        self.first, self.last = min([*at, *([self.first] * bool(first))]), max([*at, *([self.last] * bool(first))])
        known = np.flatnonzero(self.before[first:-1] >= 0) + first
        self.after[self.before[known]] = known
        self._measure(np.arange(first, len(self)))

    def _show(self) -> None:
        for name, column in self._columns.items():
            setattr(self, name, column.rows)

    def _measure(self, fresh: Places) -> None:
        """The sizes of new parts, and of those whose neighbours they are."""
        import numpy as np

        concerned = self._with_before(fresh)
        reached, sizes = self.spread(lending := self._with_before(concerned), self.length[lending])
        _, ones = self.spread(lending, np.ones(len(lending)))
        old, places = int(fresh[0]), reached.searchsorted(concerned)
        before = self.mean_size * old - float(self.size[concerned[concerned < old]].sum())
        self.size[concerned], self.around[concerned] = sizes[places], ones[places] - 1
        self.mean_size = (before + float(self.size[concerned].sum())) / len(self)

    def _with_before(self, places: Places) -> Places:
        """These and their neighbours before them, ascending."""
        import numpy as np

        found = [places]
        for _ in range(REACH):
            found.append(self.before[found[-1]])
        return _distinct(np.concatenate(found))

    def _placed(self, told: Sequence[SaidMeta], first: int) -> tuple[list[int], list[int]]:
        """Of each part the position before it in its session, and the session."""
        before: list[int] = []
        session: list[int] = []
        for place, each in enumerate(told, start=first):
            name = (each.kind == "record", each.session)
            last = self._latest.get(name, -1)
            at = -1 if last < 0 else int(self.at[last]) if last < first else told[last - first].at
            if last >= 0 and (each.session is not None or abs(each.at - at) <= PAUSE):
                session.append(int(self.session[last]) if last < first else session[last - first])
            else:
                last = -1
                session.append(self._count)
                self._count += 1
            before.append(last)
            self._latest[name] = place
        return before, session

    def positions(self, parts: Places) -> Places:
        """Where these parts are, -1 for one that is not here."""
        import numpy as np

        found = np.searchsorted(self.part, parts)
        found[found == len(self)] = -1
        return np.where(self.part[found] == parts, found, -1) if len(self) else np.full(len(parts), -1)

    def spread(self, places: Places, values: Floats) -> tuple[Places, Floats]:
        """The positions that get some of these values, ascending, and how much: each its own, and what its neighbours
        lend it. No place may be named twice."""
        import numpy as np

        found, lent = self._scratch.rows, values * self.lent[places]
        found[places] = values
        every = [places]
        for link, worth in ((self.before, BACKWARD), (self.after, 1.0)):
            reached = places
            for distance in range(1, REACH + 1):
                reached = link[reached]
                found[reached] += worth * DECAY**distance * lent
                every.append(reached)
        found[-1] = 0.0
        if len(every) * len(places) * MANY > len(self):
            touched = np.flatnonzero(found != 0.0)  # of truth values, which takes a tenth of the time
        else:
            touched = _distinct(np.concatenate(every))
        given = found[touched]
        found[touched] = 0.0
        return touched, given


def _distinct(places: Places) -> Places:
    """Each once, ascending, without the -1. `np.unique` asks a table for each, which takes ten times as long."""
    import numpy as np

    ordered = np.sort(places)
    ordered = ordered[ordered.searchsorted(0) :]
    return ordered[np.diff(ordered, prepend=-1) > 0]
