"""Faults from a server that others wrote (llmock), on the wire of the Messages API and on that of Chat Completions.

It checks no request. It has no count_tokens either, so here sizes are known from estimates and responses alone.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from llmock.pytest_plugin import LLMock
from llmock.testing import LLMockServer

from agents.agent import Agent
from agents.events import Replied, StreamLost, Text
from agents.models.anthropic import AnthropicModel
from agents.models.openai import OpenAIModel
from agents.models.patience import Patience
from tests.support.hands import Hands
from tests.support.stage import build

ANSWER = "There are two hats in the box, a red one and a blue one, and both of them are yours."


@pytest.mark.parametrize("kind", ["disconnect", "truncate", "corrupt"])
@pytest.mark.parametrize("after", [0, 1, 4, 9])
def test_half_an_answer_is_none(mock: LLMock, agent: Agent, kind: str, after: int) -> None:
    getattr(mock.reply(ANSWER, times=None), kind)(after_chunks=after)
    events = list(agent.stream("what is in the box?"))
    [lost] = [index for index, event in enumerate(events) if isinstance(event, StreamLost)]
    assert "".join(event.text for event in events[lost:] if isinstance(event, Text)) == ANSWER
    assert sum(isinstance(event, Replied) for event in events) == 1
    assert [agent.memory.page_text(stay.page_id) for stay in agent.memory.history.resident()] == [
        "what is in the box?", ANSWER
    ]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[LLMockServer]:
    with LLMockServer() as server:
        yield server


@pytest.fixture
def mock(server: LLMockServer) -> LLMock:
    return LLMock(server).reset().tool_mode("off")


@pytest.fixture(params=["anthropic", "openai"])
def agent(request: pytest.FixtureRequest, mock: LLMock, tmp_path: Path, hands: Hands) -> Iterator[Agent]:
    kind = AnthropicModel if request.param == "anthropic" else OpenAIModel
    model = kind("m", base_url=mock.base_url(request.param), read_seconds=2)
    patience = Patience(2.0, first_pause_seconds=0.05)
    with build(tmp_path, model, hands.fetch, patience=patience, window=8_000) as agent:
        yield agent
    model.close()


@pytest.mark.parametrize("after", [1, 4, 8])
def test_a_call_whose_stream_broke_is_run_once(mock: LLMock, agent: Agent, hands: Hands, after: int) -> None:
    for _ in range(2):
        mock.call_tool("fetch", {"order": "an order that is long enough to be cut"}, text="So be it.")
    mock.disconnect(after_chunks=after).reply("Fetched.")
    assert agent.turn("fetch it").text == "Fetched."
    assert hands.done == ["an order that is long enough to be cut"]
