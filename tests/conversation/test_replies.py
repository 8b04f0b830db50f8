"""Every odd reply, and a valid request after it, through the strict stand-in.

Any sequence of them is tried by tests/laws.
"""

from pathlib import Path
from typing import Any

import pytest

from pager import RejectedError
from tests.standin import Reply, Standin, call, thinking
from tests.support import Talk
from tests.support.messages import WEATHER, goes_on, kinds, said_by, texts

THINKS = thinking("hm")


@pytest.mark.parametrize("odd", [Reply.empty(), Reply.blank(), Reply.blank(" "), Reply("\n", " \t")])
def test_an_empty_reply_leaves_the_prompt_and_ends_the_turn(talk: Talk, odd: Reply) -> None:
    step = talk.ask("hello", odd)
    assert not talk.memory.turn_is_open
    assert talk.memory.history.blocks_of(step) == talk.standin.replies[-1]["content"]
    with pytest.raises(RejectedError, match="nothing to send"):
        talk.memory.request()
    assert texts(goes_on(talk)) == []


def test_an_empty_reply_to_a_result_ends_the_turn_also_in_the_next_process(talk: Talk) -> None:
    talk.ask("hello", WEATHER)
    talk.answer()
    talk.reply(Reply.empty())
    assert not talk.memory.turn_is_open
    assert not talk.reopen().turn_is_open
    assert kinds(goes_on(talk)) == ["tool_use"]


@pytest.mark.parametrize(
    ("blocks", "sent"),
    [
        ((Reply.only_thinking("so much to think"),), ["(no text)"]),
        ((THINKS, "\n\n"), ["(no text)"]),
        (("Well.", " ", "Good day."), ["Well.", "Good day."]),
        ((Reply.cut_text("Once upon a"),), ["Once upon a"]),
    ],
)
def test_blank_texts_and_thinking_alone_are_stored_and_not_sent(talk: Talk, blocks: Any, sent: list[str]) -> None:
    step = talk.ask("hello", *blocks)
    assert not talk.memory.turn_is_open
    assert talk.memory.history.blocks_of(step) == talk.standin.replies[-1]["content"]
    assert said_by(goes_on(talk), "assistant") == [{"type": "text", "text": text} for text in sent]


def test_thinking_without_a_signature_is_stored_and_not_sent(talk: Talk) -> None:
    thought = {"type": "thinking", "thinking": "so much to think"}
    talk.memory.append_user("hello")
    usage = talk.send(Reply("Well."))["usage"]
    content = [thought, {"type": "text", "text": "Well."}]
    step = talk.memory.append_assistant({"content": content, "stop_reason": "end_turn", "usage": usage})
    assert talk.memory.history.blocks_of(step) == content
    assert kinds(goes_on(talk)) == ["text"]


def test_a_blank_text_beside_thinking_and_a_call_goes_with_the_thinking(talk: Talk) -> None:
    talk.ask("hello", THINKS, "\n\n", WEATHER)
    talk.answer()
    talk.reply(thinking("aha"), "It is sunny.")
    assert kinds(goes_on(talk)) == ["tool_use", "thinking", "text"]


def test_a_user_s_blank_text_does_not_make_the_request_invalid(talk: Talk) -> None:
    for content in ("", " \n", []):
        talk.ask(content, "ok")
    assert texts(goes_on(talk), "user")[:3] == ["(no text)"] * 3


def test_a_cut_call_is_answered_with_an_error_and_never_run(talk: Talk) -> None:
    step = talk.ask("hello", Reply.cut_call("weather", {}, "I will look."))
    assert talk.memory.open_calls == []
    assert talk.memory.turn_is_open
    result = talk.memory.history.blocks_of(step)[-1]
    assert result["is_error"]
    assert "cut off" in result["content"][0]["text"]
    talk.reply("Then without.")
    assert kinds(goes_on(talk)) == ["text", "tool_use", "text"]


def test_complete_calls_before_the_cut_one_run(talk: Talk) -> None:
    talk.ask("hello", Reply.cut_call("weather", {}, THINKS, WEATHER, call("weather", {"city": "Faro"})))
    assert [each.input for each in talk.memory.open_calls] == [{"city": "Porto"}, {"city": "Faro"}]
    talk.reopen()
    assert len(talk.memory.open_calls) == 2
    talk.answer()
    talk.reply("Sunny, both.")
    results = [block for block in said_by(goes_on(talk), "user") if block["type"] == "tool_result"]
    assert [bool(result.get("is_error")) for result in results] == [True, False, False]


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
def test_three_cut_calls_in_a_row_end_the_turn(talk: Talk, stop: str) -> None:
    cut = Reply(call("weather", {}), stop_reason=stop)
    talk.memory.append_user("hello")
    for _ in range(2):
        talk.reply(cut)
        assert talk.memory.turn_is_open
    talk.reopen()  # earlier cuts count in the next process too
    talk.reply(cut)
    assert not talk.memory.turn_is_open
    goes_on(talk)


def test_cut_calls_that_are_not_in_a_row_do_not_end_the_turn(talk: Talk) -> None:
    talk.memory.append_user("hello")
    for _ in range(3):
        talk.reply(Reply.cut_call("weather"))
        talk.reply(WEATHER)
        talk.answer()
        assert talk.memory.turn_is_open
    talk.reply("ok")
    goes_on(talk)


def test_an_unfinished_stream_is_refused_and_nothing_of_it_is_stored(talk: Talk) -> None:
    talk.memory.append_user("hello")
    message = talk.send(Reply("I am", WEATHER))
    with pytest.raises(RejectedError, match=r"no stop_reason.* ask the model again"):
        talk.memory.append_assistant({**message, "stop_reason": None})
    with pytest.raises(RejectedError, match="'user'"):
        talk.memory.append_assistant({"role": "user", "content": [], "stop_reason": "end_turn"})
    assert talk.memory.open_calls == []
    assert talk.memory.turn_is_open
    talk.reply("I am here.")
    assert texts(goes_on(talk)) == ["I am here."]


def test_ids_that_a_server_repeats_are_made_unique(tmp_path: Path) -> None:
    talk = Talk(tmp_path, standin=Standin(limit_tokens=60_000, duplicate_ids=True))
    for _ in range(3):
        talk.ask("hello", Reply.same_ids(WEATHER, call("weather", {"city": "Faro"})))
        ids = [each.id for each in talk.memory.open_calls]
        assert len(set(ids)) == 2
        talk.memory.append_result(ids[1], "rain")
        talk.memory.append_result(ids[0], "sun")
        talk.reply("Well.")
    seen = [block["id"] for block in said_by(goes_on(talk), "assistant") if block["type"] == "tool_use"]
    assert len(seen) == len(set(seen)) == 6


@pytest.mark.parametrize("call_id", ["", "a b", "ü", "call:1/2", "x" * 500, "\ud800", None, 7])
def test_ids_that_the_api_refuses_are_made_valid(talk: Talk, call_id: Any) -> None:
    for _ in range(2):
        talk.memory.append_user("hello")
        message = talk.send(Reply(WEATHER))
        message["content"][0]["id"] = call_id
        talk.memory.append_assistant(message)
        talk.answer()
        talk.reply("ok")
    goes_on(talk)
