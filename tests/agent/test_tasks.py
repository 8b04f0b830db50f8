"""Long tasks: they go on until they are done or a limit holds, and are taken up again after any end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agents import tasks
from agents.agent import Agent
from agents.events import Replied, Stopped, Text
from agents.loop import Patience
from agents.meter import RunLimits
from agents.models.model import ModelUnavailableError
from agents.tasks import NUDGE, NUDGE_CHARACTERS, NUDGES
from agents.testing import http_error
from agents.tools.functions import Tool
from pager import RejectedError
from pager.types import Json
from tests.standin import Reply, call, thinking
from tests.support import HandClock
from tests.support.hats import DONE, TASK, look, open_agent, resume, run
from tests.support.stage import Stage, last, said_to, stage_in, until


def task_of(agent: Agent) -> tasks.Task:
    task = tasks.current(agent.memory)
    assert task is not None
    return task


def test_it_goes_on_until_the_agent_says_that_it_is_done(stage: Stage) -> None:
    stage.says("I shall.", call("look"), "I have looked.", Reply("So,", DONE), "There are two.")
    agent = open_agent(stage)
    assert run(agent) == Stopped("done", "two hats")
    task = task_of(agent)
    assert (task.text, task.state, task.summary, task.steps) == (TASK, "done", "two hats", 5)
    assert task.usd == pytest.approx(agent.meter.usd)
    assert said_to(stage) == [TASK, NUDGE + TASK, NUDGE + TASK]


def test_an_agent_that_only_talks_is_nudged_a_few_times(stage: Stage) -> None:
    agent = open_agent(stage.says(*(NUDGES + 1) * ["I shall."]))
    stopped = run(agent)
    assert (stopped.reason, task_of(agent).state) == ("answered", "open")
    assert "resume" in stopped.text
    stage.says(DONE, "Two.")
    assert resume(agent).reason == "done"
    assert said_to(stage).count(NUDGE + TASK) == NUDGES + 1


def test_an_agent_that_works_between_its_words_is_nudged_as_often_as_it_takes(stage: Stage) -> None:
    agent = open_agent(stage.says(*2 * NUDGES * ["I shall.", call("look")], DONE, "Two."))
    assert run(agent).reason == "done"


def test_a_long_task_is_repeated_by_its_beginning_and_its_page(stage: Stage) -> None:
    long = f"{TASK} " + "Look well. " * NUDGE_CHARACTERS
    agent = open_agent(stage.says("I shall.", DONE, "Two."), window=200_000)
    run(agent, long)
    nudge = said_to(stage)[-1]
    assert nudge.startswith(NUDGE + TASK)
    assert len(nudge) < 2 * NUDGE_CHARACTERS
    assert f"page_in {task_of(agent).step}" in nudge
    assert agent.memory.page(task_of(agent).step) == long


def test_a_new_task_waits_for_the_one_that_is_open(stage: Stage) -> None:
    agent = open_agent(stage.says(*(NUDGES + 1) * ["I shall."]))
    with pytest.raises(RejectedError, match="no task"):
        resume(agent)
    run(agent)
    with pytest.raises(RejectedError, match="Count the hats"):
        run(agent, "Count the shoes.")
    agent.tasks().drop()
    with pytest.raises(RejectedError, match="was dropped"):
        resume(agent)
    stage.says(DONE, "None.")
    assert run(agent, "Count the shoes.").reason == "done"
    assert resume(agent) == Stopped("done", "two hats")  # without a request


def test_a_task_in_an_open_conversation_answers_its_calls_first(stage: Stage) -> None:
    agent = open_agent(stage.says(call("look")))
    events = agent.stream("what is in the box?")
    until(events, Replied)
    events.close()
    stage.says(DONE, "Two.")
    assert run(agent).reason == "done"
    assert said_to(stage)[:2] == ["what is in the box?", TASK]


def test_what_task_done_refuses(stage: Stage) -> None:
    own = call("task_done", {"summary": "two", "step": "s1"})
    nobody = call("task_done", {"summary": "two", "step": "s99"})
    agent = open_agent(stage.says(own, nobody, DONE, "Two."))
    assert run(agent).reason == "done"
    results = [block for message in stage.requests[-1]["messages"][2::2] for block in message["content"]]
    assert [block.get("is_error", False) for block in results] == [True, True, False]
    assert "s1 is the task itself" in results[0]["content"][0]["text"]


def test_steps(stage: Stage) -> None:
    agent = open_agent(stage.says(*3 * [call("look")]), limits=RunLimits(max_steps=3))
    stopped = run(agent)
    assert (stopped.reason, task_of(agent).stopped, task_of(agent).steps) == ("steps", "steps", 3)
    assert "max_steps 3" in stopped.text
    assert resume(agent).reason == "steps"  # what was spent counts: no request
    agent.close()
    again = open_agent(stage.says(DONE, "Two."), limits=RunLimits(max_steps=5))
    assert resume(again).reason == "done"
    assert task_of(again).steps == 5


def test_dollars(stage: Stage) -> None:
    agent = open_agent(stage.says(*2 * [call("look")]), limits=RunLimits(max_usd=0.003))
    stopped = run(agent)
    assert (stopped.reason, task_of(agent).steps) == ("usd", 2)
    assert 0.003 <= task_of(agent).usd == agent.meter.usd < 0.006
    agent.close()
    assert resume(open_agent(stage, limits=RunLimits(max_usd=0.003))).reason == "usd"


def test_minutes(stage: Stage) -> None:
    def wait() -> str:
        """Take a while."""
        clock.set(clock.now() + timedelta(minutes=6))
        return "waited"

    clock = HandClock()
    stage.says(*2 * [call("wait")])
    agent = open_agent(stage, wait, clock=clock, limits=RunLimits(max_minutes=10))
    assert run(agent).reason == "minutes"
    assert task_of(agent).seconds >= 2 * 6 * 60
    agent.close()
    clock.set(clock.now() + timedelta(days=1))  # the time between two runs is not spent
    before = open_agent(stage, clock=clock, limits=RunLimits(max_minutes=10))
    assert resume(before).reason == "minutes"  # what was spent in the first run is
    before.close()
    again = open_agent(stage.says(DONE, "Two."), clock=clock, limits=RunLimits(max_minutes=20))
    assert resume(again).reason == "done"


def test_a_limit_holds_before_a_nudge_too(stage: Stage) -> None:
    agent = open_agent(stage.says("I shall."), limits=RunLimits(max_steps=1))
    assert run(agent).reason == "steps"


def test_after_an_outage_that_was_too_long(stage: Stage) -> None:
    waits: list[float] = []
    patience = Patience(12 * 3_600, first_pause_seconds=1, longest_pause_seconds=300, wait=waits.append)
    agent = open_agent(stage.says(call("look"), *30 * [http_error(529)], DONE, "Two."), patience=patience)
    assert run(agent).reason == "done"
    assert waits[:10] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert sum(waits) > 1.5 * 3_600
    agent.close()
    shorter = open_agent(stage.says(*3 * [http_error(529)]), patience=Patience(2, wait=waits.append))
    with pytest.raises(ModelUnavailableError):
        run(shorter, "Count the shoes.")
    assert task_of(shorter).state == "open"
    stage.says(DONE, "None.")
    assert resume(shorter).reason == "done"
    assert said_to(stage).count("Count the shoes.") == 1


def test_after_a_refusal_the_task_is_told_again(stage: Stage) -> None:
    agent = open_agent(stage.says(call("look"), Reply.refusal("I will n")))
    assert run(agent).reason == "refused"
    stage.says(DONE, "Two.")
    assert resume(agent).reason == "done"
    assert said_to(stage) == [NUDGE + TASK]


def test_after_a_stop(stage: Stage) -> None:
    agent = open_agent(stage.says("I shall."))
    events = agent.tasks().start(TASK)
    until(events, Text)
    agent.stop()  # while it says its last word of this turn: it is not nudged to go on
    assert last(events).reason == "cancelled"
    assert task_of(agent).stopped == "cancelled"
    stage.says(DONE, "Two.")
    assert resume(agent).reason == "done"


def test_while_a_call_waits_for_approval(stage: Stage) -> None:
    tool = Tool.of(look, name="look_closely", approve="always")
    agent = open_agent(stage.says(call("look_closely")), tool)
    assert run(agent).reason == "approval"
    assert resume(agent).reason == "approval"
    agent.close()
    again = open_agent(stage.says(DONE, "Two."), tool, approve=lambda _: True)
    assert resume(again).reason == "done"


def step_by_step(params: Json) -> Reply:
    """Talk, look and tick, and say that it is done: by how many replies there are."""
    replies = [
        Reply(thinking("hm"), "I shall. " * 3),
        Reply("First,", call("look"), call("tick"), call("archive", {"text": "2"})),
        Reply(thinking("so"), DONE),
        Reply("There are two."),
    ]
    return replies[sum(message["role"] == "assistant" for message in params["messages"])]


@pytest.mark.slow
def test_left_at_every_event_and_resumed_by_another_process(tmp_path: Path) -> None:
    ticked: list[int] = []

    def tick() -> str:
        """Tick."""
        ticked.append(1)
        return "ticked"

    with stage_in(tmp_path) as stage:
        whole = list(open_agent(stage.follows(step_by_step), tick).tasks().start(TASK))
    assert last(whole).reason == "done"
    assert len(whole) > 15
    for count in range(1, len(whole)):
        ticked.clear()
        with stage_in(tmp_path / str(count)) as stage:
            agent = open_agent(stage.follows(step_by_step), tick)
            events = agent.tasks().start(TASK)
            seen = [next(events) for _ in range(count)]
            events.close()
            steps = task_of(agent).steps
            assert steps == sum(isinstance(event, Replied) for event in seen), "what a reply cost is kept with it"
            agent.close()
            again = open_agent(stage, tick)
            assert resume(again) == Stopped("done", "two hats")
            assert (len(ticked), len(again.memory.inspect.newest_facts())) == (1, 1)
            assert said_to(stage) == [TASK, NUDGE + TASK]
            assert task_of(again).steps == 4
            assert again.memory.check() == []
            stage.assert_over()
