"""SIGKILL at random moments of a long conversation with evictions and faults: nothing lost, nothing done twice."""

import signal
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from random import Random

import pytest

from agents.agent import Agent
from agents.models.anthropic import AnthropicModel
from pager import Memory
from pager.memory import INTERRUPTED
from tests.crash.children import Life, say
from tests.standin import Standin
from tests.standin.faults import SOME, Faults
from tests.standin.server import StandinServer
from tests.support.chatter import Work, replies, words
from tests.support.clock import START, HandClock
from tests.support.stage import build

WINDOW, LIVES = 9_000, 40
MOST_TURNS, LONGEST_DELAY_S = 3, 0.3  # a life hears of so many turns, and dies somewhere in what follows

pytestmark = pytest.mark.long


class LastingWork(Work):
    """Marks that are ticked stand in a file, which outlives the process."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._file = directory / "ticked"
        if self._file.exists():
            self.ticked.update(self._file.read_text().split())

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


def live(directory: Path, base_url: str, life: int) -> None:
    """Go on with what is open, then talk, for ever. Its first event says that a text is on disk."""
    random = Random(life)
    with agent_in(directory, base_url, LastingWork(directory), life=life) as agent:
        agent.resume()
        for turn in count():
            text = f"turn {life}.{turn}: {words(random, random.choice([5, 30, 200]))}"
            events = agent.stream(text)
            next(events)
            say(text)
            for _ in events:
                pass


def test_killed_at_any_moment_of_a_long_conversation(tmp_path: Path) -> None:
    random = Random(4)
    said: list[str] = []
    provider = Standin(limit_tokens=WINDOW, seed=9)
    with StandinServer(provider, faults=Faults(9, SOME), replies=replies) as standin:
        for life in range(1, LIVES + 1):
            child = Life(live, tmp_path, standin.base_url, life)
            for _ in range(random.randint(1, MOST_TURNS)):
                child.next()
            time.sleep(random.uniform(0, LONGEST_DELAY_S))
            child.kill()
            assert child.signal == signal.SIGKILL
            said += [text for (text,) in child.said]
        work = LastingWork(tmp_path)
        with agent_in(tmp_path, standin.base_url, work, life=LIVES + 1) as agent:
            agent.resume()
            assert agent.turn("the end").stopped.reason in ("answered", "cut", "refused")
            assert agent.memory.check() == []
            judge(agent.memory, said, work.ticked)
            assert len(agent.memory.ledger(events=["epoch"])) > LIVES / 4
        assert standin.rejected == []


def judge(memory: Memory, said: list[str], ticked: Counter[str]) -> None:
    newest = memory._store.conversation.last_step()  # what is done about the last message counts, too
    blocks = [memory.history.blocks_of(f"s{number}") for number in range(1, newest + 1)]
    texts = [content[0]["text"] for content in blocks if content and content[0]["type"] == "text"]
    mine = [text for text in texts if text.startswith("turn ")]
    assert len(set(mine)) == len(mine)
    assert [text for text in mine if text in set(said)] == said  # what was not told may be there too
    called = {block["id"]: block for content in blocks for block in content if block["type"] == "tool_use"}
    results = [block for content in blocks for block in content if block["type"] == "tool_result"]
    assert len({block["tool_use_id"] for block in results}) == len(results)
    sure, doubtful = set[str](), set[str]()
    for result in results:
        call, text = called[result["tool_use_id"]], "".join(inner["text"] for inner in result.get("content", []))
        mark = call["input"].get("mark")
        if call["name"] == "tick" and text in (INTERRUPTED, f"ticked {mark}"):
            (doubtful if text == INTERRUPTED else sure).add(mark)
    assert set(ticked.values()) == {1}, "a tick was done twice"
    assert sure <= ticked.keys() <= sure | doubtful
