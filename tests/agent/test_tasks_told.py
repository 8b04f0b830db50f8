"""What a long task is told in between, and what stays in its view when its steps have left."""

from __future__ import annotations

from itertools import pairwise

import pytest

from agents.agent import Agent
from agents.events import Replied, Text
from agents.meter import RunLimits
from pager.types import Json
from pager.upkeep import inbox
from tests.standin import Reply, call
from tests.support.hats import DONE, TASK, open_agent, resume, run
from tests.support.stage import Stage, last, said_to, until


def tell(agent: Agent, stage: Stage, text: str) -> None:
    """As another process does."""
    inbox.send_command(stage.directory, "message", {"text": text}, agent.clock)


def test_a_message_reaches_it_at_the_next_step(stage: Stage) -> None:
    def write() -> str:
        """While this runs, a person writes."""
        tell(agent, stage, "only the red ones")
        return "looked"

    agent = open_agent(stage.says(Reply(call("write"), call("look")), DONE, "One."), write)
    assert run(agent).reason == "done"
    *_, answers, message = stage.requests[1]["messages"]
    assert [block["type"] for block in answers["content"]] == ["tool_result", "tool_result"]
    assert message["content"][0]["text"] == "only the red ones"


def test_messages_wait_for_the_next_run(stage: Stage) -> None:
    with open_agent(stage.says(call("look")), limits=RunLimits(max_steps=1)) as agent:
        run(agent)
    tell(agent, stage, "only the red ones")
    assert resume(open_agent(stage.says(DONE, "One."))).reason == "done"
    assert "only the red ones" in said_to(stage)


def test_a_message_in_the_last_moment_is_still_answered(stage: Stage) -> None:
    agent = open_agent(stage.says(DONE, "There are two. " * 20, "And three shoes."))
    events = agent.tasks().start(TASK)
    until(events, Replied)
    until(events, Text)
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


@pytest.mark.slow
def test_the_task_is_in_view_after_a_nudge_and_evictions(stage: Stage) -> None:
    replies = iter(["I shall.", *40 * [call("read")], DONE, "Two."])
    agent = open_agent(stage.follows(lambda _: Reply(next(replies))), read, window=9_000)
    assert run(agent).reason == "done"
    assert sum(move.event == "epoch" for move in agent.memory.ledger()) > 3
    assert all(TASK in str(request["messages"]) for request in stage.requests)
