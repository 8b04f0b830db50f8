"""SIGKILL at every kind of commit of the loop, then resumed: each effect once, each doubt told, a valid conversation.

Between two commits nothing changes on disk: dying in a tool or in the middle of a stream is dying after a commit.
"""

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents import tasks
from agents.agent import Agent
from agents.events import Stopped
from agents.tasks import NUDGE
from pager import Checklist
from pager.memory import INTERRUPTED, Memory
from pager.reader import MemoryReader
from pager.types import Json
from tests.crash.children import Life, run
from tests.crash.commit_points import EVERY, one_of_each
from tests.crash.loop_load import (
    FACTS,
    LOOKED,
    REPLIES,
    TASK,
    TASK_REPLIES,
    TEXTS,
    Shop,
    live,
    open_agent,
    standin,
    work,
)
from tests.support.stage import last, stage_in


@dataclass(frozen=True)
class Ending:
    calls: list[tuple[str, Json, str]]  # name, input, result
    effects: list[str]

    @property
    def interrupted(self) -> list[str]:
        return [given["item"] for _, given, result in self.calls if result == INTERRUPTED]


def finish(directory: Path, life: Life) -> Ending:
    with stage_in(directory, standin()) as stage:
        shop = Shop(directory)
        agent = open_agent(stage, shop, life=2)
        judge_acknowledged(agent, life)
        agent.resume()
        for text in TEXTS:
            if not was_said(agent, text):
                agent.turn(text)
        ending = Ending(judge_conversation(agent), shop.effects())
        stage.assert_over()
    return ending


def was_said(agent: Agent, text: str) -> bool:
    return any(hit.text == text for hit in agent.memory.search_recall(text) if hit.who == "user")


def judge_acknowledged(agent: Agent, life: Life) -> None:
    steps = [stay.page_id for stay in agent.memory.history.resident()]
    results = results_of(agent.memory, steps)
    for kind, text, *more in life.said:
        assert was_said(agent, text)
        if kind == "replied":
            assert more[0] in steps
        elif kind == "finished":
            assert results[more[0]] == more[1]


def results_of(memory: Memory | MemoryReader, steps: list[str]) -> dict[str, str]:
    """Every result by its call, each of which is answered once."""
    blocks = [block for step in steps for block in memory.history.blocks_of(step) if block["type"] == "tool_result"]
    assert len({block["tool_use_id"] for block in blocks}) == len(blocks)
    return {block["tool_use_id"]: "".join(inner["text"] for inner in block["content"]) for block in blocks}


def judge_conversation(agent: Agent) -> list[tuple[str, Json, str]]:
    """Each message and each reply once, in order; memory tools exactly once. The calls with their results."""
    memory = agent.memory
    assert not memory.turn_is_open
    assert memory.check() == []
    steps = [stay.page_id for stay in memory.history.resident()]
    said = [memory.history.blocks_of(step) for step in steps]
    users = [blocks[0]["text"] for blocks in said if len(blocks) == 1 and blocks[0].get("text") in TEXTS]
    assert users == list(TEXTS)
    called = [block for blocks in said for block in blocks if block["type"] == "tool_use"]
    scripted = [block for reply in REPLIES for block in reply.blocks if block["type"] == "tool_use"]
    assert [(each["name"], each["input"]) for each in called] == [(each["name"], each["input"]) for each in scripted]
    assert len(steps) == len(TEXTS) + len(REPLIES)
    assert [fact.text for fact in reversed(memory.inspect.newest_facts())] == list(FACTS)
    assert [block.value for block in memory.core() if block.name == "human"] == ["likes hats"]
    results = results_of(agent.memory, steps)
    return [(block["name"], block["input"], results[block["id"]]) for block in called]


def judge_effects(ending: Ending) -> None:
    """Done once, or in doubt and told so; what may run again has run to its end."""
    for name, given, result in ending.calls:
        if name == "pay":
            times = ending.effects.count(f"paid {given['item']}")
            assert times <= 1 if result == INTERRUPTED else (times, result) == (1, f"paid {given['item']}")
        elif name == "price":
            assert result == f"asked {given['item']}"
            assert 1 <= ending.effects.count(result) <= 2
        else:
            assert result != INTERRUPTED
    assert len(ending.interrupted) <= 1


def killed_at(tmp_path: Path, job: Callable[..., None], when: str, *, every: bool) -> Iterator[tuple[Path, Life]]:
    """Kill that job before or after each kind of commit, or every commit: its directory, and what it had said."""
    whole = run(job, tmp_path / "whole", when, 0)
    assert whole.signal == 0
    (kinds,) = whole.said[-1]
    for deadly in one_of_each(kinds, every=every):
        directory = tmp_path / str(deadly)
        directory.mkdir()
        life = run(job, directory, when, deadly)
        assert life.signal == signal.SIGKILL
        yield directory, life


@EVERY
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_commits(tmp_path: Path, when: str, every: bool) -> None:
    endings = [finish(directory, life) for directory, life in killed_at(tmp_path, live, when, every=every)]
    for ending in endings:
        judge_effects(ending)
    assert len(endings) > (25 if every else 8)
    # Behind the intent and before the result of each payment, there is doubt.
    in_doubt = {item for ending in endings for item in ending.interrupted}
    assert in_doubt == ({"blue hat", "red hat", "ribbon"} if every else {"blue hat"})
    asked = {ending.effects.count("asked blue hat") for ending in endings}
    assert asked <= ({1, 2} if when == "before" else {1})


def finish_task(directory: Path, life: Life) -> list[str]:
    """As `run --resume` does; or as `run` again, when nothing of the task was kept. Payments that are in doubt."""
    with stage_in(directory, standin()) as stage:
        shop = Shop(directory)
        agent = open_agent(stage, shop, life=2, task=True)
        begun = tasks.current(agent.memory)
        replied = [each for each in life.said if each[0] == "replied"]
        if begun is None:
            assert life.said == []
        else:
            assert len(replied) <= begun.steps <= len(replied) + 1  # killed after a commit that it did not live to tell
        assert last(agent.tasks().resume() if begun else agent.tasks().start(TASK)) == Stopped("done", "bought", 2)
        ended = tasks.current(agent.memory)
        assert ended is not None
        assert (ended.state, ended.steps, ended.misfits) == ("done", len(TASK_REPLIES), 1)
        steps = [stay.page_id for stay in agent.memory.history.resident() if stay.how == "step"]
        said = [agent.memory.history.blocks_of(step)[0].get("text", "") for step in steps]
        assert [text for text in said if TASK in text] == [TASK, NUDGE[0] + TASK, NUDGE[0] + TASK]
        facts = [fact.text for fact in agent.memory.inspect.newest_facts()][::-1]
        plan = next(block.value for block in agent.memory.core() if block.name == "plan")
        left = [text.removeprefix("[x] ") for text in facts[1:]]
        assert left == list(LOOKED[: len(left)]) != []  # each is in the plan or in the archive, and in one of them
        assert [item for item in LOOKED if item in plan] == list(LOOKED[len(left) :])
        assert Checklist.read(plan) == Checklist(len(LOOKED), len(LOOKED) + 1, "is the blue hat ordered already?")
        recalled = [row.page_id for row in agent.memory.ledger(events=["recall"])]
        assert (facts[0], recalled.count("f1")) == (FACTS[1], 1)
        assert agent.memory.check() == []
        results = results_of(agent.memory, steps)
        doubts = [text for text in results.values() if text == INTERRUPTED]
        assert shop.effects().count("paid blue hat") == 1 or (doubts and "paid blue hat" not in shop.effects())
        stage.assert_over()
    return doubts


@EVERY
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_task_killed_at_commits(tmp_path: Path, when: str, every: bool) -> None:
    doubts = [
        doubt
        for directory, life in killed_at(tmp_path, work, when, every=every)
        for doubt in finish_task(directory, life)
    ]
    assert len(doubts) == 1  # between its intent and its result
