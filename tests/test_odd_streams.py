"""Streams that no server should send: each is a reply, or an error that the loop knows. Over HTTP, through the SDK."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from agents.anthropic_model import AnthropicModel
from agents.model import FinishedReply, ModelAway, UnreadableReply

MESSAGE = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
ENDS = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
STOP = {"type": "message_stop"}


def start(**other: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {**MESSAGE, **other}}


@contextmanager
def sending(*events: Any) -> Generator[AnthropicModel]:
    """A model whose server streams these events, whatever it is asked."""
    lines = "".join(f"event: {event.get('type', 'x')}\ndata: {json.dumps(event)}\n\n" for event in events)
    body = lines.encode()

    class Fixed(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Fixed)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        with closing(AnthropicModel("m", base_url=f"http://127.0.0.1:{server.server_port}")) as model:
            yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def reply_of(model: AnthropicModel) -> FinishedReply:
    pieces = model.stream({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]})
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value


def test_a_reply_without_content_is_an_empty_one() -> None:
    with sending(start(content=None), ENDS, STOP) as model:
        reply = reply_of(model)
    assert (reply.message["content"], reply.message["stop_reason"]) == ([], "end_turn")


@pytest.mark.parametrize(
    "events",
    [
        [],
        [STOP],
        [start()],
        [start(content=None), {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}, STOP],
        [start(), {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}}, ENDS],
        [start(), {"type": "content_block_start", "index": 0, "content_block": None}, ENDS, STOP],
        [start(), {"type": "content_block_delta", "index": None, "delta": None}, ENDS, STOP],
        [{"type": "message_start", "message": None}, ENDS, STOP],
        [start(usage=None), ENDS, STOP],
    ],
)
def test_what_makes_no_sense_is_an_error_that_the_loop_knows(events: list[Any]) -> None:
    with sending(*events) as model, pytest.raises((ModelAway, UnreadableReply)):
        reply_of(model)
