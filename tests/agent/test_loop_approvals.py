"""Calls that a person has to approve: never run without leave, and never lost while they wait."""

from __future__ import annotations

from typing import Any

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
        return waiting.input["order"] == "one"

    stage.says(Reply(call("fetch", {"order": "one"}), call("fetch", {"order": "two"})), "I see.")
    stage.agent(Tool.of(hands.fetch, approve="always"), approve=approve).turn("go")
    assert asked == ["one", "two"]
    assert hands.done == ["one"]
    assert results(stage.last) == [("order one is on its way", False), (DENIED, True)]


@pytest.mark.parametrize("answer", [True, False])
def test_with_nobody_to_ask_it_waits_and_is_resumed(stage: Stage, hands: Hands, answer: bool) -> None:
    stage.says(
        Reply(call("archive", {"text": "before"}), call("fetch", {"order": "one"}), call("fetch", {"order": "2"}))
    )
    tool = Tool.of(hands.fetch, approve="always")
    agent = stage.agent(tool)
    events = list(agent.stream("go"))
    waiting = agent.memory.open_calls
    assert isinstance(events[-2], ApprovalNeeded)
    assert events[-1].reason == "approval"  # type: ignore[union-attr]
    assert hands.done == []
    assert [(each.input["order"], each.begun, each.waiting) for each in waiting] == [
        ("one", False, True), ("2", False, False),
    ]  # fmt: skip
    assert agent.resume().stopped.reason == "approval"  # still nobody
    agent.close()
    again = stage.says("Done.").agent(tool, approve=lambda _: answer)
    assert again.resume().text == "Done."
    assert hands.done == (["one", "2"] if answer else [])
    assert [text for text, _ in results(stage.last)][1] == ("order one is on its way" if answer else DENIED)
    assert [fact.text for fact in again.memory.inspect.newest_facts()] == ["before"]


def test_an_interruption_at_the_question_asks_again(stage: Stage, hands: Hands) -> None:
    answers: list[bool | KeyboardInterrupt] = [KeyboardInterrupt(), True]

    def approve(_: Any) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, KeyboardInterrupt):
            raise answer
        return answer

    stage.says(call("fetch", {"order": "one"}), "Done.")
    agent = stage.agent(Tool.of(hands.fetch, approve="always"), approve=approve)
    with pytest.raises(KeyboardInterrupt):
        agent.turn("go")
    assert agent.resume().text == "Done."
    assert hands.done == ["one"]


def test_something_new_said_while_a_call_waits(stage: Stage, hands: Hands) -> None:
    stage.says(Reply(call("fetch", {"order": "one"}), call("archive", {"text": "noted"})))
    agent = stage.agent(Tool.of(hands.fetch, approve="always"))
    agent.turn("go")
    assert stage.says("As you like.").agent
    assert agent.turn("never mind").text == "As you like."
    *_, answered, said = stage.requests[-1]["messages"]
    assert results(answered["content"]) == [(UNAPPROVED, True), (PASSED_OVER, True)]
    assert said["content"][0]["text"] == "never mind"
    assert (hands.done, agent.memory.inspect.newest_facts()) == ([], [])
