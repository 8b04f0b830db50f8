"""Faults from a server that others wrote, and its verdict on how the client behaves (llmock).

It checks no request. It has no count_tokens either, so here sizes are known from estimates and responses alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock
from llmock.testing import LLMockServer

from agents.agent import Agent
from agents.events import Replied, StreamLost, Text
from agents.loop import MALFORMED, Patience
from agents.models.anthropic import AnthropicModel
from tests.support.stage import build

ANSWER = "There are two hats in the box, a red one and a blue one, and both of them are yours."

BREAKS = [(kind, after) for kind in ("disconnect", "truncate", "corrupt") for after in (0, 1, 4, 9)]


@pytest.fixture(scope="module")
def server() -> Iterator[LLMockServer]:
    with LLMockServer() as server:
        yield server


@pytest.fixture
def mock(server: LLMockServer) -> LLMock:
    return LLMock(server).reset().tool_mode("off")


class Work:
    def __init__(self) -> None:
        self.ticked: list[str] = []

    def tick(self, mark: str) -> str:
        """Tick a mark off."""
        self.ticked.append(mark)
        return f"ticked {mark}"


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def agent(mock: LLMock, tmp_path: Path, work: Work) -> Iterator[Agent]:
    model = AnthropicModel("m", base_url=mock.base_url("anthropic"), read_seconds=2)
    patience = Patience(2.0, first_pause_seconds=0.05)
    with build(tmp_path, model, work.tick, patience=patience, window=8_000, count_tokens=None) as agent:
        yield agent
    model.close()


def messages(mock: LLMock) -> list[Any]:
    body = mock.last_request.body
    assert isinstance(body, dict)
    return body["messages"]


def said_by(agent: Agent) -> list[str]:
    """The first text of each step."""
    return [agent.memory.history.blocks_of(stay.page_id)[0]["text"] for stay in agent.memory.history.resident()]


def test_quotas_are_waited_for(mock: LLMock, agent: Agent) -> None:
    mock.rate_limit(times=2, retry_after=0.1).reply(ANSWER)
    assert agent.turn("what is in the box?").text == ANSWER
    assert [each.status for each in mock.requests] == [429, 429, 200]
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize(("kind", "after"), BREAKS)
def test_half_an_answer_is_none(mock: LLMock, agent: Agent, kind: str, after: int) -> None:
    getattr(mock.reply(ANSWER, times=None), kind)(after_chunks=after)
    events = list(agent.stream("what is in the box?"))
    lost = [index for index, event in enumerate(events) if isinstance(event, StreamLost)]
    assert len(lost) == 1
    assert "".join(event.text for event in events[lost[0] :] if isinstance(event, Text)) == ANSWER
    assert sum(isinstance(event, Replied) for event in events) == 1
    assert said_by(agent) == ["what is in the box?", ANSWER]


def test_a_stream_that_stalls_is_left_behind(mock: LLMock, agent: Agent) -> None:
    mock.reply(ANSWER, times=None).stall(after_chunks=3, seconds=60)
    assert agent.turn("what is in the box?").text == ANSWER
    assert len(mock.requests) == 2


@pytest.mark.parametrize("after", [1, 4, 8])
def test_a_call_whose_stream_broke_is_run_once(mock: LLMock, agent: Agent, work: Work, after: int) -> None:
    for _ in range(2):
        mock.call_tool("tick", {"mark": "a mark that is long enough to be cut"}, text="So be it.")
    mock.disconnect(after_chunks=after).reply("Ticked.")
    assert agent.turn("tick it").text == "Ticked."
    assert work.ticked == ["a mark that is long enough to be cut"]


def test_broken_calls_are_answered(mock: LLMock, agent: Agent, work: Work) -> None:
    for kind in ("malformed_arguments", "unknown_tool"):
        mock.call_tool("tick", {"mark": "one"}).break_tool_call(kind)
    mock.reply("I give up.")
    assert agent.turn("tick it").text == "I give up."
    assert work.ticked == []
    malformed, unknown = [
        block["content"][0]["text"]
        for message in messages(mock)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert malformed == MALFORMED
    assert "There is no tool" in unknown


def test_a_prompt_that_is_too_long_is_made_shorter(mock: LLMock, agent: Agent) -> None:
    mock.limits(context_window=3_500)  # of which the agent does not know
    for number in range(25):
        turn = agent.turn(f"turn {number}: " + "and so we went on and on " * 20)
        assert turn.stopped.reason == "answered"
        assert f"turn {number}: " in str(messages(mock)[-1])
    refused = [each for each in mock.requests if each.status == 400]
    assert 1 <= len(refused) < 6
