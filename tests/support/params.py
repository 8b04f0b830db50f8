"""Requests to the stand-in, piece by piece."""

from __future__ import annotations

from typing import Any

import pytest

from tests.standin import Rejected, Reply, Standin, thinking

Params = dict[str, Any]
TOOL: Params = {
    "name": "look",
    "description": "Looks.",
    "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
SEARCH: Params = {"type": "web_search_20250305", "name": "web_search"}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def text(content: str = "x", **fields: Any) -> Params:
    return {"type": "text", "text": content, **fields}


def user(*blocks: Any) -> Params:
    return {"role": "user", "content": [text(each) if isinstance(each, str) else each for each in blocks]}


def assistant(*blocks: Any) -> Params:
    return {**user(*blocks), "role": "assistant"}


def use(call_id: str = "toolu_1", **fields: Any) -> Params:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {"at": "sky"}, **fields}


def result(call_id: str = "toolu_1", content: Any = "blue", **fields: Any) -> Params:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def request(*messages: Any, **fields: Any) -> Params:
    return {"model": "m", "max_tokens": 1_000, "messages": list(messages), "tools": [TOOL, SEARCH], **fields}


def standin(**options: Any) -> Standin:
    return Standin(**{"limit_tokens": 100_000, "cache_min_tokens": 0, **options})


def said(message: Params) -> Params:
    return {"role": "assistant", "content": message["content"]}


def refused(params: Params, *parts: str, **options: Any) -> None:
    api = standin(**options)
    with pytest.raises(Rejected) as error:
        api.create(params)
    assert (error.value.status, error.value.type) == (400, "invalid_request_error")
    for part in parts:
        assert part in error.value.message
    assert api.requests == []


def thought(api: Standin, turns: int = 3, **fields: Any) -> list[Params]:
    conversation = [user("x")]
    for turn in range(turns):
        message = api.create(request(*conversation, **fields), Reply(thinking(f"hm {turn}"), f"y {turn}"))
        conversation += [said(message), user(f"z {turn}")]
    return conversation
