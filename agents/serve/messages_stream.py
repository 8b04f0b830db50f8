"""The stream of the Messages API, made from the events of a turn as they come. Pure.

>>> stream = Stream("msg_1", "m")
>>> [event["type"] for event in stream.text("Hello")]
['message_start', 'content_block_start', 'content_block_delta']

What the agent's own tools do is not in it. The words of each reply are a block of their own.
"""

import json
from collections.abc import Iterator, Sequence

from agents.serve.messages_records import SIGNATURE, Answer, usage_json
from pager.types import Json, Usage

PING: Json = {"type": "ping"}
KINDS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
         409: "conflict_error", 413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error",
         504: "timeout_error", 529: "overloaded_error"}  # fmt: skip


def encode(event: Json) -> bytes:
    """Return an event as it stands on the wire."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode(errors="replace")


def error(status: int, message: str, request_id: str, details: Json | None = None) -> Json:
    """Return an error in the API's form: the body of an answer, or the last event of a stream."""
    kind = KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    told = {"type": kind, "message": message, **({"details": details} if details else {})}
    return {"type": "error", "error": told, "request_id": request_id}


class Stream:
    """The events of one answer, in order. Each method yields those that are due."""

    def __init__(self, message_id: str, model: str) -> None:
        self._id = message_id
        self._model = model
        self._index = -1
        self._open = ""  # the type of the block that grows
        self._begun = False
        self.uncommitted = False  # something was sent of a reply that is not on disk yet

    def begin(self) -> Iterator[Json]:
        """Yield how the message begins, once. Its usage is only known at its end."""
        if self._begun:
            return
        self._begun = True
        message = Answer(self._id, self._model, (), "", None, Usage()).message
        yield {"type": "message_start", "message": {**message, "stop_reason": None}}

    def text(self, piece: str) -> Iterator[Json]:
        """Yield a piece of the model's words."""
        yield from self._grow({"type": "text", "text": ""}, {"type": "text_delta", "text": piece})

    def thinking(self, piece: str) -> Iterator[Json]:
        """Yield a piece of what the model thinks."""
        opening = {"type": "thinking", "thinking": "", "signature": ""}
        yield from self._grow(opening, {"type": "thinking_delta", "thinking": piece})

    def commit(self) -> Iterator[Json]:
        """Yield the end of the block that grows: the reply is on disk."""
        self.uncommitted = False
        yield from self._close()

    def block(self, block: Json) -> Iterator[Json]:
        """Yield a whole block."""
        if block["type"] == "text":
            yield from self.text(block["text"])
        elif block["type"] == "thinking":
            yield from self.thinking(block["thinking"])
        else:
            given = json.dumps(block["input"], ensure_ascii=False)
            yield from self._grow({**block, "input": {}}, {"type": "input_json_delta", "partial_json": given})
        yield from self.commit()

    def end(self, answer: Answer, left: Sequence[Json]) -> Iterator[Json]:
        """Yield the blocks that are left of an answer, and its end."""
        yield from self.begin()
        yield from self._close()
        for block in left:
            yield from self.block(block)
        delta = {"stop_reason": answer.stop_reason, "stop_sequence": answer.stop_sequence}
        yield {"type": "message_delta", "delta": delta, "usage": usage_json(answer.usage)}
        yield {"type": "message_stop"}

    def _grow(self, opening: Json, delta: Json) -> Iterator[Json]:
        yield from self.begin()
        if self._open != opening["type"]:
            yield from self._close()
            self._index, self._open = self._index + 1, opening["type"]
            yield {"type": "content_block_start", "index": self._index, "content_block": opening}
        self.uncommitted = True
        yield {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _close(self) -> Iterator[Json]:
        if self._open == "thinking":
            delta = {"type": "signature_delta", "signature": SIGNATURE}
            yield {"type": "content_block_delta", "index": self._index, "delta": delta}
        if self._open:
            self._open = ""
            yield {"type": "content_block_stop", "index": self._index}
