"""`python -m tests.chaos [--agents N --turns N --faults N --seed N ...]`: exits with 1 if a promise was broken."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.chaos import Plan, run
from tests.chaos.clients import Clients
from tests.chaos.faults import FULL, OF_POSTGRES, OF_WORKERS, SMALL, Faults
from tests.chaos.fleet import Fleet

SAY_SECONDS = 30.0
SHOWN = 50


def main(arguments: list[str]) -> int:
    plan, known = Plan(), [fault.__name__ for fault in (*OF_WORKERS, *OF_POSTGRES)]
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--agents", type=int, default=plan.agents)
    parser.add_argument("--turns", type=int, default=plan.turns, help="of all agents together")
    parser.add_argument("--faults", type=int, default=plan.faults, help="of each kind")
    parser.add_argument("--kinds", nargs="*", default=[], choices=known, metavar="KIND", help=", ".join(known))
    parser.add_argument("--workers", type=int, default=plan.workers)
    parser.add_argument("--lanes", type=int, default=plan.lanes, help="faults of workers at once")
    parser.add_argument("--clients", type=int, default=plan.clients, help="messages at once")
    parser.add_argument("--open", type=int, default=plan.open_agents, help="agents that a worker keeps open")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--minutes", type=float, default=plan.minutes, help="then what was done is judged")
    parser.add_argument("--short", action="store_true", help="partitions of at most 3 seconds")
    parser.add_argument("--folder", type=Path, help="for the story and the logs; by default a temporary one")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended
    folder = given.folder or Path(tempfile.mkdtemp(prefix="chaos"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {given.seed}; what happens is told in {folder}/story.log", flush=True)
    asked = Plan(
        agents=given.agents, turns=given.turns, faults=given.faults, kinds=given.kinds, workers=given.workers,
        lanes=given.lanes, clients=given.clients, open_agents=given.open, seed=given.seed, minutes=given.minutes,
        durations=SMALL if given.short else FULL,
    )  # fmt: skip
    outcome = run(asked, folder, _Progress())
    for fault in outcome.verdict.faults[:SHOWN]:
        print(fault)
    print(outcome.table)
    return int(bool(outcome.verdict.faults))


class _Progress:
    """Says now and then how far it is."""

    def __init__(self) -> None:
        self._begun = self._last = time.monotonic()

    def __call__(self, fleet: Fleet, clients: Clients, faults: Faults) -> None:
        now = time.monotonic()
        if now - self._last < SAY_SECONDS:
            return
        self._last = now
        up = sum(each.url is not None for each in fleet.workers)
        done = f"{clients.done} of {clients.turns} turns, {faults.done} of {faults.total} faults, {up} workers are up"
        asked_again, wrong = sum(clients.troubles.values()), len(clients.wrong) + len(faults.broken)
        text = f"{now - self._begun:6.0f} s: {done}; clients asked again {asked_again} times; {wrong} went wrong"
        print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
