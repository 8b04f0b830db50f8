"""Every odd reply, and a valid request after it: section 13 of the design, through the strict stand-in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import NotFoundError, RejectedError
from pager.conversation import replies
from pager.types import Json
from tests.standin import Reply, Standin, call, search_result, server_call, thinking
from tests.support import Talk
from tests.support.messages import WEATHER, goes_on, kinds, said_by, texts

# replies without content


@pytest.mark.parametrize("odd", [Reply.empty(), Reply.blank(), Reply.blank(" "), Reply("\n", " \t")])
def test_an_empty_reply_leaves_the_prompt_and_ends_the_turn(tmp_path: Path, odd: Reply) -> None:
    talk = Talk(tmp_path)
    step = talk.ask("hello", odd)
    assert not talk.memory.turn_is_open
    assert talk.memory.history.blocks_of(step) == talk.standin.replies[-1]["content"]
    with pytest.raises(RejectedError, match="nothing to send"):
        talk.memory.request()
    assert texts(goes_on(talk)) == []


def test_an_empty_reply_to_a_result_ends_the_turn_also_in_the_next_process(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("hello", WEATHER)
    talk.answer()
    talk.reply(Reply.empty())
    assert not talk.memory.turn_is_open
    assert not talk.reopen().turn_is_open
    assert kinds(goes_on(talk)) == ["tool_use"]


def test_only_thinking_leaves_two_words_in_its_place(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    step = talk.ask("hello", Reply.only_thinking("so much to think"))
    assert not talk.memory.turn_is_open
    assert talk.memory.history.blocks_of(step) == talk.standin.replies[-1]["content"]
    assert said_by(goes_on(talk), "assistant") == [{"type": "text", "text": "(no text)"}]


def test_thinking_beside_a_blank_text_goes_with_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    step = talk.ask("hello", thinking("hm"), "\n\n")
    assert [block["type"] for block in talk.memory.history.blocks_of(step)] == ["thinking", "text"]
    assert said_by(goes_on(talk), "assistant") == [{"type": "text", "text": "(no text)"}]


def test_a_blank_text_beside_thinking_and_a_call_goes_with_the_thinking(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("hello", thinking("hm"), "\n\n", WEATHER)
    talk.answer()
    talk.reply(thinking("aha"), "It is sunny.")
    assert kinds(goes_on(talk)) == ["tool_use", "thinking", "text"]


def test_a_blank_text_beside_a_text_leaves_alone(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("hello", "Well.", " ", "Good day.")
    assert texts(goes_on(talk)) == ["Well.", "Good day."]


def test_a_user_s_blank_text_does_not_make_the_request_invalid(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("", "ok")
    talk.ask(" \n", "ok")
    talk.memory.append_user([])
    talk.reply("ok")
    assert texts(goes_on(talk), "user")[:3] == ["(no text)"] * 3


# replies that were cut


def test_a_cut_text_stays_and_ends_the_turn(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("a long story", Reply.cut_text("Once upon a"))
    assert not talk.memory.turn_is_open
    assert texts(goes_on(talk)) == ["Once upon a"]


def test_a_cut_call_is_answered_with_an_error_and_never_run(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    step = talk.ask("hello", Reply.cut_call("weather", {}, "I will look."))
    assert talk.memory.open_calls == []
    assert talk.memory.turn_is_open
    result = talk.memory.history.blocks_of(step)[-1]
    assert result["is_error"]
    assert "cut off" in result["content"][0]["text"]
    talk.reply("Then without.")
    assert kinds(goes_on(talk)) == ["text", "tool_use", "text"]


def test_complete_calls_before_the_cut_one_run(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("hello", Reply.cut_call("weather", {}, thinking("hm"), WEATHER, call("weather", {"city": "Faro"})))
    assert [each.input for each in talk.memory.open_calls] == [{"city": "Porto"}, {"city": "Faro"}]
    talk.reopen()
    assert len(talk.memory.open_calls) == 2
    talk.answer()
    talk.reply("Sunny, both.")
    results = [b for b in said_by(goes_on(talk), "user") if b["type"] == "tool_result"]
    assert [bool(result.get("is_error")) for result in results] == [True, False, False]


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
def test_three_cut_calls_in_a_row_end_the_turn(tmp_path: Path, stop: str) -> None:
    talk = Talk(tmp_path)
    talk.memory.append_user("hello")
    for _ in range(2):
        talk.reply(Reply(call("weather", {}), stop_reason=stop))
        assert talk.memory.turn_is_open
    talk.reopen()  # what was cut before counts in the next process too
    talk.reply(Reply(call("weather", {}), stop_reason=stop))
    assert not talk.memory.turn_is_open
    with pytest.raises(RejectedError, match="nothing to send"):
        talk.memory.request()
    goes_on(talk)


def test_cut_calls_that_are_not_in_a_row_do_not_end_the_turn(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.memory.append_user("hello")
    for _ in range(3):
        talk.reply(Reply.cut_call("weather"))
        talk.reply(WEATHER)
        talk.answer()
        assert talk.memory.turn_is_open
    talk.reply("ok")
    goes_on(talk)


# what is no reply, and servers with ids of their own


def test_an_unfinished_stream_is_refused_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.memory.append_user("hello")
    message = talk.send(Reply("I am", WEATHER))
    with pytest.raises(RejectedError, match=r"no stop_reason.* ask the model again"):
        talk.memory.append_assistant({**message, "stop_reason": None})
    assert talk.memory.open_calls == []
    assert talk.memory.turn_is_open
    talk.reply("I am here.")
    assert texts(goes_on(talk)) == ["I am here."]


@pytest.mark.parametrize("odd", [5, None, ["text"], object()])
def test_what_is_no_reply_is_refused(tmp_path: Path, odd: object) -> None:
    talk = Talk(tmp_path)
    talk.memory.append_user("hello")
    talk.memory.request()
    with pytest.raises(RejectedError):
        talk.memory.append_assistant(odd)
    talk.reply("ok")


def test_a_reply_of_another_role_is_refused(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.memory.append_user("hello")
    with pytest.raises(RejectedError, match="'user'"):
        talk.memory.append_assistant({"role": "user", "content": [], "stop_reason": "end_turn"})


def test_ids_that_a_server_repeats_are_made_unique(tmp_path: Path) -> None:
    talk = Talk(tmp_path, standin=Standin(limit_tokens=60_000, duplicate_ids=True))
    for _ in range(3):
        talk.ask("hello", Reply.same_ids(WEATHER, call("weather", {"city": "Faro"})))
        ids = [each.id for each in talk.memory.open_calls]
        assert len(set(ids)) == 2
        talk.memory.append_result(ids[1], "rain")
        talk.memory.append_result(ids[0], "sun")
        talk.reply("Well.")
    seen = [b["id"] for b in said_by(goes_on(talk), "assistant") if b["type"] == "tool_use"]
    assert len(seen) == len(set(seen)) == 6


@pytest.mark.parametrize("call_id", ["", "a b", "ü", "call:1/2", "x" * 500, "\ud800", None, 7])
def test_ids_that_the_api_refuses_are_made_valid(tmp_path: Path, call_id: Any) -> None:
    talk = Talk(tmp_path)
    for _ in range(2):
        talk.memory.append_user("hello")
        message = talk.send(Reply(WEATHER))
        message["content"][0]["id"] = call_id
        talk.memory.append_assistant(message)
        talk.answer()
        talk.reply("ok")
    goes_on(talk)


def test_a_result_for_no_call_is_refused(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("hello", WEATHER)
    with pytest.raises(NotFoundError, match="never made; open are toolu_"):
        talk.memory.append_result("call_9", "sunny")
    known = talk.memory.open_calls[0].id
    talk.answer()
    with pytest.raises(NotFoundError, match="answered already; no call is open"):
        talk.memory.append_result(known, "sunny")


# any sequence of replies

SOME = st.sampled_from(
    [
        Reply.empty(), Reply.blank(), Reply.only_thinking("hm"), Reply(thinking("a"), "\n"), Reply("fine"),
        Reply(thinking("b"), "good"), Reply.cut_text("Once"), Reply.cut_call("weather"), Reply(thinking("c"), WEATHER),
        Reply.cut_call("weather", {}, thinking("d"), WEATHER), Reply.refusal(), Reply.refusal("I'd rather"),
        Reply(WEATHER, " ", WEATHER), Reply.window_exceeded("about"), Reply(thinking("e"), " ", WEATHER),
        Reply.stopped_by("END", "so"), Reply(server_call("web_search"), search_result(), thinking("f"), "found"),
    ]
)  # fmt: skip


@pytest.mark.slow
@given(odd=st.lists(SOME, min_size=1, max_size=12))
@settings(max_examples=15)
def test_any_sequence_of_odd_replies_leaves_valid_requests(tmp_path_factory: Any, odd: list[Reply]) -> None:
    talk = Talk(tmp_path_factory.mktemp("odd"), window=8_000)
    for reply in odd:
        if not talk.memory.turn_is_open:
            talk.memory.append_user("go on")
        talk.reply(reply)
        if reply.stop_reason == "refusal":
            talk.watch.forget_tail()
        talk.answer()
    if talk.memory.turn_is_open:
        talk.reply("enough")
    goes_on(talk)


# the pure decision


def carried(*content: Json, stop: str = "end_turn", taken: tuple[str, ...] = (), cuts: int = 0) -> replies.Carried:
    reply = replies.read({"content": list(content), "stop_reason": stop})
    return replies.carry(reply, is_used=lambda each: each in taken, next_step=9, cuts_before=cuts)


def test_a_reply_without_oddities_is_carried_as_it_came() -> None:
    blocks = [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": "hi"}]
    fate = carried(*blocks)
    assert fate.forms == blocks
    assert fate.ends_turn


def test_a_taken_id_is_replaced_by_a_free_one() -> None:
    block: Json = {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}
    fate = carried(block, block, stop="tool_use", taken=("c1",))
    assert len({*fate.call_ids.values(), "c1"}) == 3
    assert [form and form["id"] for form in fate.forms] == list(fate.call_ids.values())


def test_text_is_a_reply_too() -> None:
    assert replies.read("hi").blocks == [{"type": "text", "text": "hi"}]
    assert replies.read("").blocks == []
