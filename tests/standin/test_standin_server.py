"""The strict stand-in over HTTP: what it was in process, it is on the wire, faults included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.standin import Reply, Standin, call, thinking
from tests.standin.server import StandinServer
from tests.support.params import Params, request, result, said, user


@pytest.fixture
def server() -> Iterator[StandinServer]:
    with StandinServer(Standin(limit_tokens=8_000), windows={"small": 3_000}) as server:
        yield server


@pytest.fixture
def client(server: StandinServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.base_url, api_key="none", max_retries=0) as client:
        yield client


def streamed(client: anthropic.Anthropic, *messages: Params) -> Params:
    params: Any = request(*(messages or (user("Hello"),)))
    with client.messages.stream(**params) as stream:
        return stream.get_final_message().to_dict()


def test_it_answers_as_scripted_and_signs_its_thinking(server: StandinServer, client: anthropic.Anthropic) -> None:
    server.script(Reply(thinking("which way?"), "Let me look.", call("look", {"at": "sea"})), "Fine.")
    first = streamed(client)
    assert [block["type"] for block in first["content"]] == ["thinking", "text", "tool_use"]
    behind = [said(first), user(result(first["content"][2]["id"]))]
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        streamed(client, user("Another beginning"), *behind)
    assert streamed(client, user("Hello"), *behind)["content"][0]["text"] == "Fine.", "a refusal uses up no line"
    assert (len(server.rejected), server.asked, len(server.api.requests)) == (1, 3, 2)


def test_counting_and_windows_are_the_models_own(client: anthropic.Anthropic) -> None:
    words: Any = {"messages": [{"role": "user", "content": "and so on " * 1_200}]}
    counted = client.messages.count_tokens(model="m", **words).input_tokens
    assert client.models.retrieve("small").max_input_tokens == 3_000
    assert client.models.retrieve("other").max_input_tokens == 8_000
    assert client.messages.create(model="m", max_tokens=50, **words).usage.input_tokens == counted
    with pytest.raises(anthropic.BadRequestError, match=f"prompt is too long: {counted} tokens > 3000 maximum"):
        client.messages.create(model="small", max_tokens=50, **words)


@pytest.mark.parametrize(
    ("kind", "reason", "types"),
    [
        ("refusal", "refusal", []),
        ("empty", "end_turn", []),
        ("blank", "end_turn", ["text"]),
        ("only_thinking", "end_turn", ["thinking"]),
        ("pause_turn", "pause_turn", ["server_tool_use"]),
        ("max_tokens", "max_tokens", ["tool_use"]),
    ],
)
def test_odd_replies_end_for_their_reason(
    server: StandinServer, client: anthropic.Anthropic, kind: str, reason: str, types: list[str]
) -> None:
    server.replies = lambda _: Reply(call("look", {"at": "the window seats"}))
    server.faults.chances = {kind: 1}
    message = streamed(client)
    assert (message["stop_reason"], [block["type"] for block in message["content"]]) == (reason, types)
    if kind == "max_tokens":
        assert message["content"][0]["input"] == {"at": "the wind"}
