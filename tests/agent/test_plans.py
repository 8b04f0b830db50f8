"""The plan of a task: its progress, what memory has for its next item, and the limits of turns and tasks."""

import pytest

from agents.agent import Agent
from agents.events import Planned, Stopped
from agents.meter import TURN_STEPS, RunLimits
from pager import Checklist, Prefetch
from tests.standin import Reply, call
from tests.support.stage import Stage, last

DONE = call("task_done", {"summary": "two hats"})
TASK = "Buy two hats."


def look() -> str:
    """Look into the box."""
    return "a red one"


def add(text: str) -> dict[str, object]:
    return call("core_append", {"block": "plan", "text": text})


def check(item: str) -> dict[str, object]:
    return call("core_replace", {"block": "plan", "old_text": f"[ ] {item}", "new_text": f"[x] {item}"})


def open_agent(stage: Stage) -> Agent:
    agent = stage.agent(look, task=True, prefetch=Prefetch(k=3))
    agent.memory.archive("the red hat costs twelve florins in the shop by the river")
    agent.memory.archive("the blue ribbon is sold out everywhere until the spring")
    return agent


def test_progress_is_told_when_it_changes(stage: Stage) -> None:
    stage.says(add("- [ ] price of the red hat\n- [ ] go home"), call("look"), check("price of the red hat"), DONE)
    events = [event for event in open_agent(stage).tasks().start(TASK) if isinstance(event, Planned)]
    assert events == [Planned(0, 2, "price of the red hat"), Planned(1, 2, "go home")]


def test_what_memory_has_for_an_item_comes_behind_the_result_that_made_it_the_next(stage: Stage) -> None:
    plan = "- [ ] price of the red hat in florins\n- [ ] find the blue ribbon that is sold\n- [ ] go home"
    stage.says(
        Reply(call("look"), add(plan)), call("look"), check("price of the red hat in florins"),
        check("find the blue ribbon that is sold"), DONE,
    )  # fmt: skip
    agent = open_agent(stage)
    assert last(agent.tasks().start(TASK)).reason == "done"
    recalled = [(row.page_id, row.step) for row in agent.memory.ledger(events=["recall"])]
    assert recalled == [("f1", "s2"), ("f2", "s4")]  # once for each
    shown = stage.requests[1]["messages"][-1]["content"]
    assert [block["type"] for block in shown] == ["tool_result", "tool_result"]
    assert "twelve florins" in shown[1]["content"][-1]["text"]
    assert "twelve florins" not in str(stage.requests[2]["messages"][-1])
    assert "sold out" in str(stage.requests[3]["messages"][-1])
    assert agent.memory.check() == []


def test_after_a_crash_between_the_result_and_the_request_it_is_recalled_once(stage: Stage) -> None:
    stage.says(add("- [ ] price of the red hat in florins"), DONE)
    agent = open_agent(stage)
    events = agent.tasks().start(TASK)
    for event in events:
        if isinstance(event, Planned):
            break
    events.close()
    assert agent.memory.ledger(events=["recall"]) == []
    assert last(agent.tasks().resume()).reason == "done"
    assert [row.page_id for row in agent.memory.ledger(events=["recall"])] == ["f1"]


def test_a_full_plan_goes_on(stage: Stage) -> None:
    lines = [add("\n".join(f"- [x] looked into box {number} {turn}" for number in range(20))) for turn in range(9)]
    agent = open_agent(stage.says(*lines, add("- [ ] go home"), DONE))
    events = list(agent.tasks().start(TASK))
    assert [event.done for event in events if isinstance(event, Planned)][-1] == 180
    [plan] = [block for block in agent.memory.core() if block.name == "plan"]
    assert Checklist.read(plan.value) == Checklist(180, 181, "go home")
    assert agent.memory.search_archive("looked into box 3 1", tags=["plan"])


def test_a_turn_has_a_limit_by_default_and_a_task_has_none(stage: Stage) -> None:
    stage.follows(lambda params: Reply("That is all.") if "tool_choice" in params else Reply(call("look")))
    agent = stage.agent(look, window=200_000)
    assert agent.turn("look").stopped.reason == "steps"
    assert agent.meter.steps == TURN_STEPS + 1
    agent.close()
    again = stage.agent(look, window=200_000, task=True)
    steps = 0

    def reply(_: object) -> Reply:
        nonlocal steps
        steps += 1
        return Reply(call("look") if steps <= TURN_STEPS + 5 else DONE)

    stage.follows(reply)
    assert last(again.tasks().start(TASK)) == Stopped("done", "two hats")


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (RunLimits(), ""),
        (RunLimits(max_steps=5), "max_steps 5"),
        (RunLimits(max_steps=5, max_usd=0.5, max_minutes=90), "max_steps 5, max_usd 0.5, max_minutes 90"),
    ],
)
def test_limits_are_named(limits: RunLimits, text: str) -> None:
    assert str(limits) == text
