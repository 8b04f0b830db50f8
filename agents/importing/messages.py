"""Convert one message of another program to records: the messages that `Memory.record_many` takes. Pure.

Nothing that was said is lost. Tool calls and results become text, files their name and text, unknown parts every text
in them. What is no text is named by its kind: `(image)`. Thinking is left out. Text and calls keep their order.

    >>> list(records_of_message({"role": "assistant", "content": [{"type": "text", "text": "Hi."}]}))
    [{'role': 'assistant', 'text': 'Hi.'}]
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from pager.errors import RejectedError, brief
from pager.types import Json

Record = Json
TIMES = ("at", "created_at", "timestamp", "create_time")
THINKING = frozenset({"thinking", "redacted_thinking", "reasoning", "thoughts", "reasoning_recap", "item_reference"})
RESULTS = ("tool_result", "_output")  # how the kinds of tool results end
NO_TEXT = frozenset(
    {
        "type", "content_type", "id", "uuid", "role", "status", "object", "index", "model", "mime_type",
        "media_type", "format", "data", "signature", "encrypted_content", "encrypted_index", "cache_control",
        "call_id", "tool_use_id", "file_id", "file_data", "image_url", "audio_url", "asset_pointer", "detail",
        "annotations", "citations", "logprobs", "metadata", "start_timestamp", "stop_timestamp", "flags",
        "language", "response_format_name",
    }
)  # fmt: skip


def is_message(value: Any) -> bool:
    """Return True for a message (role and content), or an item of the Responses API (a type without a role)."""
    message = as_object(value)
    if "role" in message:
        return "text" not in message and bool({"content", "tool_calls", "refusal"} & message.keys())
    kind = message.get("type")
    return isinstance(kind, str) and kind.endswith(("_call", *RESULTS, *THINKING))


def records_of_message(message: Mapping[str, Any], where: str = "the message") -> Iterator[Record]:
    """Yield each tool result as a record of its own, and what was said and called. Raises RejectedError."""
    role = message.get("role", "assistant")
    if not isinstance(role, str) or not role.strip():
        raise RejectedError(f"{where}: its role is {brief(role)}; it has to be a text, such as user or assistant.")
    common: Record = {"role": "user" if role == "human" else role}
    at = next((message[name] for name in TIMES if message.get(name) is not None), None)
    if at is not None and at != "":
        common["at"] = iso_time(at, where)
    if isinstance(message.get("name"), str) and "role" in message and role != "tool":
        common["name"] = message["name"]
    if "role" not in message:
        role = "tool" if str(message["type"]).endswith(RESULTS) else "assistant"
        yield from _record({**common, "role": role}, [_part(message)])
        return
    content = message.get("content")
    texts: list[str] = []
    for part in as_list(content) if isinstance(content, list) else [content]:
        if _kind(part).endswith(RESULTS):
            yield from _record(common, texts)
            texts.clear()
            yield from _record({**common, "role": "tool"}, [_part(as_object(part))])
        else:
            texts.append(text_of(part, where))
    texts += [text_of(message.get("refusal"), where), *_texts(message.get("audio") or {})]
    calls = message.get("tool_calls")
    if not isinstance(calls, list | None):
        raise RejectedError(f"{where}: its tool_calls are {brief(calls)}; they have to be a list of calls.")
    texts += [_call(call, where) for call in as_list(calls)]
    yield from _record(common, texts)


def as_object(value: Any) -> Json:
    """Return `value` if it is an object, else an empty one."""
    return cast(Json, value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return `value` if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def _record(common: Record, texts: list[str]) -> Iterator[Record]:
    text = "\n".join(filter(None, texts))
    if text.strip():
        yield {**common, "text": text}


def iso_time(at: Any, where: str) -> str:
    """Return a time as ISO text. It is given as text, or as seconds since 1970."""
    if isinstance(at, str):
        return at
    try:
        if isinstance(at, bool):
            raise ValueError
        return datetime.fromtimestamp(at, UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        raise RejectedError(
            f"{where}: its time is {brief(at)}; it has to be a text such as 2026-05-03T14:30Z, or seconds since 1970."
        ) from None


def _kind(part: Any) -> str:
    fields = as_object(part)
    return str(fields.get("type") or fields.get("content_type") or "")


def text_of(content: Any, where: str) -> str:
    """Return the text of a message's content: a text, a part, or a list of them."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "\n".join(filter(None, (text_of(part, where) for part in as_list(content))))
    if not _kind(content):
        raise RejectedError(
            f"{where}: its content is {brief(content)}; it has to be a text or a list of parts with a type."
        )
    return _part(content)


def _part(part: Mapping[str, Any]) -> str:
    kind = _kind(part)
    if kind in THINKING:
        return ""
    if kind.endswith(("_call", "tool_use")):
        arguments = next((part[name] for name in ("arguments", "input", "action", "code") if name in part), Json())
        return _called(part.get("name") or kind, arguments)
    if kind.endswith(RESULTS):
        result = next((part[name] for name in ("content", "output") if part.get(name) is not None), None)
        return "\n".join(_texts(result if result is not None else part))
    if isinstance(part.get("text"), str) and kind.endswith("text"):
        return str(part["text"])
    if kind == "refusal":
        return str(part.get("refusal") or "")
    return "\n".join(dict.fromkeys((f"({kind})", *_texts(part))))


def _texts(value: Any) -> list[str]:
    """Return every text in a value of any shape, in order; for parts without any their kind."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, list):
        return [text for item in as_list(cast(Any, value)) for text in _texts(item)]
    fields = as_object(value)
    texts = [text for name, inner in fields.items() if name not in NO_TEXT for text in _texts(inner)]
    kind = _kind(value)
    if kind == "text" and isinstance(fields.get("data"), str):  # the source of a document
        texts.append(fields["data"])
    return texts or ([f"({kind})"] if kind in ("image", "input_image", "audio", "document", "file") else [])


def _call(call: Any, where: str) -> str:
    function = as_object(as_object(call).get("function") or as_object(call).get("custom"))
    if not function:
        raise RejectedError(
            f"{where}: a tool call is {brief(call)}; it has to have a function with name and arguments."
        )
    return _called(function.get("name"), function.get("arguments") or function.get("input") or "{}")


def _called(name: Any, arguments: Any) -> str:
    return f"{name} {arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)}"
