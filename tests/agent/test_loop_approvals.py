"""Calls that a person has to approve: never run without leave, and never lost while they wait."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from agents.events import ApprovalNeeded
from agents.loop import DENIED, PASSED_OVER, UNAPPROVED
from agents.tools.functions import Tool
from tests.standin import Reply, call
from tests.support.hands import Hands
from tests.support.stage import Stage, results


def test_approved_and_denied(stage: Stage, hands: Hands) -> None:
    asked: list[str] = []

    def approve(waiting: Any) -> bool:
        asked.append(waiting.input["order"])
        return asked == ["one"]

    stage.says(Reply(call("fetch", {"order": "one"}), call("fetch", {"order": "two"})), "I see.")
    stage.agent(Tool.of(hands.fetch, approve="always"), approve=approve).turn("go")
    assert (asked, hands.done) == (["one", "two"], ["one"])
    assert results(stage.last) == [("order one is on its way", False), (DENIED, True)]


@pytest.mark.parametrize("answer", [True, False])
def test_with_nobody_to_ask_it_waits_and_is_resumed(stage: Stage, hands: Hands, answer: bool) -> None:
    orders = [call("fetch", {"order": order}) for order in ("one", "2")]
    tool = Tool.of(hands.fetch, approve="always")
    agent = stage.says(Reply(call("archive", {"text": "before"}), *orders)).agent(tool)
    *_, needed, stopped = agent.stream("go")
    assert (type(needed), getattr(stopped, "reason", None)) == (ApprovalNeeded, "approval")
    waiting = [(each.input["order"], each.begun, each.waiting) for each in agent.memory.open_calls]
    assert waiting == [("one", False, True), ("2", False, False)]
    assert agent.resume().stopped.reason == "approval"  # still nobody
    agent.close()
    again = stage.says("Done.").agent(tool, approve=lambda _: answer)
    assert again.resume().text == "Done."
    assert hands.done == (["one", "2"] if answer else [])
    assert results(stage.last)[1] == (("order one is on its way", False) if answer else (DENIED, True))
    assert [fact.text for fact in again.memory.inspect.newest_facts()] == ["before"]


def test_an_interruption_at_the_question_asks_again(stage: Stage, hands: Hands) -> None:
    approve = Mock(side_effect=[KeyboardInterrupt, True])
    stage.says(call("fetch", {"order": "one"}), "Done.")
    agent = stage.agent(Tool.of(hands.fetch, approve="always"), approve=approve)
    with pytest.raises(KeyboardInterrupt):
        agent.turn("go")
    assert agent.resume().text == "Done."
    assert hands.done == ["one"]


def test_something_new_said_while_a_call_waits(stage: Stage, hands: Hands) -> None:
    stage.says(Reply(call("fetch", {"order": "one"}), call("archive", {"text": "noted"})), "As you like.")
    agent = stage.agent(Tool.of(hands.fetch, approve="always"))
    agent.turn("go")
    assert agent.turn("never mind").text == "As you like."
    *_, answered, said = stage.requests[-1]["messages"]
    assert results(answered["content"]) == [(UNAPPROVED, True), (PASSED_OVER, True)]
    assert said["content"][0]["text"] == "never mind"
    assert (hands.done, agent.memory.inspect.newest_facts()) == ([], [])
