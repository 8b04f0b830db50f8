"""Requests to the stand-in, piece by piece."""

from __future__ import annotations

from typing import Any

Params = dict[str, Any]
TOOL: Params = {
    "name": "look",
    "description": "Looks.",
    "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
SEARCH: Params = {"type": "web_search_20250305", "name": "web_search"}
MARK = {"type": "ephemeral"}


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


def said(message: Params) -> Params:
    return {"role": "assistant", "content": message["content"]}
