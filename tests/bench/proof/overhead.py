"""Overhead per turn: what each side adds to the call of the model, in a short conversation and in a long one.

All ask one quick server over HTTP, whose own time is subtracted. A side first takes its first turns for real, then gets
its past the quickest way it has, and is measured in rounds in which the sides take turns. The median round counts: in
each some turns keep a fact, which a median of turns would not show. Whoever needs longer for its past than there is
time is measured where it stands, and left out from there on; whoever fails is left out at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
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


@dataclass(frozen=True, slots=True)
class Round:
    """The seconds of some turns."""

    turns: int
    wall: float
    cpu: float
    server: float

    @property
    def added(self) -> float:
        """To a turn, by the side alone."""
        return (self.wall - self.server) / self.turns


@dataclass
class Runner:
    side: Side
    texts: Iterator[str]
    turns: int = 0
    rounds: list[Round] = field(default_factory=list)
    stopped: str = ""  # why it takes no further part
    failed: bool = False

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
        running: list[Runner] = []
        for name in names:
            try:
                side = opened.enter_context(Side.start(name, server.base_url, work / name.replace(" ", "_"), cache))
                runner = Runner(side, messages())
                side.ask("measure", texts=runner.take(REAL))
            except WRONG as error:
                found["stopped"][name] = f"did not begin: {error}"
            else:
                running.append(runner)
        for point in points:
            with ThreadPoolExecutor(GROWING_AT_ONCE) as pool:
                list(pool.map(partial(_grow, point=point, seconds=seconds), running))
            _measure(running, server, max(2, min(turns, 3 * point) // AT_ONCE))
            for runner in running:
                if runner.rounds:
                    grown = runner.turns - sum(each.turns for each in runner.rounds)
                    found["points"][str(point)][runner.side.name] = {"at": grown, **told(runner.rounds)}
                    runner.rounds = []
            found["stopped"] |= {runner.side.name: runner.stopped for runner in running if runner.stopped}
            running = [runner for runner in running if not runner.stopped]
    return found


def _measure(running: Sequence[Runner], server: QuickServer, rounds: int) -> None:
    for number in range(rounds):
        for runner in _rotated(running, number):
            if runner.failed or sum(each.wall for each in runner.rounds) > LONGEST_SECONDS:
                continue
            try:
                runner.rounds.append(_round(runner, server))
            except WRONG as error:
                runner.failed, runner.stopped = True, f"failed after {runner.turns - AT_ONCE:,} turns: {error}"


def _rotated(running: Sequence[Runner], number: int) -> list[Runner]:
    first = number % len(running)
    return [*running[first:], *running[:first]]


def _grow(runner: Runner, point: int, seconds: float) -> None:
    end = monotonic() + seconds
    while runner.turns < point:
        past = [(text, ANSWER) for text in runner.take(min(CHUNK, point - runner.turns))]
        try:
            runner.side.ask("grow", turns=past, seconds=4 * seconds)
        except WRONG as error:
            runner.failed, runner.stopped = True, f"failed before {runner.turns:,} turns: {error}"
            return
        if monotonic() > end and runner.turns < point:
            runner.stopped = f"stopped at {runner.turns:,} turns: {seconds:g} s were not enough for more"
            return


def _round(runner: Runner, server: QuickServer) -> Round:
    before = server.spent()
    done = runner.side.ask("measure", texts=runner.take(AT_ONCE))
    return Round(AT_ONCE, sum(done["walls"]), done["cpu"], server.spent() - before)


def told(rounds: Sequence[Round]) -> Json:
    """Milliseconds per turn."""
    turns = sum(each.turns for each in rounds)
    return {
        "wall_ms": 1000 * median(each.added for each in rounds),
        "mean_wall_ms": 1000 * sum(each.wall - each.server for each in rounds) / turns,
        "cpu_ms": 1000 * sum(each.cpu for each in rounds) / turns,
        "server_ms": 1000 * sum(each.server for each in rounds) / turns,
    }
