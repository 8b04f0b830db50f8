"""The story of `make bench-story` told under `tools: none`, a sleep of the same model, and what it answers then."""

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agents import Agent
from agents.models.model import Model
from agents.models.patience import Patience
from pager.sleep import Proposal
from tests.bench import bench_story
from tests.bench.figures import Figure, grid
from tests.bench.story import FACTS, QUESTIONS

KIND = bench_story.KINDS[0]
FOUND = (
    r"dog.*biscuit|biscuit.*beagle", r"piano", r"elin.*14 june|elin.*june 14", r"walnut", r"5823",
    r"okafor.*friday|friday.*okafor|appointment.*friday", r"lisbon", r"tomas.*(plants|neighbou?r)",
)  # fmt: skip
APPOINTMENT = re.compile(r"okafor|dentist|appointment", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Server:
    """A server with a model. `quick`: the diary is answered by a script."""

    url: str
    model: str
    provider: str = "anthropic"
    key: str = "none"
    quick: bool = True

    def load(self, folder: Path, home: str, model: Model | None = None) -> Agent:
        file, k = folder / "story.yaml", 8
        given = {"url": self.url, "model": self.model, "provider": self.provider, "key": self.key}
        yaml = bench_story.YAML.format(window=KIND.window, tools=KIND.tools, core="{}", k=k, **given)
        file.write_text(yaml, encoding="utf-8")
        return Agent.load(file, home=folder / home, environ={}, patience=Patience(total_seconds=300), model=model)


def story(work: Path, server: Server) -> list[Figure]:
    """Tell, ask, sleep, ask once more. Each is done in a copy of what was told."""
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "told").exists():
        _session(work, "told", server, bench_story.tell_facts)
        _session(work, "told", server, bench_story.tell_diary, bench_story.Listener() if server.quick else None)
    before = _asked(work, "told", server)
    proposal, seconds, current = _slept(work, server)
    rows = [["", "right of 10", "seconds"], ["before", *before], ["after", *_asked(work, "asleep", server)]]
    found = [fact.text for edit in proposal.edits for fact in edit.after]
    known = sum(any(re.search(pattern, text, re.IGNORECASE) for text in found) for pattern in FOUND)
    appointments = [text for text in current if APPOINTMENT.search(text)]
    is_corrected = len(appointments) > 0 and all("friday" in text.lower() for text in appointments)
    print(f"\nthe story under none, {server.model}, before and after a sleep of {seconds:.0f} s\n\n{grid(rows)}\n")
    for edit in proposal.edits:
        print(f"  {edit.kind} {edit.number}: {[*edit.before]} -> {[fact.text for fact in edit.after]}")
    print(f"  {proposal.detail}\n  current, of the appointment: {appointments}", flush=True)
    missed = Figure(
        "story: facts that the sleep missed", f"{known} of {len(FACTS)} found", len(FACTS) - known, None, ""
    )
    corrected = "yes" if is_corrected else "no"
    return [missed, Figure("story: the correction is not the current fact", corrected, float(not is_corrected), 0, "")]


def _session(
    work: Path, home: str, server: Server, session: Callable[[Agent, bench_story.Story], Iterator[str]],
    model: Model | None = None,
) -> bench_story.Story:  # fmt: skip
    told, begun = bench_story.Story(), time.monotonic()
    with (work / f"{home}.txt").open("a", encoding="utf-8") as log, server.load(work, home, model) as agent:
        for line in session(agent, told):
            print(line, file=log, flush=True)
    told.seconds = time.monotonic() - begun
    print(f"  {session.__name__}: {told.seconds:.0f} s", file=sys.stderr, flush=True)
    return told


def _asked(work: Path, home: str, server: Server) -> list[str]:
    shutil.copytree(work / home, work / f"{home} and asked")
    told = _session(work, f"{home} and asked", server, bench_story.ask_questions)
    right = [question.is_answered(answer) for question, answer in zip(QUESTIONS, told.answers, strict=True)]
    return [str(sum(right)), f"{told.seconds:.0f}"]


def _slept(work: Path, server: Server) -> tuple[Proposal, float, list[str]]:
    """Sleep and apply. Return the proposal, the seconds that it took, and the facts that are true then."""
    shutil.copytree(work / "told", work / "asleep")
    begun = time.monotonic()
    with server.load(work, "asleep") as agent:
        proposal = agent.sleep()
        assert proposal is not None
        seconds = time.monotonic() - begun
        agent.memory.sleeps.apply(proposal.number)
        current = [row.fact.text for row in agent.memory.inspect.facts("current", limit=1000).rows]
    return proposal, seconds, current
