"""Ranks parts as answers to a question. Pure: arrays in, arrays out; every weight is here.

Words count as in BM25, with its usual constants. But a part is read together with its neighbours: its count of a word
is its own and what they lend it (`pager.search.neighbours`), and so is its length. How rare a word is, the parts' own
words say. Other evidence counts like a word that as many parts hold: who spoke, if the question names them, and when,
if the question names a time. Meaning is added with `MEANING` of the spread that the word scores have in this search; a
part means what it says and, by `AROUND`, what its neighbours say.

The weights were chosen on one set of questions and judged on others (`make bench-retrieval`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pager.search.neighbours import BACKWARD, DECAY, PartTable, Speaker
from pager.search.words import certainty, focus, folded, rarity

Floats = NDArray[np.float64]
Row = NDArray[np.float32]
Positions = NDArray[np.int64]

SATURATION, LENGTH = 1.2, 0.75  # BM25's k1 and b
ROLE = 10.0  # "where do I live?": nearly always the user said it, so no word may outweigh that
NAME = 3.0  # "where does Dana live?": she says it herself, or somebody says it of her
WHEN = 3.0  # a question that names a time is about it
MEANING = 0.55  # the cosine of a whole part
LONG = 1.05  # is added to that where parts are long: then single words say less, and a mean of many pieces says more
LATE = 1.9  # the match of word pieces: the best single evidence there is
RERANKED = 200  # parts whose word pieces are compared: those that all other evidence puts first
FACTS = 0.25  # of the score of a fact, for what it was stored from
MATCHED = 2  # so many neighbours to each side may match a word piece instead of the part; farther ones hardly ever do
AROUND = 0.5
NEGLIGIBLE = 1e-6  # a smaller spread is rounding
_PRONOUNS = {"i": "user", "my": "user", "me": "user", "mine": "user", "you": "assistant", "your": "assistant"}


class _Term(NamedTuple):
    """A word of the question: the positions that hold it, and how often each does."""

    rarity: float
    positions: Positions
    counts: Floats


@dataclass(slots=True)
class Ranking:
    """The evidence for each part, by position. Only parts from `after` to before `before` (microseconds) compete.

    They may be ranked together with so many texts `beside` them: facts. Rarity and spread are those among all then.
    """

    table: PartTable
    after: int | None = None
    before: int | None = None
    beside: int = 0
    competes: NDArray[np.bool_] = field(init=False)
    terms: list[_Term] = field(default_factory=list[_Term])
    rarities: dict[str, float] = field(default_factory=dict[str, float])  # of the question's telling words
    rarity_of: dict[str, float] = field(default_factory=dict[str, float])  # of each in the form of the word index
    words: Floats = field(init=False)  # with neighbours
    words_beside: Sequence[float] = ()  # of the texts beside them, where those are not 0
    others: dict[str, Floats] = field(default_factory=dict[str, Floats])  # who, when, meaning

    def __post_init__(self) -> None:
        self.competes = np.ones(len(self.table), dtype=np.bool_)
        if self.after is not None:
            self.competes &= self.table.at >= self.after
        if self.before is not None:
            self.competes &= self.table.at < self.before
        self.words = np.zeros(len(self.table))

    def leave_out(self, steps: Sequence[int]) -> None:
        """Let the parts of these steps not compete. They still lend their words."""
        self.competes &= ~np.isin(self.table.step, steps)

    def add_word(self, parts: Positions, beside: int = 0) -> float:
        """Add a word of the question: the parts that hold it, ascending, as often as each does, and how many texts
        beside them do. Return its rarity."""
        starts = np.flatnonzero(np.diff(parts, prepend=0))  # ids begin with 1
        found = self.table.positions(parts[starts])
        counts = np.diff(starts, append=len(parts)).astype(np.float64)
        found, counts = found[found >= 0], counts[found >= 0]
        term = _Term(rarity(len(found) + beside, len(self.table) + self.beside), found, counts)
        if not len(found):
            return term.rarity
        self.terms.append(term)
        reached, sums = self.table.with_neighbours(found, counts)
        self.words[reached] += sums * (SATURATION + 1) / (sums + self._norm(reached)) * term.rarity
        return term.rarity

    def _norm(self, positions: Any) -> Any:
        relative = self.table.pooled_length[positions] / self.table.mean_length
        return SATURATION * (1 - LENGTH + LENGTH * relative)

    def add_speakers(self, question: str) -> None:
        """Add whom the question names, or means by a pronoun, among those who speak in the same sessions."""
        table, found, asked = self.table, np.zeros(len(self.table), dtype=np.float64), set(_words(question))
        for number, speaker in enumerate(table.speakers):
            if weight := _weight(speaker, asked):
                own = table.speaker == number
                together = np.isin(table.session, table.session[own])
                found[own] += weight * rarity(int(own.sum()), int(together.sum()))
        self._add("who", found)

    def add_spans(self, named: Sequence[tuple[int, int]], guessed: Sequence[tuple[int, int]] = ()) -> None:
        """Add the half-open times that a question names, in microseconds; guessed ones order what else is found."""
        found, count = np.zeros(len(self.table)), len(self.table)
        for spans, least in ((named, 0), (guessed, count // 2)):
            inside = np.zeros(count, dtype=np.bool_)
            for start, end in spans:
                inside |= (self.table.at >= start) & (self.table.at < end)
            if number := int(inside.sum()):
                found = np.maximum(found, np.where(inside, WHEN * rarity(max(number, least), count), 0.0))
        self._add("when", found)

    def add_meaning(self, positions: Positions, cosines: Floats) -> None:
        """Add how near parts and their neighbours are; one without a vector is an average neighbour."""
        found, judged = self._with_neighbours(positions, cosines - cosines.mean()), np.zeros(len(self.table), np.bool_)
        judged[positions] = self.competes[positions]
        if not judged.any() or (spread := float(found[judged].std())) < NEGLIGIBLE:
            return
        weight = MEANING + LONG * max(0.0, 1.0 - 2.0 * float(self.table.lends[:-1].mean()))
        self._add("meaning", (found - found[judged].mean()) * judged * weight * self.unit() / spread)

    def to_rerank(self) -> Positions:
        """Return the positions that the evidence so far puts first, ascending: their word pieces are compared."""
        if not focus(len(self.rarities)):
            return np.empty(0, np.int64)
        score = self.words + sum(self.others.values())
        found = np.flatnonzero(self._is_found() & self.competes)
        if len(found) > RERANKED:
            found = np.sort(found[np.argpartition(-score[found], RERANKED)[:RERANKED]])
        return found

    def add_late(self, reranked: Positions, positions: Positions, weights: Row, cosines: Row) -> None:
        """Add how well word pieces match: a weight and a row of cosines for each piece of the question.

        The columns are of `positions`, ascending. A piece may also be matched by a neighbour. What has no word pieces
        among the `reranked` counts as their mean, and what was not compared as the least of them.
        """
        column = np.full(len(self.table) + 1, len(positions))  # the last one is of no part
        column[positions] = np.arange(len(positions))
        own = np.append(cosines, np.full((len(cosines), 1), -1.0), axis=1)
        best = own[:, :-1].copy()
        for link, worth in ((self.table.before, BACKWARD), (self.table.after, 1.0)):
            reached = positions
            for distance in range(1, MATCHED + 1):
                reached = link[reached]
                np.maximum(best, worth * DECAY**distance * own[:, column[reached]], out=best)
        matched = weights @ best
        found = np.zeros(len(self.table))
        found[reranked] = self._with_neighbours(positions, matched - matched.mean())[reranked]
        if (spread := float(found[positions].std())) >= NEGLIGIBLE:
            found[reranked] -= found[reranked].min()
            self._add("late", found * LATE * focus(len(self.rarities)) * self.unit() / spread)

    def _with_neighbours(self, positions: Positions, values: Floats) -> Floats:
        """Return the values by position and, by `AROUND`, the mean of those of the neighbours."""
        found = np.zeros(len(self.table))
        reached, sums = self.table.with_neighbours(positions, values)
        found[reached] = sums
        found[positions] -= values
        found *= AROUND / np.maximum(self.table.neighbourhood[:-1], NEGLIGIBLE)
        found[positions] += values
        return found

    def unit(self) -> float:
        """Return what all evidence but words counts in: the spread of the word scores."""
        scores = self.words[self.competes]
        if self.beside:
            rest = max(0, self.beside - len(self.words_beside))
            scores = np.concatenate([scores, np.array(self.words_beside), np.zeros(rest)])
        return float(scores.std()) * certainty(len(scores)) or 1.0

    def add_facts(self, parts: Sequence[int], scores: Sequence[float]) -> None:
        """Add what the facts say that were stored from parts: the score of the best one of each."""
        found, positions = np.zeros(len(self.table)), self.table.positions(np.array(parts))
        found[positions[positions >= 0]] = FACTS * np.array(scores)[positions >= 0]
        self._add("facts", found)

    def _add(self, name: str, values: Floats) -> None:
        if values.any():
            self.others[name] = values

    def best(self, limit: int) -> list[tuple[int, float]]:
        """Return the best positions with scores, newest first among equals: `limit`, and all equal to the last."""
        score = self.words + sum(self.others.values())
        found = np.flatnonzero(self._is_found() & self.competes)
        if len(found) > limit:
            least = np.partition(score[found], -limit)[-limit]
            found = found[score[found] >= least]
        order = np.lexsort((-found, -score[found]))
        return [(int(position), float(score[position])) for position in found[order]]

    def _is_found(self) -> NDArray[np.bool_]:
        is_found = self.words > 0
        for name in self.others.keys() & {"when", "meaning"}:
            is_found |= self.others[name] > 0
        return is_found

    def explain(self, position: int) -> dict[str, float]:
        """Return what the score of a part adds up from: `words` are its own, `neighbours` what theirs add."""
        own, norm = 0.0, float(self._norm(position))
        for term in self.terms:
            at = int(term.positions.searchsorted(position))
            if at < len(term.positions) and term.positions[at] == position:
                count = float(term.counts[at])
                own += term.rarity * count * (SATURATION + 1) / (count + norm)
        found = {"words": own, "neighbours": float(self.words[position]) - own}
        found |= {name: float(values[position]) for name, values in self.others.items()}
        return {name: value for name, value in found.items() if abs(value) > NEGLIGIBLE}


def _weight(speaker: Speaker, asked: set[str]) -> float:
    """Return how much a speaker counts: by the share of their name in the question, or because it means their role."""
    role, name = speaker
    if any(_PRONOUNS.get(word, word) in _words(role) for word in asked):
        return ROLE
    of_name = _words(name or "")
    return NAME * sum(word in asked for word in of_name) / len(of_name) if of_name else 0.0


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in folded(text)).split()
