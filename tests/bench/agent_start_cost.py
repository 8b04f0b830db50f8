"""What it costs to start: the help, a conversation up to its first request on the wire, fifty agents in one process.

Each is a process of its own, Python's start included. The conversation is that of an agent with a hundred facts and a
hundred turns, which looks facts up for the first message: the embedder is loaded on the way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from agents import Agent
from agents.testing.messages_server import MessagesServer, Sending
from pager.types import Json
from tests.bench.figures import Figure, timed
from tests.bench.grown import Talk, archive_all
from tests.bench.quick_server import Quick
from tests.bench.texts import Texts

ROOT = Path(__file__).parents[2]
ASSISTANT = ROOT / "configs" / "assistant.yaml"
FACTS, TURNS, AGENTS, ROUNDS = 100, 100, 50, 9
# Fifty agents that have talked, archived and searched; the size of the process after each.
MANY = """
import json, os, subprocess, sys
from agents import Agent
file, home, base_url, count = sys.argv[1:]
agents, sizes = [], []
for number in range(int(count)):
    agent = Agent.load(file, home=home, as_name=f"agent{number}", environ={"ANTHROPIC_BASE_URL": base_url})
    for fact in range(20):
        agent.memory.archive(f"fact {fact} of agent {number} is about hats", key=f"hat {fact}")
    for turn in range(10):
        agent.turn(f"What do you know about hat {turn}? " + "And so on. " * 50)
    agents.append(agent)
    sizes.append(1024 * int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(os.getpid())])))
print(json.dumps(sizes))
for agent in agents:
    agent.close()
"""


class Noting(Quick):
    """Notes when the first request comes."""

    asked_at: float | None = None

    def create(self, params: Json) -> Sending:
        self.asked_at = self.asked_at or time.perf_counter()
        return super().create(params)


def figures(work: Path) -> list[Figure]:
    service = Noting()
    with MessagesServer(service) as server:
        return [_help(), _chat(work, service, server.base_url), _many(work / "many", server.base_url)]


def _help() -> Figure:
    command = [Path(sys.executable).with_name("selfpager"), "--help"]
    seconds = [timed(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(ROUNDS + 1)]
    return Figure("selfpager --help", "", median(seconds[1:]), 0.3, " s")


def _chat(work: Path, service: Noting, base_url: str) -> Figure:
    environ = {**os.environ, "ANTHROPIC_BASE_URL": base_url}
    home = work / "home"
    with Agent.load(ASSISTANT, home=home, environ=environ) as agent:
        texts = Texts(1)
        archive_all(agent.memory, texts.facts(FACTS))
        Talk(agent.memory, texts).turns_in_batches(TURNS)
    command = [Path(sys.executable).with_name("selfpager"), "chat", ASSISTANT, "--home", home]
    seconds: list[float] = []
    for _ in range(ROUNDS + 1):
        service.asked_at = None
        start = time.perf_counter()
        subprocess.run(command, input=b"hello\n", env=environ, check=True, capture_output=True)
        assert service.asked_at is not None
        seconds.append(service.asked_at - start)
    told = f"from {1000 * min(seconds):.0f} to {1000 * max(seconds):.0f} ms"
    return Figure("selfpager chat, to the first request on the wire", told, median(seconds[1:]), 2.5, " s")


def _many(home: Path, base_url: str) -> Figure:
    command = [sys.executable, "-c", MANY, str(ASSISTANT), str(home), base_url, str(AGENTS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    sizes = [size / 1e6 for size in json.loads(done.stdout)]
    each = (sizes[-1] - sizes[0]) / (AGENTS - 1)
    told = f"{sizes[0]:.0f} MB with one, {sizes[-1]:.0f} MB with {AGENTS}"
    return Figure("memory of each open agent above the first", told, each, 50, " MB")
