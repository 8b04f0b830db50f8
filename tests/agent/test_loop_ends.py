"""How requests and replies end: every stop reason, lost streams, outages, and what is no reply at all."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.agent import Agent
from agents.events import Replied, StreamLost, Text
from agents.loop import FAILED_AGAIN, WITHOUT_IT
from agents.meter import RunLimits
from agents.models.anthropic import AnthropicModel
from agents.models.model import (
    FinishedReply,
    Model,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
    PromptTooLongError,
)
from agents.models.patience import Patience
from agents.models.replies import broken_call
from agents.testing import disconnect, http_error, stall, stream_error, too_long, truncate
from agents.tools.functions import Tool
from pager.types import Json
from tests.standin import Reply, Standin, call, thinking
from tests.support import HandClock
from tests.support.hands import look
from tests.support.stage import Said, Stage, last, results, said_to, stage_in, uncounted, until

SEARCH = {"type": "web_search_20250305", "name": "web_search"}


@pytest.mark.parametrize(
    ("lines", "ends", "text"),
    [
        (["Hello."], "answered", "Hello."),
        ([call("look"), "Calm."], "answered", "Calm."),
        ([Reply.stopped_by("END", "Hello.")], "answered", "Hello."),
        ([Reply.cut_text("I was ab")], "cut", "I was ab"),
        ([Reply.window_exceeded("I was ab"), "Calm."], "answered", "Calm."),
        ([Reply.window_exceeded(f"I was {at}") for at in "abc"], "cut", "I was c"),
        ([Reply.refusal()], "refused", ""),
        ([Reply.refusal("I will n")], "refused", "I will n"),
        ([Reply.empty()], "answered", ""),
        ([Reply.blank()], "answered", "\n\n"),
        ([Reply.only_thinking()], "answered", ""),
        ([Reply.cut_call("look", {"at": "s"}), "Calm."], "answered", "Calm."),
        ([Reply("One moment.", stop_reason="pause_turn"), "Calm."], "answered", "Calm."),
    ],
)
def test_every_stop_reason_ends_well(stage: Stage, lines: list[Said], ends: str, text: str) -> None:
    agent = stage.says(*lines).agent(look)
    turn = agent.turn("go")
    assert (turn.stopped.reason, turn.text) == (ends, text)
    assert not agent.memory.turn_is_open
    for words in ("and now?", "and then?"):  # what was said stays valid
        assert stage.says(Reply(thinking("hm"), "Fine.")).agent
        assert agent.turn(words).text == "Fine."
    assert agent.memory.check() == []


def paused_agent(stage: Stage, *lines: Said) -> Agent:
    """An agent with a paused reply that cannot go on for now; then the model says these lines."""
    stage.says(Reply("One moment.", stop_reason="pause_turn"), http_error(400, "no"), *lines)
    agent = stage.agent(look)
    with pytest.raises(ModelRefusedError):
        agent.turn("what is in?")
    return agent


@pytest.mark.parametrize("goes_on", ["Hats are in.", Reply("Wait.", call("look"))])
def test_something_said_into_a_paused_turn_waits_until_it_went_on(stage: Stage, goes_on: Said) -> None:
    assert paused_agent(stage, goes_on, "And warm.").turn("and the weather?").text == "And warm."
    assert stage.last[0]["text"] == "and the weather?"


def test_a_stop_before_a_paused_reply_went_on_says_that_nothing_was_taken(stage: Stage) -> None:
    agent = paused_agent(stage, http_error(529), "Hats are in.", "Warm.")
    events = agent.stream("and the weather?")
    until(events, StreamLost)
    agent.stop()
    stopped = last(events)
    assert (stopped.reason, "was not taken" in stopped.text) == ("cancelled", True)
    assert agent.resume().text == "Hats are in."
    assert agent.turn("and the weather?").text == "Warm."
    assert said_to(stage).count("and the weather?") == 1


LOST = [
    disconnect(after=0.6), disconnect(after=0), truncate(after=0.6), stream_error(after=0.6), stall(after=0.6),
    stall(after=0),
]  # fmt: skip


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_stream_leaves_nothing_and_is_asked_again(stage: Stage, fault: Said) -> None:
    stage.follows(lambda params: Reply("These words are a reply. " * 20))
    agent = stage.says(fault).agent(model=stage.model(read_seconds=1))
    events = list(agent.stream("go"))
    lost = next(index for index, event in enumerate(events) if isinstance(event, StreamLost))
    assert sum(isinstance(event, Replied) for event in events) == 1
    first, second = stage.requests[-2:] if len(stage.requests) > 1 else 2 * stage.requests
    assert first == second
    whole = "".join(event.text for event in events[lost:] if isinstance(event, Text))
    assert whole == "These words are a reply. " * 20
    assert agent.turn("and?").text == whole
    assert agent.memory.check() == []


OUTAGES = [http_error(status) for status in (408, 409, 429, 500, 502, 503, 504, 529)]


@pytest.mark.parametrize("faults", [*([each] * 5 for each in OUTAGES), LOST[:5]])
def test_an_outage_is_waited_out_with_growing_pauses(stage: Stage, faults: list[Said]) -> None:
    waits: list[float] = []
    patience = Patience(1_000, first_pause_seconds=1, longest_pause_seconds=5, wait=waits.append)
    agent = stage.says(*faults, "Back.").agent(model=stage.model(read_seconds=1), patience=patience)
    assert agent.turn("go").text == "Back."
    assert waits == [1, 2, 4, 5, 5]


@pytest.mark.parametrize(
    ("seconds", "faults", "waits"),
    [
        (6, 4 * [http_error(529)], [1, 2, 3]),
        # The provider says how long. Longer than there is patience for ends at once.
        (100, [http_error(429, retry_after=40), http_error(429, retry_after=61)], [40]),
    ],
)
def test_when_patience_ends_the_turn_stays_open(
    stage: Stage, seconds: float, faults: list[Said], waits: list[float]
) -> None:
    waited: list[float] = []
    agent = stage.says(*faults, "Here.").agent(patience=Patience(seconds, wait=waited.append))
    with pytest.raises(ModelUnavailableError):
        agent.turn("are you there?")
    assert waited == waits
    assert agent.memory.turn_is_open
    assert agent.resume().text == "Here."
    assert [message["role"] for message in stage.requests[-1]["messages"][1:]] == ["user"]


def test_stop_ends_the_waiting(stage: Stage) -> None:
    patience = Patience(3_600, first_pause_seconds=3_600)
    agent = stage.says(http_error(529), "Here.").agent(patience=patience)
    events = agent.stream("go")
    until(events, StreamLost)
    agent.stop()  # or this test would take an hour
    assert last(events).reason == "cancelled"
    assert agent.resume().text == "Here."


def test_minutes_hold_while_waiting(stage: Stage) -> None:
    def wait(seconds: float) -> None:
        clock.set(clock.now() + timedelta(seconds=seconds))

    clock = HandClock()
    patience = Patience(3_600, first_pause_seconds=600, wait=wait)
    agent = stage.says(http_error(529)).agent(limits=RunLimits(max_minutes=2), patience=patience, clock=clock)
    assert agent.turn("go").stopped.reason == "minutes"


@pytest.mark.slow
def test_a_window_smaller_than_thought_is_learned(tmp_path: Path) -> None:
    with stage_in(tmp_path, Standin(limit_tokens=12_000)) as stage:
        agent = stage.agent(window=20_000, model=uncounted(stage.model()))
        for number in range(30):
            words = f"turn {number}: " + "and so we went on and on " * 30
            assert agent.turn(words).stopped.reason == "answered"
            assert said_to(stage)[-1] == words
        refused = stage.service.rejected
        assert refused
        assert all("prompt is too long" in each or "exceed context limit" in each for each in refused)
        assert len(refused) < 5
        assert "the provider said that the prompt is too long" in [move.reason for move in agent.memory.ledger()]


def test_the_words_of_llama_cpp_are_understood_too(stage: Stage) -> None:
    words = "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it"
    agent = stage.says("Hello.", http_error(400, words), "Here.").agent()
    agent.turn("hello")
    assert agent.turn("go on").text == "Here."
    assert [move.tokens for move in agent.memory.ledger(events=["error"])] == [9031]


def test_too_long_is_tried_again_with_a_bound(stage: Stage) -> None:
    agent = stage.says(*3 * [too_long(60_100, 60_000)], "Fine again.").agent()
    with pytest.raises(PromptTooLongError, match="60100"):
        agent.turn("four")
    assert agent.memory.turn_is_open
    assert agent.resume().text == "Fine again."


@pytest.mark.parametrize(
    ("status", "hint"),
    [(400, "no such thing"), (401, "model.api_key"), (403, "may do"), (404, "model.id"), (422, "422")],
)
def test_a_request_that_is_refused_is_not_sent_again_and_says_where_to_look(
    stage: Stage, status: int, hint: str
) -> None:
    agent = stage.says(http_error(status, "no such thing")).agent()
    with pytest.raises(ModelRefusedError, match=hint) as error:
        agent.turn("go")
    assert "{" not in str(error.value)
    assert stage.service.asked == 1
    assert agent.memory.turn_is_open


class Babbling(Model):
    """A model whose first replies are none that could be sent back."""

    name = "m"

    def __init__(self, model: AnthropicModel, *bad: dict[str, Any]) -> None:
        self._model = model
        self._bad = list(bad)
        self.count_tokens, self.max_input_tokens, self.close = model.count_tokens, model.max_input_tokens, model.close

    def stream(self, params: Any) -> Any:
        reply = yield from self._model.stream(params)
        return FinishedReply({**reply.message, **self._bad.pop(0)}) if self._bad else reply


NO_NAME = {"content": [{"type": "tool_use", "id": "c", "name": "", "input": {}}], "stop_reason": "tool_use"}
NO_INPUT = {"content": [{"type": "tool_use", "id": "c", "name": "look", "input": [1]}], "stop_reason": "tool_use"}
NO_TEXT = {"content": [{"type": "text", "text": None}]}
NO_USAGE = {"usage": {"input_tokens": "many"}}


def test_a_malformed_reply_is_voided_and_asked_again_and_three_in_a_row_fail_clearly(stage: Stage) -> None:
    waits: list[float] = []
    model = Babbling(stage.says("bad one", "bad two", "bad three").model(), NO_INPUT, NO_USAGE, NO_NAME, NO_TEXT)
    agent = stage.agent(look, model=model, patience=Patience(wait=waits.append))
    with pytest.raises(ModelError, match=r"3 replies in a row .* 1 to 128 of"):
        agent.turn("go")
    assert waits == [1, 2]
    assert (agent.memory.turn_is_open, agent.memory.open_calls, agent.meter.steps) == (True, [], 0)
    stage.says("bad four", "Good.")
    kinds = [type(event) for event in agent.resume_stream() if isinstance(event, Text | StreamLost | Replied)]
    assert kinds == [Text, StreamLost, Text, Replied]
    assert [step.page_id for step in agent.memory.history.resident()] == ["s1", "s2"]
    assert stage.requests[0] == stage.requests[-1]
    assert agent.memory.check() == []


def test_a_client_without_its_region_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelRefusedError, match="cannot be created"):
        AnthropicModel("m", provider="bedrock").max_input_tokens()


def test_after_the_third_identical_failing_call_the_model_answers_without_tools(stage: Stage) -> None:
    """A second one is told so. A call that succeeds in between begins the count anew, and another is not the same."""
    wrong, other = call("look", {"at": 7}), call("look", {"at": 8})
    script = [wrong, call("look"), wrong, other, wrong, Reply(wrong, wrong)]
    agent = stage.says(*script, call("look")).agent(look)
    turn = agent.turn("look!")
    assert (turn.text, turn.stopped.reason) == ("", "repeated")
    last = stage.requests[-1]
    assert last["tool_choice"] == {"type": "none"}
    texts = [text for message in last["messages"] for text, _ in results(message["content"])]
    assert [FAILED_AGAIN in text for text in texts] == [False, False, False, False, True, True, True]
    assert not agent.memory.turn_is_open
    assert agent.memory.history.rebuild(turn.steps[-1]).get("tool_choice") == last["tool_choice"]
    stage.says("Yes.")
    assert agent.turn("so?").text == "Yes."


@pytest.mark.parametrize("wrong", [call("look", {"at": "sea"}), broken_call("look", '{"at": ')])
def test_calls_that_are_refused_or_malformed_are_counted_like_failing_ones(stage: Stage, wrong: Json) -> None:
    tool = Tool.of(look, approve="always")
    agent = stage.says(wrong, wrong, wrong, "I cannot look.").agent(tool, approve=lambda _: False)
    turn = agent.turn("look!")
    assert (turn.text, turn.stopped.reason) == ("I cannot look.", "repeated")
    texts = [text for message in stage.requests[-1]["messages"] for text, _ in results(message["content"])]
    assert [FAILED_AGAIN in text for text in texts] == [False, True, True]


def test_an_error_of_a_memory_tool_says_how_to_go_on(stage: Stage) -> None:
    stage.says(call("page_in", {"page_id": "5823"}), "I do not know.").agent().turn("what is 5823?")
    [(told, _)] = results(stage.last)
    assert told.endswith(f"and a number. {WITHOUT_IT}")
