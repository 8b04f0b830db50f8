"""A whole run: clients and faults side by side, then the judge."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.clients import Clients
from tests.chaos.faults import FULL, Durations, Faults
from tests.chaos.fleet import DATABASE, LEASE_SECONDS, Fleet
from tests.chaos.judge import Ran, Verdict, judge
from tests.chaos.model import PlayedModel
from tests.support.formats import MIGRATIONS, know_formats

AHEAD = 0.03  # of all: so far may clients and faults be ahead of each other
DRAIN_SECONDS = 120.0  # in which what was told has to be answered


@dataclass(frozen=True, slots=True)
class Plan:
    agents: int = 1_000
    turns: int = 10_000
    faults: int = 100  # of each kind
    kinds: Sequence[str] = ()  # all
    workers: int = 5
    lanes: int = 3  # faults of workers at once
    clients: int = 24
    open_agents: int = 60
    seed: int = 1
    patience: float = 240.0  # of clients, in seconds, with one message
    minutes: float = 600.0  # then nothing more is begun, and what was done is judged
    mutant: str = "none"
    durations: Durations = field(default=FULL)


@dataclass(frozen=True, slots=True)
class Outcome:
    verdict: Verdict
    faults: dict[str, int]
    troubles: dict[str, int]  # that clients had, and got over
    restores: int
    folds: int
    slowest_seconds: float
    seconds: float

    @property
    def table(self) -> str:
        verdict = self.verdict
        rows = [
            ("messages", verdict.messages), ("calls of tools", verdict.calls), ("lost", len(verdict.lost)),
            ("doubled", len(verdict.doubled)), ("reordered", len(verdict.reordered)),
            ("broken otherwise", len(verdict.broken)), ("agents restored", self.restores), ("logs folded", self.folds),
            ("seconds", round(self.seconds)),
            ("the slowest message, seconds", round(self.slowest_seconds, 1)),
            *((f"fault: {name}", count) for name, count in sorted(self.faults.items())),
            *((f"clients asked again after: {name}", count) for name, count in sorted(self.troubles.items())),
        ]  # fmt: skip
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"| {name:{width}} | {count:>7} |" for name, count in rows)


def run(plan: Plan, folder: Path, tell: object = None) -> Outcome:
    """Run a plan. What happens is in `folder`, in story.log and the logs of the workers."""
    begun = time.monotonic()
    with PlayedModel() as model:
        fleet = Fleet(folder, plan.workers, plan.open_agents, model.base_url, mutant=plan.mutant)
        try:
            fleet.story.tell(f"{plan}")
            clients = Clients(
                fleet,
                agents=plan.agents,
                turns=plan.turns,
                threads=plan.clients,
                seed=plan.seed,
                patience=plan.patience,
            )
            faults = Faults(
                fleet, each=plan.faults, kinds=list(plan.kinds), lanes=plan.lanes, seed=plan.seed,
                durations=plan.durations,
            )  # fmt: skip
            clients.may_go = lambda progress: progress <= faults.progress + AHEAD or faults.progress == 1
            faults.may_go = lambda progress: progress <= clients.progress + AHEAD or clients.progress == 1
            clients.start()
            faults.start()
            while any(each.is_alive() for each in (*clients._threads, *faults._threads)):
                time.sleep(0.2)
                clients.is_ending = faults.is_ending = time.monotonic() - begun > 60 * plan.minutes
                if callable(tell):
                    tell(fleet, clients, faults)
            verdict = _judged(fleet, clients)
            verdict.broken += [*clients.wrong, *faults.broken]
            moments = "".join(each.moments.read_text() for each in fleet.workers)
            outcome = Outcome(
                verdict, dict(faults.counts), dict(clients.troubles), moments.count("restore begins"),
                moments.count("fold begins"), clients.slowest, time.monotonic() - begun,
            )  # fmt: skip
            for fault in verdict.faults:
                fleet.story.tell(f"JUDGE {fault}")
            return outcome
        finally:
            fleet.close()


def _judged(fleet: Fleet, clients: Clients) -> Verdict:
    """Wait until all that was told is answered, end the workers, and judge."""
    waiting = "SELECT count(*) FROM selfpager.commands"
    end = time.monotonic() + DRAIN_SECONDS
    while fleet.postgres.run(waiting, DATABASE)[0][0] and time.monotonic() < end:
        time.sleep(0.1)
    late = fleet.postgres.run(waiting, DATABASE)[0][0]
    time.sleep(1.0)  # what was read last is answered
    fleet.story.tell("the workers are ended")
    for each in fleet.workers:
        each.kill()
    time.sleep(LEASE_SECONDS)
    know_formats(fleet.formats)
    try:
        verdict = judge(fleet.home, fleet.address, clients.talks, Ran.of(fleet.witness))
    finally:
        know_formats(0)
    if late:
        verdict.broken.append(f"{late} messages were not read in {DRAIN_SECONDS:g} s")
    verdict.broken += [*_claims(fleet), *_strangers(fleet)]
    return verdict


def _claims(fleet: Fleet) -> list[str]:
    """Return claims of workers that did not know the agent's format."""
    found = fleet.postgres.run(
        "SELECT name, format, (owner::json ->> 'pid')::int FROM claims WHERE owner IS NOT NULL", DATABASE
    )
    least = len(MIGRATIONS)
    known = fleet.formats_of
    return [
        f"process {pid}, which knows {known[pid]} formats more, has claimed {name} of format {format_}"
        for name, format_, pid in found
        if pid in known and format_ > least + known[pid]
    ]


def _strangers(fleet: Fleet) -> list[str]:
    """Return commits of workers to agents that were another's."""
    found = fleet.postgres.run("SELECT name, seq, port, owner::json ->> 'url' FROM strangers", DATABASE)
    return [f"{port} has made commit {seq} of {name}, which was {owner}'s" for name, seq, port, owner in found]
