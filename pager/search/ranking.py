"""How well each turn answers a question. Pure: arrays in, arrays out; every weight is here.

Words count as in BM25, with its usual constants. But a turn is taken for what it says together with its neighbours: its
count of a word is its own and what they lend it (`pager.search.neighbours`), and so is its length. How rare a word is, its own
turns say. Where other things speak for a turn, they count like a word that so many turns hold: the person of whom the
question speaks is who said it, the time of which it speaks is when. Meaning is added with `MEANING` of the spread that
words have in this search; a turn means what it says and, by `AROUND`, what its neighbours say.

The weights were chosen on one set of questions and judged on others: `make bench-retrieval` says on which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pager.search.neighbours import Sessions, Speaker
from pager.search.words import folded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.int64]
    Mask = NDArray[np.bool_]

SATURATION, LENGTH = 1.2, 0.75  # BM25's k1 and b
MEANING = 0.6
AROUND = 0.5
ALIKE = 1e-6  # a spread smaller than that is rounding
_SPEAKS_OF = {"i": "user", "my": "user", "me": "user", "mine": "user", "you": "assistant", "your": "assistant"}


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the question: where it stands, and how often."""

    rarity: float
    places: Places
    counts: Floats


@dataclass(slots=True)
class Ranking:
    """What speaks for each turn, by position. Only turns of the half-open span compete."""

    turns: Sessions
    after: int | None = None
    before: int | None = None
    within: Mask = field(init=False)
    terms: list[Term] = field(default_factory=list[Term])
    words: Floats = field(init=False)
    others: dict[str, Floats] = field(default_factory=dict[str, "Floats"])  # who, when, meaning

    def __post_init__(self) -> None:
        import numpy as np

        self.within = np.ones(len(self.turns), dtype=np.bool_)
        if self.after is not None:
            self.within &= self.turns.at >= self.after
        if self.before is not None:
            self.within &= self.turns.at < self.before
        self.words = np.zeros(len(self.turns))

    # what speaks for a turn

    def add_word(self, parts: Places) -> None:
        """A word of the question, by the parts that hold it, ascending, each as often as it does."""
        import numpy as np

        starts = np.flatnonzero(np.diff(parts, prepend=0))  # ids begin with 1
        held, counts = self.turns.positions(parts[starts]), np.diff(starts, append=len(parts)).astype(np.float64)
        held, counts = held[held >= 0], counts[held >= 0]
        if not len(held):
            return
        term = Term(rarity(len(held), len(self.turns)), held, counts)
        self.terms.append(term)
        reached, given = self.turns.spread(held, counts)
        self.words[reached] += given * (SATURATION + 1) / (given + self._norm(reached)) * term.rarity

    def _norm(self, places: Any) -> Any:
        return SATURATION * (1 - LENGTH + LENGTH * self.turns.size[places] / self.turns.mean_size)

    def add_speakers(self, question: str) -> None:
        """Whoever the question names, or means by a pronoun, among those who speak in the same sessions."""
        import numpy as np

        turns, found, asked = self.turns, np.zeros(len(self.turns), dtype=np.float64), set(_words(question))
        for number, speaker in enumerate(turns.speakers):
            if share := _named(speaker, asked):
                own = turns.speaker == number
                together = np.isin(turns.session, turns.session[own])
                found[own] += share * rarity(int(own.sum()), int(together.sum()))
        self._add("who", found)

    def add_spans(self, told: Sequence[tuple[int, int]], guessed: Sequence[tuple[int, int]] = ()) -> None:
        """The times of which the question speaks, half-open. What is only guessed counts no more than a word that
        every other turn holds: it orders what is found, and brings up nothing."""
        import numpy as np

        found, among = np.zeros(len(self.turns)), len(self.turns)
        for spans, least in ((told, 0), (guessed, among // 2)):
            inside = np.zeros(among, dtype=np.bool_)
            for start, end in spans:
                inside |= (self.turns.at >= start) & (self.turns.at < end)
            if holding := int(inside.sum()):
                found = np.maximum(found, np.where(inside, rarity(max(holding, least), among), 0.0))
        self._add("when", found)

    def add_meaning(self, known: Places, cosines: Floats) -> None:
        """How near turns are to the question, each with its neighbours; of one without a vector it says nothing, and
        as a neighbour it is as near as the average."""
        import numpy as np

        found, judged = np.zeros(len(self.turns)), np.zeros(len(self.turns), dtype=np.bool_)
        judged[known] = self.within[known]
        reached, near = self.turns.spread(known, cosines - cosines.mean())
        found[reached] = near
        found[known] -= (own := cosines - cosines.mean())
        found *= AROUND / np.maximum(self.turns.around[:-1], ALIKE)
        found[known] += own
        if not judged.any() or (spread := float(found[judged].std())) < ALIKE:
            return
        of_words = float(self.words[self.within].std()) or 1.0
        self._add("meaning", (found - found[judged].mean()) * judged * MEANING * of_words / spread)

    def _add(self, name: str, values: Floats) -> None:
        if values.any():
            self.others[name] = values

    # what comes of it

    def best(self, limit: int) -> list[tuple[int, float]]:
        """At least the `limit` best positions, if so many have anything to say for them, and their scores; of equal
        ones the newest first."""
        import numpy as np

        score = self.words + sum(self.others.values())
        speaks = self.words > 0
        for name in ("when", "meaning"):
            if name in self.others:
                speaks |= self.others[name] > 0
        found = np.flatnonzero(speaks & self.within)
        if len(found) > limit:
            least = np.partition(score[found], -limit)[-limit]
            found = found[score[found] >= least]
        order = np.lexsort((-found, -score[found]))
        return [(int(place), float(score[place])) for place in found[order]]

    def parts(self, place: int) -> dict[str, float]:
        """What a turn's score is made of. `words` are its own, `neighbours` what theirs add."""
        own, norm = 0.0, float(self._norm(place))
        for term in self.terms:
            at = int(term.places.searchsorted(place))
            if at < len(term.places) and term.places[at] == place:
                count = float(term.counts[at])
                own += term.rarity * count * (SATURATION + 1) / (count + norm)
        found = {"words": own, "neighbours": float(self.words[place]) - own}
        found |= {name: float(values[place]) for name, values in self.others.items()}
        return {name: value for name, value in found.items() if abs(value) > ALIKE}


def rarity(holding: int, among: int) -> float:
    """What it says that a turn is one of so many: much for few, next to nothing for all, never less than that."""
    return math.log(1 + (among - holding + 0.5) / (holding + 0.5))


def _named(speaker: Speaker, asked: set[str]) -> float:
    """How much of a speaker's name is among the words of a question; all of it, if they speak of their role."""
    role, name = speaker
    if any(_SPEAKS_OF.get(word, word) in _words(role) for word in asked):
        return 1.0
    of_name = _words(name or "")
    return sum(word in asked for word in of_name) / len(of_name) if of_name else 0.0


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in folded(text)).split()
