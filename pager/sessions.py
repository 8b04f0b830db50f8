"""Which turns stand beside each other: every searchable part, its session, and what is known of it but its text.

What is said in a conversation is said across turns: the question names what the answer is about. So a part has its
neighbours, the parts before and after it in the same session. A session is what was said under one name (the
conversation itself, what a program recorded for a `session`, what it recorded without) with no longer pause than
`PAUSE`: what was recorded of one day and what was recorded of another are no neighbours.

It is made from the store, grows with it, and is made anew when something was undone or purged. Positions are the
order in which the parts came; -1 is no part at all, and every array has a last element that stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pager.store import Told

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
Speaker = tuple[str, str | None]


class Sessions:
    """Arrays by position. `lent` is how much a part lends of itself at no distance."""

    def __init__(self) -> None:
        import numpy as np

        self.speakers: list[Speaker] = []  # role and name, in the order of their first words
        self.part = np.empty(0, dtype=np.int64)
        self.step = np.empty(0, dtype=np.int64)
        self.at = np.empty(0, dtype=np.int64)
        self.speaker = np.empty(0, dtype=np.int64)
        self.session = np.empty(0, dtype=np.int64)
        self.before = np.full(1, -1, dtype=np.int64)
        self.after = np.full(1, -1, dtype=np.int64)
        self.length = np.zeros(1)
        self.lent = np.zeros(1)
        self.size = np.zeros(1)  # its own length with what its neighbours lend it
        self._last: dict[tuple[bool, str | None], int] = {}  # of each name the position that came last
        self._speakers: dict[Speaker, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self.part)

    @property
    def newest(self) -> int:
        """The part that came last; 0 for none."""
        return int(self.part[-1]) if len(self) else 0

    def extend(self, told: Sequence[Told]) -> None:
        """What was said since."""
        import numpy as np

        if not told:
            return
        first = len(self)
        before, session = self._placed(told, first)
        speakers = [self._speakers.setdefault((each.role, each.name), len(self._speakers)) for each in told]
        self.speakers = list(self._speakers)
        for name, values in (
            ("part", [each.part for each in told]), ("step", [each.step for each in told]),
            ("at", [each.at for each in told]), ("speaker", speakers), ("session", session),
        ):  # fmt: skip
            setattr(self, name, np.concatenate([getattr(self, name), np.array(values, dtype=np.int64)]))
        self.before = np.concatenate([self.before[:-1], np.array([*before, -1], dtype=np.int64)])
        self.after = np.concatenate([self.after[:-1], np.full(len(told) + 1, -1, dtype=np.int64)])
        known = np.flatnonzero(self.before[first:-1] >= 0) + first
        self.after[self.before[known]] = known
        self.length = np.concatenate([self.length[:-1], np.array([*(max(1, each.length) for each in told), 0.0])])
        self.lent = np.minimum(1.0, FULL / np.maximum(1.0, self.length))
        self.size = self.spread(np.arange(len(self)), self.length[:-1])

    def _placed(self, told: Sequence[Told], first: int) -> tuple[list[int], list[int]]:
        """Of each part the position before it in its session, and the session."""
        before: list[int] = []
        session: list[int] = []
        for place, each in enumerate(told, start=first):
            name = (each.kind == "record", each.session)
            last = self._last.get(name, -1)
            at = -1 if last < 0 else int(self.at[last]) if last < first else told[last - first].at
            if last >= 0 and abs(each.at - at) <= PAUSE:
                session.append(int(self.session[last]) if last < first else session[last - first])
            else:
                last = -1
                session.append(self._count)
                self._count += 1
            before.append(last)
            self._last[name] = place
        return before, session

    def positions(self, parts: Places) -> Places:
        """Where these parts are, -1 for one that is not here."""
        import numpy as np

        found = np.searchsorted(self.part, parts)
        found[found == len(self)] = -1
        return np.where(self.part[found] == parts, found, -1) if len(self) else np.full(len(parts), -1)

    def spread(self, places: Places, values: Floats) -> Floats:
        """At every position its own value with what its neighbours lend it. No place may be named twice."""
        import numpy as np

        found = np.zeros(len(self) + 1)
        found[places] = values
        values = values * self.lent[places]
        for link, worth in ((self.before, BACKWARD), (self.after, 1.0)):
            reached = places
            for distance in range(1, REACH + 1):
                reached = link[reached]
                found[reached] += worth * DECAY**distance * values
        found[-1] = 0.0
        return found
