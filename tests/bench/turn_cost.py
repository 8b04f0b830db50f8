"""What a turn costs in a long conversation against a short one.

An old agent (10,000 turns) and a young one (10 turns; after ten more it starts anew, from a copy) take turns, twice:

- *plain*: both with the default window. The old one's holds hundreds of turns, the young one's is nearly empty. The
  rounds are as many as the old one needs from one eviction to the next, so every fill of its window is among them.
- *same fill*: both with a window so small that ten turns fill it. Both evict every few turns; only the age differs.

A median says what a turn costs. The mean has the evictions and SQLite's checkpoints in it as well: shown beside.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pager import Limits, Memory
from tests.bench.figures import Figure, Pair, pair
from tests.bench.grown import INSTRUCTIONS, Talk, fill_log
from tests.bench.texts import Texts

LONG, SHORT = 10_000, 10
SMALL_WINDOW_TOKENS = 1_400
ROUNDS, WARM_UP = 800, 20


def opened(directory: Path, limits: Limits) -> Memory:
    return Memory.open(directory, limits=limits, instructions=INSTRUCTIONS, embedder=None)


class Old:
    """An agent with many turns behind it."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        self.memory = opened(directory, limits)
        self.talk = Talk(self.memory, Texts(1))
        self.talk.turns_in_batches(LONG)

    def close(self) -> None:
        self.memory.close()


class Young:
    """An agent that is always about `SHORT` turns old."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        self._directory = directory
        self._seed = directory.with_name(f"{directory.name}-seed")
        self._limits = limits
        with opened(self._seed, limits) as memory:
            Talk(memory, Texts(2)).turns_in_batches(SHORT)
        self._start()

    def _start(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
        shutil.copytree(self._seed, self._directory)
        self.memory = opened(self._directory, self._limits)
        fill_log(self.memory, self._directory)  # as the old one's is: the two shall differ in nothing but their turns
        self.talk = Talk(self.memory, Texts(3))
        self.talk.turn()  # the first one after opening reads what the others find in memory

    def turn(self) -> float:
        if self.talk.turns >= SHORT:
            self.memory.close()
            self._start()
        return self.talk.turn()

    def close(self) -> None:
        self.memory.close()


def figures(work: Path) -> list[Figure]:
    plain = measured(work / "plain", Limits.for_window())
    full = measured(work / "full", Limits.for_window(SMALL_WINDOW_TOKENS))
    ages = ("at 10,000", "at 10")
    return [
        Figure("a turn at 10,000 turns against one at 10", plain.told(*ages), plain.ratio, 1.2),
        Figure("... the mean of all, evictions among them", plain.told_means(*ages), plain.ratio_of_means),
        Figure("... both in a window that 10 turns fill", full.told(*ages), full.ratio, 1.2),
        Figure("... the mean of all, evictions among them", full.told_means(*ages), full.ratio_of_means),
    ]


def measured(work: Path, limits: Limits) -> Pair:
    work.mkdir()
    old, young = Old(work / "old", limits), Young(work / "young", limits)
    found = pair(old.talk.turn, young.turn, rounds=ROUNDS, warm_up=WARM_UP)
    old.close()
    young.close()
    return found
