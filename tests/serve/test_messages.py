"""The unmodified SDK, pointed at an agent: over HTTP, with the strict stand-in as the agent's provider."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from agents.testing import http_error, truncate
from tests.standin import Reply, call, thinking
from tests.support.front import WEATHER, Chat, Front, front_in, said_in, text_of

HELLO: Any = {"model": "any", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    with front_in(tmp_path) as opened:
        yield opened


def test_a_message_is_answered_with_what_the_provider_said(front: Front) -> None:
    front.provider.script("Good morning.")
    answer = front.client.messages.create(**HELLO)
    assert (text_of(answer), answer.stop_reason, answer.role) == ("Good morning.", "end_turn", "assistant")
    usage = front.provider.api.replies[0]["usage"]
    assert answer.usage.output_tokens == usage["output_tokens"]
    assert answer.usage.input_tokens == usage["input_tokens"]
    assert answer.usage.cache_creation_input_tokens == usage["cache_creation_input_tokens"]
    assert answer.model == "m"


def test_its_turns_and_tokens_are_counted_once(front: Front) -> None:
    for _ in range(2):
        front.post(HELLO, **{"idempotency-key": "k"})
    figures = front.server.metrics.text().decode()
    output = front.provider.api.replies[0]["usage"]["output_tokens"]
    assert 'selfpager_turns_total{stopped="answered"} 1.0' in figures
    assert f'selfpager_tokens_total{{kind="output_tokens"}} {output:.1f}' in figures


def test_a_stream_has_the_same_answer(front: Front) -> None:
    front.provider.script(Reply("Good ", "morning."))
    with front.client.messages.stream(**HELLO) as stream:
        kinds = [event.type for event in stream]
        answer = stream.get_final_message()
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert text_of(answer) == "Good morning."
    assert answer.stop_reason == "end_turn"
    assert answer.usage.output_tokens == front.provider.api.replies[0]["usage"]["output_tokens"]


def test_the_async_client_streams_resends_and_asks_side_by_side(front: Front) -> None:
    front.provider.script(Reply("Good ", "morning."))
    history: list[Any] = [{"role": "user", "content": "hello"}]

    async def talk() -> list[str]:
        url = f"{front.http.url}/a/clerk"
        async with anthropic.AsyncAnthropic(base_url=url, api_key=front.key, max_retries=0) as client:
            async with client.messages.stream(**HELLO) as stream:
                assert "".join([piece async for piece in stream.text_stream]) == "Good morning."
                answer = await stream.get_final_message()
            history.extend([{"role": "assistant", "content": answer.content}, {"role": "user", "content": "and?"}])
            again = await client.messages.with_raw_response.create(**{**HELLO, "messages": history})
            others = [{**HELLO, "messages": [{"role": "user", "content": f"question {each}"}]} for each in range(4)]
            answers = await asyncio.gather(*[client.messages.create(**each) for each in others])
            return [again.headers["selfpager-history"], *map(text_of, answers)]

    assert asyncio.run(talk()) == ["continued; told=1", *["ok"] * 4]


@pytest.mark.parametrize("way", ["api_key", "auth_token"])
def test_both_headers_of_a_key_are_taken(front: Front, way: str) -> None:
    client = front.client_of(**{"api_key": None, way: front.key})
    assert text_of(client.messages.create(**HELLO)) == "ok"
    with pytest.raises(anthropic.AuthenticationError, match="key"):
        front.client_of(**{"api_key": None, way: "sp_wrong"}).messages.create(**HELLO)


def test_errors_are_those_of_the_sdk(front: Front) -> None:
    with pytest.raises(anthropic.BadRequestError, match="at least one message") as refused:
        front.client.messages.create(model="any", max_tokens=10, messages=[])
    assert refused.value.body["error"]["type"] == "invalid_request_error"  # type: ignore[index]
    assert refused.value.request_id
    other = front.client_of()
    other.base_url = f"{front.http.url}/a/nobody"
    with pytest.raises(anthropic.NotFoundError, match="no agent"):
        other.messages.create(**HELLO)
    assert not front.requests


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"temperature": 0.5}, "temperature: the Messages API of this agent's model has no such parameter"),
        ({"container": "c"}, "container: this endpoint does not know it"),
        ({"thread": {"type": "create"}}, "thread: histories are not kept by an id here"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"messages": "hello"}, "messages is 'hello'"),
        ({"messages": [{"role": "system", "content": "x"}]}, "top-level system"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 'must use the "user" role'),
        ({"messages": [*HELLO["messages"], {"role": "assistant", "content": "So"}]}, "must end with a user message"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": 1}]}]}, "block 0 of the message"),
        ({"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]}, "cannot stand"),
        ({"tools": [{"name": "archive", "input_schema": {}}]}, "has a tool 'archive' of its own"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "belongs into the agent's YAML"),
        ({"tool_choice": {"type": "any"}}, "may only be specified while providing tools"),
        ({"tool_choice": {"type": "tool", "name": "archive"}, "tools": [WEATHER]}, "there is no tool 'archive'"),
        ({"thinking": {"type": "enabled", "budget_tokens": 10}}, "budget_tokens has to be 1024 or more"),
        ({"thinking": {"type": "enabled", "budget_tokens": 9000}, "max_tokens": 9999}, "at most 5000 tokens"),
        ({"system": [{"type": "image"}]}, "system has to be a string"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}]}, "unexpected"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_and_changes_nothing(front: Front, change: Any, says: str) -> None:
    refused = front.post({**HELLO, **change})
    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "invalid_request_error"
    assert says in refused.json()["error"]["message"]
    assert not front.requests
    front.close()
    with front.memory() as memory:
        assert not memory.inspect.steps(0, 1).rows


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400"])
def test_numbers_that_no_provider_takes_are_no_json(front: Front, number: str) -> None:
    body = (
        '{"model": "m", "max_tokens": 9, "metadata": {"user_id": %s}, "messages": [{"role": "user", "content": "a"}]}'
    )
    url = f"{front.http.url}/a/clerk/v1/messages"
    refused = httpx2.post(url, content=body % number, headers={"x-api-key": front.key})
    assert (refused.status_code, front.requests) == (400, [])
    assert "not valid JSON" in refused.json()["error"]["message"]


def test_parameters_go_to_the_provider(front: Front) -> None:
    front.provider.script(Reply("One, two", stop_reason="stop_sequence", stop_sequence="three"))
    answer = front.client.messages.create(
        **HELLO, stop_sequences=["three", "four"], metadata={"user_id": "u1"}, system="Speak like a pirate.",
        tools=[WEATHER], tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        thinking={"type": "disabled"}, service_tier="standard_only",
    )  # fmt: skip
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "three")
    [sent] = front.requests
    assert sent["max_tokens"] == 100
    assert sent["stop_sequences"] == ["three", "four"]
    assert sent["metadata"] == {"user_id": "u1"}
    assert sent["thinking"] == {"type": "disabled"}
    assert sent["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert sent["service_tier"] == "standard_only"
    assert sent["system"][0]["text"].startswith("You are a clerk.")
    assert sent["system"][0]["text"].endswith("Speak like a pirate.")
    assert sent["tools"][-1]["name"] == "get_weather"


def test_the_replys_limit_is_the_smaller_one_and_the_header_says_so(front: Front) -> None:
    answer = front.post({**HELLO, "max_tokens": 50_000})
    assert int(answer.headers["selfpager-max-tokens"]) == front.requests[0]["max_tokens"] < 50_000
    front.provider.script("word " * 100)
    cut = Chat(front, max_tokens=20).say("tell me more")
    assert cut.stop_reason == "max_tokens"


def test_thinking_is_shown_to_who_asks_for_it(front: Front) -> None:
    script = Reply(thinking("a greeting"), "Hello.")
    front.provider.script(script, script, script)
    chat = Chat(front, thinking={"type": "adaptive"})
    answer = chat.say("hi")
    assert [block.type for block in answer.content] == ["thinking", "text"]
    with front.client.messages.stream(**{**HELLO, "thinking": {"type": "adaptive"}}) as stream:
        assert [block.type for block in stream.get_final_message().content] == ["thinking", "text"]
    assert [block.type for block in front.client.messages.create(**HELLO).content] == ["text"]
    chat.say("and again")
    assert chat.history == "branched; after=s2; told=1"


def test_an_overloaded_provider_is_waited_for_or_told_of(tmp_path: Path) -> None:
    with front_in(tmp_path) as front:
        front.provider.script(http_error(529), "There.")
        assert text_of(front.client.messages.create(**HELLO)) == "There."
        front.provider.script(http_error(400, "no such model"))
        with pytest.raises(anthropic.InternalServerError, match="no such model") as refused:
            front.client_of(max_retries=2).messages.create(**HELLO)
        assert refused.value.status_code == 502
        # It is not asked again by itself; the turn is open, and the same request goes on with it.
        front.provider.script("Here.")
        assert text_of(front.client.messages.create(**HELLO)) == "Here."
        assert said_in(front.requests[-1]) == ["hello"]


def test_images_are_taken_as_the_agent_takes_them(front: Front) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}}
    Chat(front).say([{"type": "text", "text": "what is this?"}, image])
    assert [block["type"] for block in front.requests[0]["messages"][-1]["content"]][-2:] == ["text", "image"]


def test_what_would_be_sent_is_counted_and_nothing_changes(front: Front) -> None:
    chat = Chat(front)
    chat.say("hello")
    messages = [*chat.messages, {"role": "user", "content": "how long is this? " * 20}]
    counted = front.client.messages.count_tokens(model="any", messages=messages, tools=[WEATHER], system="Be kind.")
    chat.options |= {"tools": [WEATHER], "system": "Be kind."}
    answer = chat.say(messages[-1]["content"])
    usage = answer.usage
    whole = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    assert counted.input_tokens == whole
    assert chat.history == "continued; told=1"


def test_an_agents_own_tools_stay_hidden(front: Front) -> None:
    front.provider.script(Reply("I keep that.", call("archive", {"text": "likes windows"})), "It is kept.")
    chat = Chat(front)
    answer = chat.say("I like windows.")
    assert [block.type for block in answer.content] == ["text", "text"]
    assert text_of(answer) == "I keep that.|It is kept."
    assert answer.stop_reason == "end_turn"
    outputs = [reply["usage"]["output_tokens"] for reply in front.provider.api.replies]
    assert answer.usage.output_tokens == sum(outputs)
    chat.say("And what else?")
    assert chat.history == "continued; told=1"
    assert "tool_use" in str(front.requests[-1]["messages"])


def test_a_stream_that_broke_off_ends_with_an_error_and_the_same_request_gives_its_answer(front: Front) -> None:
    front.provider.script(truncate("The beginning of an answer, " * 5, after=0.7), "The whole answer.")
    with pytest.raises(anthropic.APIStatusError, match="broke off"), front.client.messages.stream(**HELLO) as stream:
        for _ in stream:
            pass
    assert text_of(front.client.messages.create(**HELLO)) == "The whole answer."
    assert len(front.requests) == 2
    assert said_in(front.requests[-1]) == ["hello"]
