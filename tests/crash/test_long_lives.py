"""SIGKILL at random moments of a long conversation with evictions and faults: nothing lost, nothing done twice."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from pager import Memory
from pager.memory import INTERRUPTED
from tests.crash.children import Nursery
from tests.crash.long_lives import LastingWork, agent_in
from tests.standin.server import StandinProcess

LIVES = 40
MOST_TURNS, LONGEST_DELAY_S = 3, 0.3  # a life hears of so many turns, and dies somewhere in what follows

pytestmark = pytest.mark.long


def test_killed_at_any_moment_of_a_long_conversation(tmp_path: Path) -> None:
    random = Random(4)
    said: list[str] = []
    with (
        StandinProcess(limit=9_000, seed=9, faults="some", replies="tests.support.chatter:replies") as standin,
        Nursery("tests.crash.long_lives", "anthropic") as nursery,
    ):
        for life in range(1, LIVES + 1):
            child = nursery.begin("tests.crash.long_lives:live", tmp_path, standin.base_url, life)
            for _ in range(random.randint(1, MOST_TURNS)):
                child.next()
            time.sleep(random.uniform(0, LONGEST_DELAY_S))
            child.kill()
            assert child.signal == signal.SIGKILL
            said += [text for _, text in child.said]
        work = LastingWork(tmp_path)
        with agent_in(tmp_path, standin.base_url, work, life=LIVES + 1) as agent:
            agent.resume()
            assert agent.turn("the end").stopped.reason in ("answered", "cut", "refused")
            assert agent.memory.check() == []
            judge(agent.memory, said, work.ticked)
            assert len(agent.memory.ledger(events=["epoch"])) > LIVES / 4
        assert standin.log()["rejected"] == []


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
    outcome = {each["tool_use_id"]: "".join(inner["text"] for inner in each.get("content", [])) for each in results}
    sure, doubtful = set[str](), set[str]()
    for call_id, text in outcome.items():
        if called[call_id]["name"] == "tick":
            mark = called[call_id]["input"].get("mark")
            if text == f"ticked {mark}":
                sure.add(mark)
            elif text == INTERRUPTED:
                doubtful.add(mark)
    assert set(ticked.values()) == {1}, "a tick was done twice"
    assert sure <= ticked.keys() <= sure | doubtful
