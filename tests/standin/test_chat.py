"""The stand-in for Chat Completions: what it refuses, and how it answers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from tests.standin import Rejected, Reply, call, thinking
from tests.standin.chat import ChatStandin
from tests.support.messages import image

Json = dict[str, Any]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + image(9)["source"]["data"]}}
USE = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
VALID: Json = {
    "model": "m", "max_tokens": 100, "stream": True, "stream_options": {"include_usage": True}, "tools": [TOOL],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "what is it?"}, PICTURE]},
        {"role": "assistant", "content": None, "tool_calls": [USE, {**USE, "id": "b"}]},
        {"role": "tool", "tool_call_id": "b", "content": "a hat"},
        {"role": "tool", "tool_call_id": "a", "content": "two hats"},
    ],
}  # fmt: skip


def changed(change: Callable[[Json], object]) -> Json:
    body = copy.deepcopy(VALID)
    change(body)
    return body


def message(at: int, **fields: Any) -> Callable[[Json], object]:
    return lambda body: body["messages"][at].update(fields)


def function(**fields: Any) -> Callable[[Json], object]:
    return lambda body: body["tools"][0]["function"].update(fields)


def used(**fields: Any) -> Callable[[Json], object]:
    return lambda body: body["messages"][2]["tool_calls"][0]["function"].update(fields)


REFUSED: list[tuple[Callable[[Json], object], str]] = [
    # fields of the request
    (lambda body: body.pop("model"), "model: Field required"),
    (lambda body: body.update(max_completion_tokens=5), "at the same time"),
    (lambda body: body.update(max_tokens=0), "max_tokens"),
    (lambda body: body.update(system="x"), "system: Extra inputs"),
    (lambda body: body.update(stream=False), "only allowed when 'stream'"),
    (lambda body: body.update(tool_choice="maybe"), "tool_choice"),
    (lambda body: (body.pop("tools"), body.update(tool_choice="none")), "only allowed when 'tools'"),
    (message(0, content="\ud800"), "not valid UTF-8"),
    # roles and their order
    (lambda body: body.update(messages=[]), "empty array"),
    (message(1, role="human"), "Invalid value: 'human'"),
    (lambda body: body["messages"].insert(1, body["messages"][0]), "must be at the beginning"),
    (lambda body: body["messages"].insert(1, body["messages"][1]), "roles must alternate"),
    (lambda body: body["messages"].pop(1), "roles must alternate"),
    (lambda body: body["messages"].append({"role": "assistant", "content": "x"}), "Cannot continue a message"),
    # calls and their results
    (lambda body: body["messages"].pop(2), "must be a response to a preceeding message"),
    (lambda body: body["messages"].pop(), "did not have response messages: a"),
    (lambda body: body["messages"].insert(3, {"role": "user", "content": "x"}), "did not have response messages: a, b"),
    (message(4, tool_call_id="c"), "must be a response to a preceeding message"),
    (message(4, tool_call_id="b"), "must be a response to a preceeding message"),
    (message(2, tool_calls=[USE, USE]), "ids must be unique"),
    (message(2, tool_calls=[{**USE, "id": "a" * 41}]), "at most 40"),
    (message(2, tool_calls=[{**USE, "id": ""}]), "at least 1"),
    (message(2, tool_calls=[]), "empty array"),
    (used(arguments={"at": 1}), "arguments"),
    (used(arguments="{"), "not a JSON object"),
    (used(arguments="[]"), "not a JSON object"),
    (used(name="look at"), "does not match"),
    # what is empty or not understood
    (message(1, content=""), "non-empty"),
    (message(1, content=[]), "non-empty"),
    (message(1, content=[{"type": "text", "text": " "}]), "non-empty"),
    (message(1, content=None), "content"),
    (message(4, content="\n"), "non-empty"),
    (message(4, content=[PICTURE]), "content"),
    (lambda body: body["messages"][2].pop("tool_calls"), "expected a string, got null"),
    (message(2, thinking="hm"), "thinking: Extra inputs"),
    (message(1, cache_control={}), "cache_control: Extra inputs"),
    (message(1, content=[{**PICTURE, "image_url": {"url": "data:image/tiff;base64,eA=="}}]), "data URL"),
    (message(1, content=[{**PICTURE, "image_url": {"url": "data:image/png;base64,x"}}]), "data URL"),
    # tools
    (lambda body: body.update(tools=[]), "empty array"),
    (lambda body: body.update(tools=[TOOL, TOOL]), "one name"),
    (lambda body: body["tools"].append({"type": "web_search", "name": "x"}), "tools[1]"),
    (function(name="a b"), "does not match"),
    (function(parameters={"type": "object"}), "missing properties"),
    (function(parameters={"type": "string"}), "must be a JSON Schema of 'type"),
    (function(parameters={"type": "object", "properties": {"x": {"type": "array"}}}), "missing items"),
    (function(parameters={"type": "object", "properties": {"x": {"type": "list"}}}), "Invalid schema"),
    # size
    (message(1, content="word " * 9_000), "Please reduce the length of the messages"),
    (lambda body: body.update(max_tokens=7_990), "7990 in the completion"),
]


@pytest.mark.parametrize(("change", "text"), REFUSED, ids=map(str, range(len(REFUSED))))
def test_what_is_wrong_is_refused(change: Callable[[Json], object], text: str) -> None:
    api = ChatStandin(limit_tokens=8_000)
    with pytest.raises(Rejected) as error:
        api.create(changed(change))
    assert text in error.value.message
    assert (error.value.status, api.requests) == (400, [])


def test_it_answers_in_chunks_that_the_sdk_knows_and_counts_what_its_cache_has() -> None:
    api = ChatStandin(limit_tokens=8_000, seed=3)
    reply = Reply(thinking("hm"), "Two hats, and that is all there is.", call("look", {"at": "hat"}))
    chunks = api.create(VALID, reply)
    assert [ChatCompletionChunk.model_validate(chunk).choices[:1] for chunk in chunks][-1] == []
    again = changed(lambda body: body["messages"].extend([{"role": "assistant", "content": "x"}, VALID["messages"][1]]))
    first, second = chunks[-1]["usage"], api.create(again)[-1]["usage"]
    assert first["prompt_tokens"] == second["prompt_tokens_details"]["cached_tokens"]
    assert first["prompt_tokens"] == api.count(VALID) != ChatStandin(limit_tokens=8_000, seed=4).count(VALID)
    assert api.create({**VALID, "max_tokens": 1})[-2]["choices"][0]["finish_reason"] == "length"
    assert "usage" not in api.create(changed(lambda body: body.pop("stream_options")))[-1]
