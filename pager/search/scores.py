"""Two rankings made one: the score by words and the score by meaning. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import pstdev

ALIKE = 1e-4  # a smaller spread is rounding, or of words that half of the texts hold: BM25 gives those a millionth

Scores = Mapping[int, float]


def fused(by_words: Scores, by_meaning: Scores) -> list[tuple[int, float]]:
    """Two scores made one, each in units of its own spread; best first, of equal ones the higher id. What a side does
    not know has no more than its least: of words nothing, of meaning what the farthest one has."""
    found = sorted({*by_words, *by_meaning}, reverse=True)
    totals = dict.fromkeys(found, 0.0)
    # A word that half of them hold has no rarity left; it counts by how many do not hold it.
    without = max(1 - len(by_words) / max(len(found), 1), ALIKE)
    for scores, least, worth in ((by_words, 0.0, without), (by_meaning, min(by_meaning.values(), default=0.0), ALIKE)):
        values = [scores.get(each, least) for each in found]
        spread = pstdev(values) if len(values) > 1 else 0.0
        weight = worth / spread if 0 < spread <= ALIKE else 1 / (spread or 1.0)
        for each, value in zip(found, values, strict=True):
            totals[each] += (value - least) * weight
    return sorted(totals.items(), key=lambda each: -each[1])
