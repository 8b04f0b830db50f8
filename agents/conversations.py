"""Conversations in the message formats of OpenAI and Anthropic, as turns that `Memory.record_many` takes. Pure.

A conversation is a list of messages, or an object with `messages` (a request's body, a line of a training file). What a
tool was asked and answered is kept as text; thinking is not, and of what is no text the kind is told: `(image)`.

    >>> list(turns([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": [{"type": "text",
    ...     "text": "Hi."}]}]))
    [{'role': 'user', 'text': 'Hello'}, {'role': 'assistant', 'text': 'Hi.'}]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from pager.errors import Refused

MOMENTS = ("at", "created_at", "timestamp", "create_time")
TEXTS = frozenset({"text", "input_text", "output_text"})
UNSAID = frozenset({"thinking", "redacted_thinking", "reasoning"})
Turn = dict[str, Any]


def are_messages(value: Any) -> bool:
    """Whether this is a conversation: messages, or an object that holds them."""
    if isinstance(value, Mapping):
        return isinstance(cast("Mapping[str, Any]", value).get("messages"), list)
    return isinstance(value, list) and all(is_message(each) for each in cast("list[Any]", value))


def is_message(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    message = cast("Mapping[str, Any]", value)
    return "role" in message and "text" not in message and bool({"content", "tool_calls"} & message.keys())


def turns(conversation: Any) -> Iterator[Turn]:
    """The turns of a conversation, in order; what cannot be read is `Refused`, with the number of the message."""
    messages = conversation
    if isinstance(conversation, Mapping):
        whole = cast("Mapping[str, Any]", conversation)
        messages = whole["messages"]
        if whole.get("system"):
            yield {"role": "system", "text": _text(whole["system"], "system")}
    for number, message in enumerate(cast("list[Any]", messages)):
        where = f"message {number}"
        if not is_message(message):
            raise Refused(f"{where} is {message!r:.100}; it has to be an object with role and content.")
        yield from of_message(cast("Mapping[str, Any]", message), where)


def of_message(message: Mapping[str, Any], where: str = "the message") -> Iterator[Turn]:
    """One message: its tool results, then what was said, then its calls in OpenAI's form."""
    common = _common(message)
    content = message.get("content")
    parts = _parts(content)
    answers = [part for part in parts if _kind(part) == "tool_result"]
    for part in answers:
        yield from _turn({**common, "role": "tool"}, _text(part.get("content"), where))
    rest: Any = [part for part in parts if _kind(part) != "tool_result"] if answers else content
    said = [_text(rest, where), *(_call(call, where) for call in message.get("tool_calls") or ())]
    yield from _turn(common, "\n".join(filter(None, said)))


def _turn(common: Turn, text: str) -> Iterator[Turn]:
    if text.strip():
        yield {**common, "text": text}


def _common(message: Mapping[str, Any]) -> Turn:
    common: Turn = {"role": str(message["role"])}
    at = next((message[name] for name in MOMENTS if message.get(name)), None)
    if isinstance(at, int | float):
        at = datetime.fromtimestamp(at, UTC).isoformat()
    if at is not None:
        common["at"] = str(at)
    if isinstance(message.get("name"), str):
        common["name"] = message["name"]
    return common


def _parts(content: Any) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else []


def _kind(part: Any) -> str:
    return str(cast("Mapping[str, Any]", part).get("type")) if isinstance(part, Mapping) else ""


def _text(content: Any, where: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise Refused(f"{where}: its content is {content!r:.100}; it has to be a text or a list of parts.")
    return "\n".join(filter(None, (_part(part, where) for part in cast("list[Any]", content))))


def _part(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    kind = _kind(part)
    if not kind:
        raise Refused(f"{where}: a part of its content is {part!r:.100}; it has to be an object with a type.")
    if kind in TEXTS:
        return str(part.get("text") or "")
    if kind in UNSAID:
        return ""
    if kind == "refusal":
        return str(part.get("refusal") or "")
    if kind == "tool_use":
        return _called(part.get("name"), json.dumps(part.get("input", {}), ensure_ascii=False))
    return f"({kind})"


def _call(call: Any, where: str) -> str:
    function = cast("Mapping[str, Any]", call).get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        raise Refused(f"{where}: a tool call is {call!r:.100}; it has to have a function with name and arguments.")
    named = cast("Mapping[str, Any]", function)
    return _called(named.get("name"), str(named.get("arguments") or "{}"))


def _called(name: Any, arguments: str) -> str:
    return f"{name} {arguments}"
