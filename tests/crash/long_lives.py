"""A long conversation with everything in it, in processes that are killed at any moment."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from random import Random

from agents.agent import Agent
from agents.models.anthropic import AnthropicModel
from agents.tools.functions import Tool
from tests.crash.children import say
from tests.support.chatter import Work, words
from tests.support.clock import START, HandClock
from tests.support.stage import build

WINDOW = 9_000


class LastingWork(Work):
    """What was ticked stands in a file, which outlives the process."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._file = directory / "ticked"
        if self._file.exists():
            self.ticked.update(self._file.read_text().split())

    def tools(self) -> list[Tool]:
        return [Tool.of(self.tick), Tool.of(self.read, idempotent=True)]

    def tick(self, mark: str) -> str:
        """Tick a mark off."""
        with self._file.open("a") as file:
            file.write(f"{mark}\n")
        return super().tick(mark)


@contextmanager
def agent_in(directory: Path, base_url: str, work: Work, *, life: int) -> Generator[Agent]:
    """`life` sets the clock: each begins a day after the one before."""
    model = AnthropicModel("m", base_url=base_url)
    clock = HandClock(START + timedelta(days=life))
    with build(directory / "agent", model, *work.tools(), window=WINDOW, clock=clock) as agent:
        yield agent
    model.close()


def live(directory: str, base_url: str, life: int) -> None:
    """Go on with what is open, then talk, for ever. Its first event says that a text is on disk."""
    random = Random(life)
    with agent_in(Path(directory), base_url, LastingWork(Path(directory)), life=life) as agent:
        agent.resume()
        for turn in count():
            text = f"turn {life}.{turn}: {words(random, random.choice([5, 30, 200]))}"
            events = agent.stream(text)
            next(events)
            say("said", text)
            for _ in events:
                pass
