"""The Messages API's wire format, made from finished messages: server-sent events, and errors. Pure.

A message is a dict as the API answers it without streaming. A `tool_use` block may have a field `raw_json` beside its
input, which is streamed instead of it, valid JSON or not.

    >>> message = {"id": "m", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn", "usage": {}}
    >>> [event["type"] for event in events(message)][:3]
    ['message_start', 'ping', 'content_block_start']
"""

import json
from collections.abc import Iterator, Mapping

from agents.models.replies import RAW_JSON
from pager.errors import PagerError
from pager.types import Json

PIECE_CHARACTERS = 24  # of a text or an input in one event
CUT_STOPS = frozenset({"max_tokens", "model_context_window_exceeded"})
ERROR_TYPES = {
    401: "authentication_error", 403: "permission_error", 404: "not_found_error", 408: "timeout_error",
    409: "conflict_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
    529: "overloaded_error",
}  # fmt: skip


class ApiError(PagerError):
    """An answer that is not a message: an HTTP status with the API's own kind of body."""

    def __init__(
        self, status: int, message: str, *, error_type: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = error_type or ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        self.message = message
        self.headers = dict(headers or {})

    def body(self, request_id: str | None = None) -> Json:
        """Return the body of the answer."""
        return {"type": "error", "error": {"type": self.type, "message": self.message}, "request_id": request_id}


def whole(message: Json) -> Json:
    """Return the message as it is answered without streaming."""
    content = [{name: value for name, value in block.items() if name != RAW_JSON} for block in message["content"]]
    return {**message, "content": content}


def events(message: Json) -> Iterator[Json]:
    """Yield the message as the events of a stream."""
    usage = message["usage"]
    empty: Json = {"content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None}
    yield {"type": "message_start", "message": {**message, **empty, "usage": {**usage, "output_tokens": 1}}}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        is_cut = message["stop_reason"] in CUT_STOPS and index == len(message["content"]) - 1
        start, deltas = _opening(block, is_cut=is_cut)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {name: message.get(name) for name in ("stop_reason", "stop_sequence", "stop_details")}
    totals = {name: value for name, value in usage.items() if isinstance(value, int)}
    yield {"type": "message_delta", "delta": ending, "usage": totals}
    yield {"type": "message_stop"}


def encode(event: Json) -> bytes:
    """Return one event as it stands on the wire."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode(errors="replace")


def _opening(block: Json, *, is_cut: bool) -> tuple[Json, list[Json]]:
    """Return a block as its stream begins, and its deltas. What is no text, thinking or call comes in one piece."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, _deltas("text_delta", "text", block["text"])
        case "thinking":
            deltas = _deltas("thinking_delta", "thinking", block["thinking"])
            signature = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
        case "tool_use" | "server_tool_use":
            start = {name: value for name, value in block.items() if name != RAW_JSON}
            text = json.dumps(block["input"], ensure_ascii=False)
            text = block.get(RAW_JSON, text[:-1] if is_cut else text)  # no token was left for the last bracket
            empty = {"type": "input_json_delta", "partial_json": ""}
            return {**start, "input": {}}, [empty, *_deltas("input_json_delta", "partial_json", text)]
        case _:
            return dict(block), []


def _deltas(kind: str, field: str, text: str) -> list[Json]:
    starts = range(0, len(text), PIECE_CHARACTERS)
    return [{"type": kind, field: text[start : start + PIECE_CHARACTERS]} for start in starts]
