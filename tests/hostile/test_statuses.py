"""The status of an answer decides whether it is waited out, whatever its body calls itself."""

import json
from collections.abc import Generator
from contextlib import closing, contextmanager

import pytest

from agents.models.anthropic import AnthropicModel
from agents.models.http import status_error
from agents.models.model import ModelError, ModelRefusedError, ModelUnavailableError, PromptTooLongError
from agents.testing.loopback import LoopbackHandler, LoopbackServer

HELLO = {"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
WAITING_TYPES = ("api_error", "overloaded_error", "rate_limit_error", "timeout_error")
MESSAGE = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip


@contextmanager
def answering(status: int, body: str, kind: str = "application/json") -> Generator[tuple[AnthropicModel, list[str]]]:
    """A model whose server always answers this, and the requests that came to it."""
    asked: list[str] = []

    class Fixed(LoopbackHandler):
        def answer(self, method: str) -> None:
            asked.append(f"{method} {self.path}")
            self.rfile.read(int(self.headers.get("content-length", "0")))
            self.send_whole(status, kind, body.encode(), {"retry-after": "0"})

    with LoopbackServer(Fixed) as server, closing(AnthropicModel("m", base_url=server.base_url)) as model:
        yield model, asked


def failure(model: AnthropicModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        for _ in model.stream(HELLO):
            pass
    return caught.value


def named(error_type: str) -> str:
    return json.dumps({"type": "error", "error": {"type": error_type, "message": "no"}})


@pytest.mark.parametrize("error_type", WAITING_TYPES)
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 406, 410, 413, 418, 422, 451, 501])
def test_what_will_never_succeed_is_not_waited_out(status: int, error_type: str) -> None:
    with answering(status, named(error_type)) as (model, asked):
        assert isinstance(failure(model), ModelRefusedError)
        assert (model.count_tokens(HELLO), model.max_input_tokens()) == (None, None)
    assert len(asked) == 3, "each request was sent once"


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_succeed_later_is_waited_out(status: int) -> None:
    with answering(status, named("invalid_request_error")) as (model, _):
        assert type(failure(model)) is ModelUnavailableError


@pytest.mark.parametrize(
    ("error_type", "kind"),
    [*((each, ModelUnavailableError) for each in WAITING_TYPES), ("invalid_request_error", ModelRefusedError)],
)
def test_inside_a_stream_the_type_decides(error_type: str, kind: type) -> None:
    start = json.dumps({"type": "message_start", "message": MESSAGE})
    lines = f"event: message_start\ndata: {start}\n\nevent: error\ndata: {named(error_type)}\n\n"
    with answering(200, lines, "text/event-stream") as (model, _):
        assert type(failure(model)) is kind


@pytest.mark.parametrize(("kind", "text"), [("{}", "no"), ("", "no; {}")])
def test_a_long_type_or_message_is_not_searched_to_its_end(kind: str, text: str) -> None:
    for words, found in ((10, PromptTooLongError), (100, ModelRefusedError)):
        long = f"exceeds the maximum{' a' * words} tokens"
        assert type(status_error(400, text.format(long), kind=kind.format(long))) is found
