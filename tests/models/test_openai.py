"""`provider: openai` over real HTTP and through the real SDK, against the strict stand-in and servers that are odd."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agents.agent import Agent
from agents.assembly import make_model, try_out
from agents.config.agent_config import AgentConfig
from agents.config.errors import ConfigError
from agents.events import StreamLost
from agents.loop import MALFORMED
from agents.models.model import (
    FinishedReply,
    MediaRefusedError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
    PromptTooLongError,
    UnreadableReplyError,
)
from agents.models.openai import OpenAIModel
from agents.models.patience import Patience
from agents.models.replies import Reply, broken_call, call
from agents.testing import disconnect, http_error, stream_error, truncate
from tests.models.test_chat_completions import delta
from tests.standin import thinking
from tests.standin.chat import ChatStandin
from tests.standin.chat_server import ChatServer
from tests.support.clock import HandClock
from tests.support.hands import Hands, look
from tests.support.stage import build

Json = dict[str, Any]
HELLO: Json = {"max_tokens": 20, "messages": [{"role": "user", "content": "Hello"}]}
WINDOW = 8_000


class Wire:
    """A server, and what asks it. In the end everything scripted was said, and no request refused."""

    def __init__(self, opened: ExitStack, directory: Path) -> None:
        self.opened = opened
        self.directory = directory
        self.server = self.serve(ChatStandin(limit_tokens=WINDOW))

    def serve(self, api: ChatStandin, **options: Any) -> ChatServer:
        self.server = self.opened.enter_context(ChatServer(api, **options))
        return self.server

    def model(self, **options: Any) -> OpenAIModel:
        model = OpenAIModel("m", base_url=self.server.url, **options)
        self.opened.callback(model.close)
        return model

    def agent(self, *tools: Any, window: int = WINDOW, **options: Any) -> Agent:
        return self.opened.enter_context(build(self.directory, self.model(), *tools, window=window, **options))


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    with ExitStack() as opened:
        wire = Wire(opened, tmp_path / "agent")
        yield wire
        assert not wire.server.rejected
        assert not wire.server.unsaid


def reply_of(model: OpenAIModel, params: Json = HELLO) -> FinishedReply:
    pieces = model.stream(params)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value


def test_a_turn_with_parallel_and_malformed_calls_thinking_and_images(wire: Wire, hands: Hands) -> None:
    agent = wire.agent(hands.fetch, look)
    calls = [call("fetch", order="7"), broken_call("look", '{"at": '), call("look", at="sea")]
    wire.server.script(Reply(thinking("Two things."), "Let me see.", calls=calls), Reply("All is well."))
    assert agent.turn("how is it?").text == "All is well."
    assert hands.done == ["7"]
    *_, said, first, second, third = wire.server.api.requests[-1]["messages"]
    assert said["content"] == "Let me see."
    assert [each["content"] for each in (first, second, third)] == [
        "order 7 is on its way", f"Error: {MALFORMED}", "the sea is calm",
    ]  # fmt: skip
    assert agent.turn("and now?").text == "ok"
    assert "Two things." not in str(wire.server.asked)
    assert "Two things." in str(agent.memory.history.blocks_of("s2"))
    assert not agent.memory.check()


def test_usage_is_asked_for_and_its_cached_part_priced(wire: Wire) -> None:
    agent = wire.agent()
    agent.turn("hello " * 200)
    usage = agent.turn("and now?").usage
    assert usage.cache_read_input_tokens > usage.cache_creation_input_tokens > 0
    assert usage.input_tokens == 0


# Law 1.


@pytest.mark.parametrize("reports_usage", [True, False])
def test_the_window_holds_with_servers_that_count_and_with_those_that_do_not(wire: Wire, reports_usage: bool) -> None:
    wire.serve(ChatStandin(limit_tokens=WINDOW, reports_usage=reports_usage, ratios={"words": 1.6}))
    agent = wire.agent()
    for number in range(30):
        agent.turn(f"turn {number}: " + "and so we went on and on " * 20)
    assert agent.memory.ledger(events=["evict"])
    assert not agent.memory.ledger(events=["error"])


def test_reasoning_that_is_not_sent_back_fills_no_window(wire: Wire) -> None:
    agent = wire.agent()
    for number in range(8):
        wire.server.script(Reply(thinking("so much to think " * 400), f"Answer {number}."))
        agent.turn(f"question {number}")
    true = wire.server.api.count(wire.server.asked[-1])
    agent.memory.append_user("so?")
    assert true <= agent.memory.request().tokens < true + 100
    assert not agent.memory.ledger(events=["evict"])


def test_a_server_whose_window_is_smaller_refuses_once_and_the_turn_goes_on(wire: Wire) -> None:
    wire.serve(ChatStandin(limit_tokens=6_000))
    agent = wire.agent(window=8_000)
    for number in range(40):
        assert agent.turn(f"turn {number}: " + "and so we went on and on " * 20).text == "ok"
    refused = wire.server.rejected
    assert refused
    assert len(refused) == len(agent.memory.ledger(events=["error"])) < 10
    refused.clear()


# What servers want otherwise.


def test_a_server_that_wants_a_field_otherwise_gets_it_so_from_then_on(wire: Wire) -> None:
    model = wire.model(thinking="off")
    wire.server.script(
        http_error(400, "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
        http_error(422, "extra fields not permitted: stream_options"),
        http_error(400, "property 'chat_template_kwargs' is unsupported"),
        *("Hi.", "Hi."),
    )
    for _ in range(2):
        assert reply_of(model).message["content"][0]["text"] == "Hi."
    last = wire.server.asked[-1]
    assert (last["max_completion_tokens"], "max_tokens" in last, "stream_options" in last) == (20, False, False)
    assert wire.server.asked[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert (last["reasoning_effort"], "chat_template_kwargs" in last) == ("none", False)
    assert len(wire.server.asked) == 5


def test_reasoning_goes_back_to_a_server_that_wants_it(wire: Wire) -> None:
    wire.serve(ChatStandin(limit_tokens=WINDOW, message_fields=["reasoning_content"]))
    agent = wire.agent(look)
    wire.server.script(
        Reply(thinking("first"), call("look")),
        http_error(400, "The `reasoning_content` in the thinking mode must be passed back to the API."),
        Reply(thinking("second"), call("look")), "Done.",
    )  # fmt: skip
    assert agent.turn("look twice").text == "Done."
    sent = [each["reasoning_content"] for each in wire.server.asked[-1]["messages"] if "reasoning_content" in each]
    assert sent == ["", "second"]


def test_a_refusal_that_another_form_does_not_mend_is_one(wire: Wire) -> None:
    refusals = ["use max_completion_tokens", "use max_tokens"]
    wire.server.script(*(http_error(400, text) for text in refusals))
    with pytest.raises(ModelRefusedError, match="use max_tokens"):
        reply_of(wire.model())


# Errors.

TOO_LONG = [
    ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", 9_000),
    ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages,"
     " 1000 in the completion).", 4_000),
    ("'max_tokens' or 'max_completion_tokens' is too large: 800. This model's maximum context length is 4096 tokens and"
     " your request has 3900 input tokens", 3_900),
    ("This endpoint's maximum context length is 32768 tokens. However, you requested about 40100 tokens (40000 of text"
     " input, 100 in the output).", 40_000),
    ("request (12031 tokens) exceeds the available context size (8192 tokens), try increasing it", 12_031),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 40_000),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 537_812),
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 5_000),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", None),
    ("Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", None),
    ("Trying to keep the first 5000 tokens when context overflows. However, the model is loaded with context length of"
     " only 4096 tokens", None),
    ("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)", None),
    ("prompt token count of 5000 exceeds the limit of 4096", None),
    ("Prompt exceeds max length", None),
    ("Range of input length should be [1, 30720]", None),
    ("The engine prompt length 9000 exceeds the max_model_len 8192. Please reduce prompt.", None),
    ("Input validation error: `inputs` must have less than 4095 tokens. Given: 5000", None),
    ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 500"
     " `max_new_tokens`", None),
    ("litellm.ContextWindowExceededError: the request is larger than the model takes", None),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.", 300_000),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tokens"), TOO_LONG)
def test_a_prompt_that_is_too_long_is_known_by_many_texts_and_its_size_with_it(
    wire: Wire, text: str, tokens: int | None
) -> None:
    wire.server.script(http_error(400, text))
    with pytest.raises(PromptTooLongError) as raised:
        reply_of(wire.model())
    agent = wire.agent()
    agent.memory.append_user("hello")
    agent.memory.request()
    agent.memory.report_too_long(str(raised.value))
    assert [move.tokens for move in agent.memory.ledger(events=["error"])] == [tokens or 0]


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        *((status, "server_error", ModelRefusedError) for status in (400, 401, 403, 404, 413, 422)),
        *((status, "soon", ModelUnavailableError) for status in (408, 409, 429, 500, 503, 529)),
        (429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 35000.", PromptTooLongError),
        (422, "this model takes no image", MediaRefusedError),
        (200, "maximum context length is 10 tokens", PromptTooLongError),
        (500, "image input is not supported - hint: you may need to provide the mmproj", MediaRefusedError),
        (500, "the request exceeds the available context size, try increasing it", PromptTooLongError),
    ],
)
def test_a_status_says_whether_waiting_helps(wire: Wire, status: int, text: str, error: type[ModelError]) -> None:
    wire.server.script(http_error(status, text, retry_after=7))
    with pytest.raises(error, match=str(status) if error is not PromptTooLongError else None) as raised:
        reply_of(wire.model())
    if isinstance(raised.value, ModelUnavailableError):
        assert raised.value.retry_after_seconds == 7
    assert len(wire.server.asked) == 1  # the SDK retries nothing


def test_an_error_that_comes_with_the_status_200_is_read(wire: Wire) -> None:
    wire.server.script(http_error(200, "The model is not loaded."))
    with pytest.raises(ModelRefusedError, match="The model is not loaded"):
        reply_of(wire.model())


def test_errors_say_what_to_do(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    wire.server.script(http_error(401, "Incorrect key: s3cret-key."), http_error(404, "No such model."))
    for hint in ("OPENAI_API_KEY, or model.api_key", "model.base_url, which usually ends in /v1"):
        with pytest.raises(ModelRefusedError, match=hint) as raised:
            reply_of(wire.model(api_key="s3cret-key"))
        assert "s3cret" not in str(raised.value)
    with pytest.raises(ModelRefusedError, match="OPENAI_API_KEY"):
        reply_of(OpenAIModel("m", base_url="https://llm.example.org/v1"))


@pytest.mark.parametrize(
    ("line", "error"),
    [
        *(
            (fault("Half of it is said, and then"), ModelUnavailableError)
            for fault in (disconnect, truncate, stream_error)
        ),
        (stream_error("Half", status=502), ModelUnavailableError),
        (stream_error("Half", status=400), ModelRefusedError),
        ([], ModelUnavailableError),
        ([{"choices": [{"delta": {"content": 5}}]}], UnreadableReplyError),
        ([{"choices": 7}], UnreadableReplyError),
        ([{"choices": [{"delta": {"tool_calls": [None]}}]}, delta("stop")], UnreadableReplyError),
        ([{"choices": [{"delta": None, "finish_reason": None}]}], ModelUnavailableError),
    ],
)
def test_half_a_reply_is_none(wire: Wire, line: Any, error: type[ModelError]) -> None:
    wire.server.script(line)
    with pytest.raises(error):
        reply_of(wire.model())


def test_the_loop_waits_and_asks_again(wire: Wire) -> None:
    agent = wire.agent(patience=Patience(60.0, wait=lambda _: None))
    wire.server.script(http_error(429, retry_after=1), truncate("Half of it"), "Whole.")
    events = list(agent.stream("hello"))
    assert sum(isinstance(event, StreamLost) for event in events) == 2


@pytest.mark.parametrize(
    ("models", "tokens"),
    [
        ([{"id": "a.gguf", "meta": {"n_ctx": 4096, "n_ctx_train": 32768}}], 4_096),
        ([{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 8192}], 8_192),
        ([{"id": "m", "context_length": 131072}, {"id": "n"}], 131_072),
        ([{"id": "m"}], None),
        ([{"id": "m", "max_model_len": "many"}], None),
        ([{"id": "a", "n_ctx": 5}, {"id": "b", "n_ctx": 5}], None),
        ([], None),
        ([7], None),
    ],
)
def test_some_lists_of_models_say_how_large_the_window_is(wire: Wire, models: list[Any], tokens: int | None) -> None:
    wire.serve(wire.server.api, models=models)
    assert wire.model().max_input_tokens() == tokens


def test_without_its_package_an_agent_is_not_even_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    config = AgentConfig.model_validate({"name": "x", "model": {"provider": "openai", "id": "m"}})
    assert isinstance(make_model(config), OpenAIModel)
    monkeypatch.setitem(sys.modules, "openai", None)
    for use in (make_model, lambda each: try_out(each, HandClock(), task=False)):
        with pytest.raises(ConfigError, match=r"pip install 'selfpager\[openai\]'"):
            use(config)
    with pytest.raises(ModelRefusedError, match="selfpager"):
        reply_of(OpenAIModel("m"))
