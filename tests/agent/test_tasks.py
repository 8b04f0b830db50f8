"""Long tasks go on until they are done or a limit holds, are resumed after any end, and read messages in between."""

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from agents import tasks
from agents.agent import Agent
from agents.events import Replied, Stopped, Text, ToolFinished
from agents.meter import RunLimits
from agents.models.model import ModelUnavailableError
from agents.models.patience import Patience
from agents.tasks import NUDGE, NUDGE_CHARACTERS, NUDGES
from agents.testing import http_error
from agents.tools.functions import Tool
from pager import RejectedError
from pager.types import Json
from pager.upkeep import inbox
from tests.standin import Reply, call
from tests.support import HandClock
from tests.support.stage import Said, Stage, last, leave_at, said_to, until

TASK = "Count the hats in the box."
DONE = call("task_done", {"summary": "two hats"})


def look() -> str:
    """Look into the box."""
    return "a red one, a blue one"


def open_agent(stage: Stage, *functions: Callable[..., Any] | Tool, **options: Any) -> Agent:
    return stage.agent(look, *functions, task=True, **options)


def run(agent: Agent, text: str = TASK) -> Stopped:
    return last(agent.tasks().start(text))


def resume(agent: Agent) -> Stopped:
    return last(agent.tasks().resume())


def task_of(agent: Agent) -> tasks.Task:
    task = tasks.current(agent.memory)
    assert task is not None
    return task


def test_it_goes_on_until_the_agent_says_that_it_is_done(stage: Stage) -> None:
    stage.says("I shall.", call("look"), "I have looked.", Reply("So,", DONE))
    agent = open_agent(stage)
    assert run(agent) == Stopped("done", "two hats")
    task = task_of(agent)
    assert (task.text, task.state, task.summary, task.steps) == (TASK, "done", "two hats", 4)
    assert task.usd == pytest.approx(agent.meter.usd)
    assert said_to(stage) == [TASK, NUDGE[0] + TASK, NUDGE[0] + TASK]


def test_an_agent_that_only_talks_is_nudged_a_few_times(stage: Stage) -> None:
    agent = open_agent(stage.says(*(NUDGES + 1) * ["I shall."], *2 * NUDGES * [call("look"), "I shall."], DONE))
    stopped = run(agent)
    assert (stopped.reason, "resume" in stopped.text, task_of(agent).state) == ("answered", True, "open")
    assert resume(agent).reason == "done"  # it works between its words: it is nudged as often as it takes
    nudges = [NUDGE.index(said.removesuffix(TASK)) for said in said_to(stage)[1:]]
    assert nudges[:NUDGES] == [0, 1, 0]  # never with the same words twice, until it works again
    assert nudges[NUDGES:] == [0] * (2 * NUDGES + 1)


def test_a_long_task_is_repeated_by_its_beginning_and_its_page(stage: Stage) -> None:
    long = f"{TASK} " + "Look well. " * NUDGE_CHARACTERS
    agent = open_agent(stage.says("I shall.", DONE), window=200_000)
    run(agent, long)
    nudge = said_to(stage)[-1]
    assert nudge.startswith(NUDGE[0] + TASK)
    assert len(nudge) < 2 * NUDGE_CHARACTERS
    assert nudge.endswith(f"(the rest is in {task_of(agent).step})")
    assert agent.memory.page_text(task_of(agent).step) == long


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
    stage.says(DONE)
    assert run(agent, "Count the shoes.").reason == "done"
    assert resume(agent) == Stopped("done", "two hats")  # without a request


def test_a_task_in_an_open_conversation_answers_its_calls_first(stage: Stage) -> None:
    agent = open_agent(stage.says(call("look"), DONE))
    leave_at(agent.stream("what is in the box?"), Replied)
    assert run(agent).reason == "done"
    assert said_to(stage)[:2] == ["what is in the box?", TASK]


def test_what_task_done_refuses(stage: Stage) -> None:
    nobody = call("task_done", {"summary": "two", "step": "s99"})
    agent = open_agent(stage.says(nobody, Reply(DONE, call("task_done", {"summary": "three"}))))
    finished = [event for event in agent.tasks().start(TASK) if isinstance(event, ToolFinished)]
    assert [event.is_error for event in finished] == [True, False, True]
    assert "s99 is no user message" in finished[0].text
    assert task_of(agent).summary == "two hats"


@pytest.mark.parametrize("step", ["s1", "1", "none", ""])
def test_a_step_that_names_no_other_message_means_the_task(stage: Stage, step: str) -> None:
    agent = open_agent(stage.says(call("task_done", {"summary": "two", "step": step})))
    assert run(agent) == Stopped("done", "two")


@pytest.mark.parametrize("lines", [[*3 * [call("look")], "So far."], [call("look"), call("look"), "I shall."]])
def test_steps(stage: Stage, lines: list[Said]) -> None:
    agent = open_agent(stage.says(*lines), limits=RunLimits(max_steps=3))
    stopped = run(agent)
    assert (stopped.reason, task_of(agent).stopped, task_of(agent).steps) == ("steps", "steps", len(lines))
    assert "max_steps 3" in stopped.text
    assert resume(agent).reason == "steps"  # what was spent counts: no request
    agent.close()
    again = open_agent(stage.says(DONE), limits=RunLimits(max_steps=5))
    assert resume(again).reason == "done"
    assert task_of(again).steps == len(lines) + 1


def test_dollars(stage: Stage) -> None:
    agent = open_agent(stage.says(*2 * [call("look")]), limits=RunLimits(max_usd=0.003))
    assert (run(agent).reason, task_of(agent).steps) == ("usd", 2)
    assert 0.003 <= task_of(agent).usd == agent.meter.usd < 0.006
    agent.close()
    assert resume(open_agent(stage, limits=RunLimits(max_usd=0.003))).reason == "usd"


def test_minutes(stage: Stage) -> None:
    def wait() -> str:
        """Take a while."""
        clock.set(clock.now() + timedelta(minutes=6))
        return "waited"

    clock = HandClock()
    with open_agent(stage.says(*2 * [call("wait")]), wait, clock=clock, limits=RunLimits(max_minutes=10)) as agent:
        assert run(agent).reason == "minutes"
        assert task_of(agent).seconds >= 2 * 6 * 60
    clock.set(clock.now() + timedelta(days=1))  # the time between two runs is not spent
    for minutes, reason, lines in ((10, "minutes", []), (20, "done", [DONE])):
        with open_agent(stage.says(*lines), clock=clock, limits=RunLimits(max_minutes=minutes)) as agent:
            assert resume(agent).reason == reason


def test_after_an_outage_that_was_too_long(stage: Stage) -> None:
    agent = open_agent(stage.says(*3 * [http_error(529)], DONE), patience=Patience(2, wait=lambda _: None))
    with pytest.raises(ModelUnavailableError):
        run(agent)
    assert task_of(agent).state == "open"
    assert resume(agent).reason == "done"
    assert said_to(stage).count(TASK) == 1


def test_after_a_refusal_the_task_is_repeated(stage: Stage) -> None:
    agent = open_agent(stage.says(call("look"), Reply.refusal("I will n"), DONE))
    assert run(agent).reason == "refused"
    assert resume(agent).reason == "done"
    assert said_to(stage) == [NUDGE[0] + TASK]


def test_after_a_stop(stage: Stage) -> None:
    agent = open_agent(stage.says("I shall.", DONE))
    events = agent.tasks().start(TASK)
    until(events, Text)
    agent.stop()  # while it says its last word of this turn: it is not nudged to go on
    assert last(events).reason == task_of(agent).stopped == "cancelled"
    assert resume(agent).reason == "done"


def tell(agent: Agent, stage: Stage, text: str) -> None:
    """As another process does."""
    inbox.send_command(stage.directory, "message", {"text": text}, agent.clock)


def test_a_message_in_the_last_moment_is_still_answered(stage: Stage) -> None:
    agent = open_agent(stage.says(DONE, "And three shoes."))
    events = agent.tasks().start(TASK)
    until(events, ToolFinished)
    tell(agent, stage, "and the shoes?")
    assert last(events).reason == "done"
    assert said_to(stage)[-1] == "and the shoes?"


CAT = "in between, please feed the cat"


class House:
    """A model that feeds the cat when it is told to, perhaps marks that as done, and then reads until it is enough."""

    def __init__(self, *, marks: bool) -> None:
        self._marks = marks
        self.reads = 0
        self.fed = 0

    def reply(self, params: Json) -> Reply:
        last = params["messages"][-1]["content"]
        text = "".join(inner["text"] for block in last for inner in block.get("content", ()) if "text" in inner)
        if last[-1].get("text") == CAT:
            return Reply(call("feed"), call("search_recall", {"query": "feed the cat"}))
        if "fed the cat" in text and self._marks:
            page = next(line.split()[0] for line in text.splitlines() if CAT in line)
            return Reply(call("task_done", {"summary": "fed", "step": page}))
        self.reads += 1
        if self.reads < 40:
            return Reply(call("read"))
        return Reply(call("task_done", {"summary": "read"})) if self.reads == 40 else Reply("Read.")

    def feed(self) -> str:
        """Feed the cat."""
        self.fed += 1
        return "fed the cat\n"


def read() -> str:
    """Read."""
    return "and so we went on and on " * 40


@pytest.mark.slow
@pytest.mark.parametrize("marks", [True, False])
def test_what_is_marked_as_done_is_not_asked_for_after_an_eviction(stage: Stage, marks: bool) -> None:
    house = House(marks=marks)
    agent = open_agent(stage.follows(house.reply), house.feed, read, window=9_000)
    events = agent.tasks().start(TASK)
    until(events, Replied)
    tell(agent, stage, CAT)
    assert last(events).reason == "done"
    assert sum(move.event == "epoch" for move in agent.memory.ledger()) > 3
    assert house.fed == 1
    opening = stage.requests[-1]["messages"][0]["content"]
    repeated = [said["text"] for told, said in pairwise(opening) if told["text"].startswith("<request")]
    assert repeated == ([TASK] if marks else [TASK, CAT])


def test_a_task_that_was_asked_for_in_a_withdrawn_turn_is_dropped(stage: Stage) -> None:
    stage.says(call("look"))
    agent = open_agent(stage)
    leave_at(agent.tasks().start(TASK), ToolFinished)
    undone = agent.undo()
    assert (undone.text, undone.tools) == (TASK, ("look",))
    assert task_of(agent).state == "dropped"
    with pytest.raises(RejectedError, match="the task was dropped"):
        resume(agent)
    stage.says(DONE)
    assert run(agent, "Count the gloves.").reason == "done"
    assert TASK not in said_to(stage)


def test_a_turn_is_not_withdrawn_in_its_middle(stage: Stage) -> None:
    stage.says("Hello.")
    agent = open_agent(stage)
    events = agent.stream("hello")
    assert isinstance(until(events, Text)[-1], Text)
    with pytest.raises(RejectedError, match="in the middle of a turn"):
        agent.undo()
    events.close()
    assert agent.undo().text == "hello"
