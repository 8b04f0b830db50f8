"""What one open debug view costs the agent that it shows: CPU time of the agent's process (its own and the kernel's for
it) per turn.

The agent is a process of its own that takes turns when it is told to, and says how much CPU time they took. The view is
another, looked at in a real browser. Blocks of turns alternate: the browser shows the agent, an empty page, or the
twin: a copy of the agent's memory that a third process keeps changing. Looking at the twin is the same work on files
that the agent does not have: what that costs the agent is not the view's reading, but the processor that all share.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from playwright.sync_api import sync_playwright

from pager import MemoryReader
from tests.bench.figures import Figure, Pair
from tests.bench.quick_server import QuickServer
from tests.browser.programs import FLAGS, browser_program

BLOCK_TURNS = 300  # more than a second: the view looks once or twice
ROUNDS = 30
WARM_UP_TURNS = 300
MOST = 1.02
SETTLE_MS = 1_000  # opening and leaving a page is the browser's work, and is over by then

AGENT = """
import sys, time
from agents import Agent
from tests.bench.texts import Texts
texts = Texts(1)
environ = {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": sys.argv[3]}
with Agent.load(sys.argv[1], home=sys.argv[2], environ=environ) as agent:
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.process_time()
        for _ in range(int(line)):
            agent.turn(texts.said(1))
        print(time.process_time() - start, flush=True)
"""
TWIN = """
import sys, time
from itertools import count
from pager import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    for number in count():
        memory.save_value("bench", str(number))
        time.sleep(0.25)
"""
CONFIG = """
name: agent
model: {id: m, base_url: "${ANTHROPIC_BASE_URL}"}
window: {limit_tokens: 20000}
archival: {embedder: none}
"""


class Child:
    """A process that answers each line with a line."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def turns(self, count: int) -> float:
        """So many turns; the CPU seconds that they took."""
        assert self._process.stdin
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return float(self.line())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()


def figures(work: Path) -> list[Figure]:
    file, home = work / "agent.yaml", work / "home"
    file.write_text(CONFIG)
    with (
        QuickServer() as server,
        Child(sys.executable, "-c", AGENT, str(file), str(home), server.base_url) as agent,
    ):
        assert agent.line() == "ready"
        agent.turns(WARM_UP_TURNS)
        copied(home / "agent", home / "twin")
        with Child(sys.executable, "-c", TWIN, str(home / "twin")):
            times = measured(agent, home)
    cost, shared = (Pair(times[name], times["nothing"]) for name in ("agent", "twin"))
    return [
        Figure(
            "CPU time of a turn with one view open, against none",
            cost.told_rounds("watched", "alone"), cost.ratio_of_rounds, MOST,
        ),
        Figure(
            "... with a view of another agent open (the processor's share)",
            shared.told_rounds("beside", "alone"), shared.ratio_of_rounds,
        ),
    ]  # fmt: skip


def copied(agent: Path, twin: Path) -> None:
    twin.mkdir()
    with MemoryReader.open(agent) as reading:
        reading.export(twin / "pager.db")


def measured(agent: Child, home: Path) -> dict[str, list[float]]:
    """CPU seconds per turn, a value per round, for each thing that the browser shows; who is first rotates."""
    times: dict[str, list[float]] = {"agent": [], "nothing": [], "twin": []}
    with (
        Child(sys.executable, "-m", "agents", "view", "--no-browser", "--json", "--home", str(home)) as view,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=browser_program(), args=FLAGS) as browser,
    ):
        address = json.loads(view.line())["address"]
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        names = list(times)
        for number in range(ROUNDS):
            for shown in names[number % 3 :] + names[: number % 3]:
                page.goto("about:blank")
                if shown != "nothing":
                    page.goto(f"{address}#{shown}")
                    page.wait_for_selector("body[data-ready]")
                page.wait_for_timeout(SETTLE_MS)
                times[shown].append(agent.turns(BLOCK_TURNS) / BLOCK_TURNS)
    return times
