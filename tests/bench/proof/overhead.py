"""Overhead per turn: what each side adds to the call of the model, in a short conversation and in a long one.

All ask one quick server over HTTP, whose own time is subtracted. A side first takes its first turns for real, then gets
its past the quickest way it has, and is measured in rounds in which the sides take turns. Whoever needs longer for its
past than there is time is measured where it stands, and left out from there on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median
from time import monotonic
from typing import Any

from tests.bench.peers.lines import MARK
from tests.bench.proof.sides import WRONG, Side
from tests.bench.quick_server import ANSWER, QuickServer
from tests.bench.texts import Texts

Json = dict[str, Any]
FACT_EVERY = 5
REAL, CHUNK = 10, 250  # turns taken for real at the beginning; turns of the past that are handed over at once
AT_ONCE = 10  # turns of one side before the next
GROWING_AT_ONCE = 2  # nothing is measured then
LONGEST_SECONDS = 20.0  # of one side at one point


@dataclass
class Runner:
    side: Side
    texts: Iterator[str]
    turns: int = 0
    walls: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)

    def take(self, count: int) -> list[str]:
        self.turns += count
        return [next(self.texts) for _ in range(count)]


def messages(seed: int = 1) -> Iterator[str]:
    texts, number = Texts(seed), 0
    while True:
        number += 1
        yield (MARK if number % FACT_EVERY == 0 else "") + texts.said(1)


def figures(
    work: Path, cache: Path, names: Sequence[str], *, points: Sequence[int], turns: int, seconds: float
) -> Json:
    """`seconds`: what a side may take for its past at a point. `turns`: how many are measured at a point, though
    at none more than a few times its own number: a young conversation would not be one."""
    found: Json = {"points": {str(point): {} for point in points}, "stopped": {}}
    with QuickServer() as server, ExitStack() as opened:
        running = []
        for name in names:
            side = opened.enter_context(Side.start(name, server.base_url, work / name.replace(" ", "_"), cache))
            running.append(Runner(side, messages()))
            side.ask("measure", texts=running[-1].take(REAL))
        for point in points:
            grow = partial(_grow, point=point, seconds=seconds, stopped=found["stopped"])
            with ThreadPoolExecutor(GROWING_AT_ONCE) as pool:
                grown = list(pool.map(grow, running))
            on_time = [runner for runner, in_time in zip(running, grown, strict=True) if in_time]
            for number in range(max(2, min(turns, 3 * point) // AT_ONCE)):
                for runner in _rotated(running, number):
                    if sum(runner.walls) < LONGEST_SECONDS:
                        _round(runner, server)
            for runner in running:
                found["points"][str(point)][runner.side.name] = _told(runner)
            running = on_time
    return found


def _rotated(running: Sequence[Runner], number: int) -> list[Runner]:
    first = number % len(running)
    return [*running[first:], *running[:first]]


def _grow(runner: Runner, point: int, seconds: float, stopped: Json) -> bool:
    """Whether it has its past in time."""
    end = monotonic() + seconds
    while runner.turns < point:
        past = [(text, ANSWER) for text in runner.take(min(CHUNK, point - runner.turns))]
        try:
            runner.side.ask("grow", turns=past, seconds=4 * seconds)
        except WRONG as error:
            stopped[runner.side.name] = f"stopped at {runner.turns:,} turns: {error}"
            return False
        if monotonic() > end and runner.turns < point:
            stopped[runner.side.name] = f"stopped at {runner.turns:,} turns: {seconds:g} s were not enough for more"
            return False
    return True


def _round(runner: Runner, server: QuickServer) -> None:
    before = server.spent()
    done = runner.side.ask("measure", texts=runner.take(AT_ONCE))
    runner.server.append(server.spent() - before)
    runner.walls += done["walls"]
    runner.cpu.append(done["cpu"])


def _told(runner: Runner) -> Json:
    turns = len(runner.walls)
    server = sum(runner.server) / turns
    told = {
        "at": runner.turns - turns, "wall_ms": 1000 * (median(runner.walls) - server),
        "mean_wall_ms": 1000 * (fmean(runner.walls) - server), "cpu_ms": 1000 * sum(runner.cpu) / turns,
        "server_ms": 1000 * server,
    }  # fmt: skip
    runner.walls, runner.cpu, runner.server = [], [], []
    return told
