"""Overhead per turn: what each side adds to the call of the model, in a short conversation and in a long one.

All ask one quick server over HTTP, whose own time is subtracted. A side first takes its first turns for real, then gets
its past the quickest way it has, and is measured in rounds in which the sides alternate. The median round counts: in
each some turns bring a fact, which a median of turns would not show. A side that needs longer for its past than there
is time is measured where it stands, and left out from there on; a side that fails is left out at once.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from statistics import median
from time import monotonic

from pager.types import Json
from tests.bench.peers.lines import MARK
from tests.bench.proof.sides import FAILURES, Side
from tests.bench.quick_server import ANSWER, QuickServer
from tests.bench.texts import Texts

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
        return list(islice(self.texts, count))

    def grow(self, point: int, seconds: float) -> None:
        end = monotonic() + seconds
        while self.turns < point:
            past = [(text, ANSWER) for text in self.take(min(CHUNK, point - self.turns))]
            try:
                self.side.ask("grow", turns=past, seconds=4 * seconds)
            except FAILURES as error:
                self.failed, self.stopped = True, f"failed before {self.turns:,} turns: {error}"
                return
            if monotonic() > end and self.turns < point:
                self.stopped = f"stopped at {self.turns:,} turns: {seconds:g} s were not enough for more"
                return

    def measure(self, server: QuickServer) -> None:
        if self.failed or sum(each.wall for each in self.rounds) > LONGEST_SECONDS:
            return
        before = server.spent()
        try:
            done = self.side.ask("measure", texts=self.take(AT_ONCE))
        except FAILURES as error:
            self.failed, self.stopped = True, f"failed after {self.turns - AT_ONCE:,} turns: {error}"
        else:
            self.rounds.append(Round(AT_ONCE, sum(done["walls"]), done["cpu"], server.spent() - before))


def figures(
    work: Path, cache: Path, names: Sequence[str], *, points: Sequence[int], turns: int, seconds: float
) -> Json:
    """`seconds`: what a side may take for its past at a point. `turns`: how many are measured at a point, though
    at none more than a few times its own number: a young conversation would not be one."""
    measured: Json = {str(point): {} for point in points}
    stopped: dict[str, str] = {}
    with QuickServer() as server, ExitStack() as opened, ThreadPoolExecutor(GROWING_AT_ONCE) as pool:
        running: list[Runner] = []
        for name in names:
            try:
                side = opened.enter_context(Side.start(name, server.base_url, work / name.replace(" ", "_"), cache))
                runner = Runner(side, messages())
                side.ask("measure", texts=runner.take(REAL))
            except FAILURES as error:
                stopped[name] = f"did not begin: {error}"
            else:
                running.append(runner)
        for point in points:
            list(pool.map(lambda runner: runner.grow(point, seconds), running))  # noqa: B023  it runs before the next
            for number in range(max(2, min(turns, 3 * point) // AT_ONCE)):
                first = number % len(running)
                for runner in running[first:] + running[:first]:
                    runner.measure(server)
            for runner in running:
                if runner.rounds:
                    at = runner.turns - sum(each.turns for each in runner.rounds)
                    measured[str(point)][runner.side.name] = {"at": at, **per_turn(runner.rounds)}
                    runner.rounds = []
            stopped |= {runner.side.name: runner.stopped for runner in running if runner.stopped}
            running = [runner for runner in running if not runner.stopped]
            if not running:
                break
    return {"points": measured, "stopped": stopped}


def messages() -> Iterator[str]:
    texts = Texts(1)
    for number in count(1):
        yield (MARK if number % FACT_EVERY == 0 else "") + texts.said(1)


def per_turn(rounds: Sequence[Round]) -> Json:
    """Return the milliseconds that the side alone adds to a turn."""
    turns = sum(each.turns for each in rounds)
    return {
        "wall_ms": 1000 * median((each.wall - each.server) / each.turns for each in rounds),
        "mean_wall_ms": 1000 * sum(each.wall - each.server for each in rounds) / turns,
        "cpu_ms": 1000 * sum(each.cpu for each in rounds) / turns,
        "server_ms": 1000 * sum(each.server for each in rounds) / turns,
    }
