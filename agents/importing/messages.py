"""One message of a conversation from elsewhere, as turns that `Memory.record_many` takes. Pure.

Nothing that was said is lost: what a tool was asked and answered is kept as text, of a file its name and its text, and
of a part that nobody has heard of every text in it. What is no text is told by its kind: `(image)`. Thinking is not
kept. Text and calls stand in the order in which they came.

    >>> list(of_message({"role": "assistant", "content": [{"type": "text", "text": "Hi."}]}))
    [{'role': 'assistant', 'text': 'Hi.'}]
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from pager.errors import RejectedError

Json = dict[str, Any]
Turn = Json
MOMENTS = ("at", "created_at", "timestamp", "create_time")
UNSAID = frozenset({"thinking", "redacted_thinking", "reasoning", "thoughts", "reasoning_recap", "item_reference"})
RESULTS = ("tool_result", "_output")  # how the kinds of what tools answer end
NO_TEXT = frozenset(
    {"type", "content_type", "id", "uuid", "role", "status", "object", "index", "model", "mime_type", "media_type",
     "format", "data", "signature", "encrypted_content", "encrypted_index", "cache_control", "call_id", "tool_use_id",
     "file_id", "file_data", "image_url", "audio_url", "asset_pointer", "detail", "annotations", "citations",
     "logprobs", "metadata", "start_timestamp", "stop_timestamp", "flags", "language", "response_format_name"}
)  # fmt: skip
SECONDS_END = 1e11  # a larger number counts milliseconds, a thousand times larger microseconds, and so on
ROLES = {"human": "user", "model": "assistant"}


def is_message(value: Any) -> bool:
    """Whether this is a message (role and content), or an item of the Responses API (a type without a role)."""
    if not isinstance(value, Mapping):
        return False
    message = cast("Mapping[str, Any]", value)
    if "role" in message:
        return "text" not in message and bool({"content", "tool_calls", "function_call", "refusal"} & message.keys())
    kind = message.get("type")
    return isinstance(kind, str) and kind.endswith(("_call", *RESULTS, *UNSAID))


def of_message(message: Mapping[str, Any], where: str = "the message") -> Iterator[Turn]:
    """The results of tools in it, each a turn of its own, and what was said and called. What cannot be read is
    `RejectedError`."""
    if "role" not in message:
        kind = str(message["type"])
        common = {**_common(message, where), "role": "tool" if kind.endswith(RESULTS) else "assistant"}
        yield from turn(common, _part(message))
        return
    common = _common(message, where)
    content = message.get("content")
    parts = cast("list[Any]", content) if isinstance(content, list) else [content]
    said: list[str] = []
    for part in parts:
        if _kind(part).endswith(RESULTS):
            yield from turn(common, "\n".join(filter(None, said)))
            said.clear()
            yield from turn({**common, "role": "tool"}, _part(cast(Json, part)))
        else:
            said.append(text_of(part, where))
    said += [text_of(message.get("refusal"), where), *_texts(message.get("audio") or {})]
    said += [_call(call, where) for call in _calls(message.get("tool_calls"), where)]
    if message.get("function_call"):
        said.append(_call({"function": message["function_call"]}, where))
    yield from turn(common, "\n".join(filter(None, said)))


def members(value: Any) -> Json:
    """An object's; of anything else none."""
    return cast(Json, value) if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """A list's; of anything else none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def turn(common: Turn, text: str) -> Iterator[Turn]:
    if text.strip():
        yield {**common, "text": text}


def _common(message: Mapping[str, Any], where: str) -> Turn:
    role = message.get("role", "assistant")
    if not isinstance(role, str) or not role.strip():
        raise RejectedError(f"{where}: its role is {role!r:.100}; it has to be a text, such as user or assistant.")
    common: Turn = {"role": ROLES.get(role, role)}
    at = next((message[name] for name in MOMENTS if message.get(name) is not None), None)
    if at is not None and at != "":
        common["at"] = moment(at, where)
    if isinstance(message.get("name"), str) and "role" in message and role != "tool":
        common["name"] = message["name"]
    return common


def moment(at: Any, where: str) -> str:
    """A time as others write it: a text, or a number of seconds, milliseconds, ... since 1970."""
    if isinstance(at, str):
        return at
    try:
        if isinstance(at, bool) or not math.isfinite(at):
            raise ValueError
        while abs(at) >= SECONDS_END:
            at /= 1000
        return datetime.fromtimestamp(at, UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        raise RejectedError(
            f"{where}: its time is {at!r:.100}; it has to be a text such as 2026-05-03T14:30Z, or seconds since 1970."
        ) from None


def _kind(part: Any) -> str:
    known = members(part)
    return str(known.get("type") or known.get("content_type") or "")


def text_of(content: Any, where: str) -> str:
    """What a message or a result holds: a text, a part, or a list of them."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "\n".join(filter(None, (text_of(part, where) for part in cast("list[Any]", content))))
    if not _kind(content):
        raise RejectedError(
            f"{where}: its content is {content!r:.100}; it has to be a text or a list of parts with a type."
        )
    return _part(content)


def _part(part: Mapping[str, Any]) -> str:
    kind = _kind(part)
    if kind in UNSAID:
        return ""
    if kind.endswith(("_call", "tool_use")):
        asked = next((part[name] for name in ("arguments", "input", "action", "code") if name in part), Json())
        return _called(part.get("name") or kind, asked)
    if kind.endswith(RESULTS):
        answered = next((part[name] for name in ("content", "output") if part.get(name) is not None), None)
        return "\n".join(_texts(answered if answered is not None else part))
    if isinstance(part.get("text"), str) and kind.endswith("text"):
        return str(part["text"])
    if kind == "refusal":
        return str(part.get("refusal") or "")
    texts = _texts(part)
    return "\n".join(dict.fromkeys(texts if texts and kind == "text" else (f"({kind})", *texts)))


def _texts(value: Any) -> list[str]:
    """Every text in a value of any shape, in order; of parts without any their kind."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, list):
        return [text for each in items(cast(Any, value)) for text in _texts(each)]
    found = [text for name, each in members(value).items() if name not in NO_TEXT for text in _texts(each)]
    kind = _kind(value)
    if kind == "text" and isinstance(members(value).get("data"), str):  # the source of a document
        found.append(members(value)["data"])
    return found or ([f"({kind})"] if kind in ("image", "input_image", "audio", "document", "file") else [])


def _calls(calls: Any, where: str) -> list[Any]:
    if not isinstance(calls, list | None):
        raise RejectedError(f"{where}: its tool_calls are {calls!r:.100}; they have to be a list of calls.")
    return cast("list[Any]", calls or [])


def _call(call: Any, where: str) -> str:
    asked = members(members(call).get("function") or members(call).get("custom"))
    if not asked:
        raise RejectedError(
            f"{where}: a tool call is {call!r:.100}; it has to have a function with name and arguments."
        )
    return _called(asked.get("name"), asked.get("arguments") or asked.get("input") or "{}")


def _called(name: Any, arguments: Any) -> str:
    told = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{name} {told}"
