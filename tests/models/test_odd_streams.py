"""What no server should send: each stream is a reply, or an error that the loop knows; a record, or none. Over HTTP,
through the SDK."""

import json
from collections.abc import Generator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import pytest

from agents.models.anthropic import AnthropicModel
from agents.models.model import FinishedReply, ModelUnavailableError, UnreadableReplyError
from agents.testing.loopback import LoopbackHandler, LoopbackServer

MESSAGE = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
ENDS = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}


@pytest.mark.parametrize(
    ("record", "tokens"),
    [
        ('{"max_input_tokens": 50000}', 50_000),
        *((record, None) for record in ("", "{", "[]", "null", '"x"')),
        *((f'{{"max_input_tokens": {number}}}', None) for number in ("-1", "0", "50000.5", '"many"')),
    ],
)
def test_a_record_says_how_large_the_window_is_or_is_none(record: str, tokens: int | None) -> None:
    with answering(record) as (model, _):
        assert model.max_input_tokens() == tokens


@pytest.mark.parametrize(
    ("status", "body", "times"),
    [(404, "{}", 1), (405, "{}", 1), (501, "", 1), (200, "x", 1), (200, "{", 1), (500, "{}", 3), (429, "{}", 3)],
)
def test_a_server_that_cannot_count_is_asked_once(status: int, body: str, times: int) -> None:
    with answering(body, status=status) as (model, posted):
        for _ in range(3):
            assert model.count_tokens({"messages": [{"role": "user", "content": "x"}]}) is None
    assert len(posted) == times


STOP = {"type": "message_stop"}


def start(**other: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {**MESSAGE, **other}}


def sending(*events: Any) -> AbstractContextManager[tuple[AnthropicModel, list[str]]]:
    """A model whose server streams these events, whatever it is asked."""
    lines = "".join(f"event: {event.get('type', 'x')}\ndata: {json.dumps(event)}\n\n" for event in events)
    return answering(lines, "text/event-stream")


@contextmanager
def answering(
    text: str, kind: str = "application/json", *, status: int = 200
) -> Generator[tuple[AnthropicModel, list[str]]]:
    """A model whose server answers with this, and what was posted to it."""
    posted: list[str] = []

    class Fixed(LoopbackHandler):
        def answer(self, method: str) -> None:
            if method == "POST":
                posted.append(self.path)
                self.rfile.read(int(self.headers["content-length"]))
            self.send_whole(status, kind, text.encode(), {})

    with LoopbackServer(Fixed) as server, closing(AnthropicModel("m", base_url=server.base_url)) as model:
        yield model, posted


def reply_of(model: AnthropicModel) -> FinishedReply:
    pieces = model.stream({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]})
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value


def test_a_reply_without_content_is_an_empty_one() -> None:
    with sending(start(content=None), ENDS, STOP) as (model, _):
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
    with sending(*events) as (model, _), pytest.raises((ModelUnavailableError, UnreadableReplyError)):
        reply_of(model)
