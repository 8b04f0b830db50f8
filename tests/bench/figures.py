"""Measuring and telling: two sides in turns in one process, their medians, and the table with limits and verdicts."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles, stdev

OF_MEDIAN = 1.2533  # how much less exact a median is than a mean, where nothing disturbs
Timed = Callable[[], float]  # does the thing once; the seconds that counted


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table. Without a limit it is only reported."""

    what: str
    measured: str
    value: float
    limit: float | None = None
    unit: str = " x"

    @property
    def verdict(self) -> str:
        return "" if self.limit is None else "PASS" if self.value <= self.limit else "FAIL"

    def cells(self) -> list[str]:
        limit = "" if self.limit is None else f"{self.limit:g}{self.unit}"
        return [self.what, self.measured, f"{self.value:.2f}{self.unit}", limit, self.verdict]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides that were measured in turns, in seconds."""

    ours: Sequence[float]
    bare: Sequence[float]

    @property
    def ratio(self) -> float:
        return median(self.ours) / median(self.bare)

    def told(self, ours: str, bare: str) -> str:
        """The medians; and the ratio of the fastest tenths, which others on the machine disturb less."""
        quick = [sorted(side)[len(side) // 10] for side in (self.ours, self.bare)]
        medians = f"{1000 * median(self.ours):.2f} ms {ours}, {1000 * median(self.bare):.2f} ms {bare}"
        return f"{medians} (fastest tenths: {quick[0] / quick[1]:.2f} x)"

    @property
    def ratio_of_means(self) -> float:
        return fmean(self.ours) / fmean(self.bare)

    def told_means(self, ours: str, bare: str) -> str:
        return f"{1000 * fmean(self.ours):.2f} ms {ours}, {1000 * fmean(self.bare):.2f} ms {bare}"

    @property
    def ratio_of_rounds(self) -> float:
        """The median of each round's own ratio: what makes a machine slower for minutes is in both its sides."""
        return median(self._rounds())

    def told_rounds(self, ours: str, bare: str) -> str:
        rounds = self._rounds()
        low, _, high = quantiles(rounds, n=4)
        error = OF_MEDIAN * stdev(rounds) / len(rounds) ** 0.5
        medians = f"{1000 * median(self.ours):.2f} ms {ours}, {1000 * median(self.bare):.2f} ms {bare}"
        return f"{medians} (half of {len(rounds)} rounds: {low:.2f} to {high:.2f} x; ± {error:.3f})"

    def _rounds(self) -> list[float]:
        return [ours / bare for ours, bare in zip(self.ours, self.bare, strict=True)]


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turns(*sides: Timed, rounds: int, warm_up: int) -> list[list[float]]:
    """Each side once per round, the first one rotating; the garbage of one is not collected on another's time."""
    found: list[list[float]] = [[] for _ in sides]
    gc.collect()
    gc.disable()
    try:
        for number in range(-warm_up, rounds):
            for index in range(len(sides)):
                side = (number + index) % len(sides)
                seconds = sides[side]()
                if number >= 0:
                    found[side].append(seconds)
            gc.collect(0)
    finally:
        gc.enable()
    return found


def pair(ours: Timed, bare: Timed, *, rounds: int, warm_up: int) -> Pair:
    return Pair(*in_turns(ours, bare, rounds=rounds, warm_up=warm_up))


def table(figures: Sequence[Figure]) -> str:
    return grid([["what", "measured", "figure", "limit", ""], *(figure.cells() for figure in figures)])


def grid(rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row names its columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
