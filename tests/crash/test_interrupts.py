"""Ctrl-C at any line of ours: the same agent, in the same process, goes on, and nothing was lost or done twice.

Python raises it in the main thread between two of its instructions. Here it is raised at the n-th line that runs.
"""

import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import agents
import pager
from agents.agent import Agent
from tests.standin import Reply, Standin, call
from tests.support.stage import Stage, stage_in

OURS = (str(Path(pager.__file__).parent), str(Path(agents.__file__).parent))
STEP = 31  # lines from one interrupt to the next: a prime, so that loops are hit at every line of theirs


@contextmanager
def interrupt_at(line: int) -> Generator[None]:
    """Raise KeyboardInterrupt at the n-th line of ours that runs in this thread."""
    ran = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            ran[0] += 1
            if ran[0] == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def calls(done: list[int]) -> Any:
    """Replies that call tools of the memory and one of ours, until they have run."""

    def follow(params: Any) -> Reply:
        if any(block["type"] == "tool_result" for block in params["messages"][-1]["content"]):
            return Reply("Done. " * 30)
        number = len(done) + 1
        done.append(number)
        return Reply(
            "Let me see.",
            call("archive", {"text": f"fact {number}"}),
            call("core_append", {"block": "human", "text": "n"})
            if number % 20 == 0
            else call("search_recall", {"query": "request"}),
            call("look", {"at": f"sea {number}"}),
        )

    return follow


def is_interrupted(agent: Agent, text: str, line: int) -> bool:
    try:
        with interrupt_at(line):
            agent.turn(text)
    except KeyboardInterrupt:
        return True
    return False


def test_the_same_agent_goes_on_after_an_interrupt_at_any_line(tmp_path: Path) -> None:
    asked: list[int] = []
    looked: list[str] = []

    def look(at: str) -> str:
        """Look at something."""
        looked.append(at)
        return f"the {at} is calm"

    with stage_in(tmp_path, Standin(limit_tokens=9_000)) as stage:
        stage.follows(calls(asked))
        agent = stage.agent(look, window=9_000)
        line, interrupted = 1, True
        while interrupted:
            interrupted = is_interrupted(agent, f"request {line}. " + "More of it. " * 40, line)
            if agent.memory.turn_is_open:
                assert agent.resume().stopped.reason == "answered", line
            line += STEP
        assert line > 20 * STEP
        assert_nothing_lost(stage, agent, looked)


def assert_nothing_lost(stage: Stage, agent: Agent, looked: list[str]) -> None:
    stage.assert_over()
    assert agent.memory.check() == []
    facts = Counter(fact.text for fact in agent.memory.inspect.newest_facts(10_000))
    assert set(facts.values()) == {1}
    assert max(Counter(looked).values()) == 1
    assert agent.turn("one more").stopped.reason == "answered"


def test_what_an_interrupt_left_is_undone_before_the_next_transaction_and_not_within_it(tmp_path: Path) -> None:
    with pager.Memory.open(tmp_path, embedder=None) as memory:
        with pytest.raises(KeyboardInterrupt), memory.transaction():
            raise KeyboardInterrupt
        with suppress(ZeroDivisionError), memory.transaction():
            memory.record("user", "apple")
            memory.archive("banana")
            raise ZeroDivisionError
        assert (memory.search_recall("apple"), memory.search_archive("banana")) == ([], [])
        with pytest.raises(KeyboardInterrupt), memory.transaction():
            raise KeyboardInterrupt
        with memory.transaction():
            memory.record("user", "cherry")
        assert len(memory.search_recall("cherry")) == 1
