"""What one open debug view costs the agent that it shows: CPU time of the agent's process per turn.

The agent is a process of its own that takes turns when it is told to, and says how much CPU time they took. The view is
another, looked at in a real browser; in every other block of turns the browser looks at an empty page instead.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from playwright.sync_api import sync_playwright

from tests.bench.figures import Figure, Pair
from tests.bench.quick_server import QuickServer
from tests.browser.programs import FLAGS, browser_program

BLOCK_TURNS = 300  # more than a second: the view looks once or twice
ROUNDS = 16
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
        Child(sys.executable, "-m", "agents", "view", "--no-browser", "--json", "--home", str(home)) as view,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=browser_program(), args=FLAGS) as browser,
    ):
        assert agent.line() == "ready"
        address = json.loads(view.line())["address"]
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        agent.turns(WARM_UP_TURNS)
        watched, alone = list[float](), list[float]()
        for number in range(ROUNDS):
            for looks in (number % 2 == 0, number % 2 == 1):
                page.goto(f"{address}#agent" if looks else "about:blank")
                if looks:
                    page.wait_for_selector("body[data-ready]")
                page.wait_for_timeout(SETTLE_MS)
                (watched if looks else alone).append(agent.turns(BLOCK_TURNS) / BLOCK_TURNS)
    cost = Pair(watched, alone)
    told = cost.told("watched", "alone")
    return [
        Figure("CPU time of a turn with one view open, against none", told, cost.ratio, MOST),
        Figure("... the mean of all", cost.told_means("watched", "alone"), cost.ratio_of_means),
    ]
