"""Refusals, pauses and a window that is exceeded: what they take out of the prompt, and a valid request after each."""

from pathlib import Path
from typing import Any

import pytest

from pager import BlockSpec, OpenCallsError, WindowTooSmallError
from pager.types import Json
from tests.standin import Rejected, Reply, Standin, call, search_result, thinking
from tests.support import Talk
from tests.support.messages import WEATHER, core_of, goes_on, kinds, texts


def test_a_refusal_of_the_first_turn_leaves_nothing(talk: Talk) -> None:
    step = talk.ask("something terrible", Reply.refusal("I'd rather"))
    assert not talk.memory.turn_is_open
    assert talk.memory.page_text(step) == "I'd rather"
    talk.watch.forget_tail()
    assert texts(goes_on(talk), "user") == ["and then?"]
    assert [hit.page_id for hit in talk.memory.search_recall("terrible") if "words" in hit.parts] == ["s1"]


def test_a_refusal_takes_its_whole_turn_and_nothing_before(talk: Talk) -> None:
    talk.ask("good day", thinking("hm"), "good day")
    talk.ask("something terrible", thinking("oh"), WEATHER)
    talk.answer()
    talk.reply(WEATHER)
    talk.answer()
    talk.reply(Reply.refusal())
    talk.watch.forget_tail()
    messages = goes_on(talk)
    assert texts(messages, "user") == ["good day", "and then?"]
    assert kinds(messages) == ["thinking", "text"]
    assert {move.reason for move in talk.memory.ledger(events=["drop"])} == {"refusal"}


def test_a_refusal_with_a_call_in_it_leaves_no_call_open(talk: Talk) -> None:
    talk.ask("something terrible", Reply("Well.", WEATHER, stop_reason="refusal"))
    assert talk.memory.open_calls == []
    assert not talk.memory.turn_is_open
    talk.watch.forget_tail()
    goes_on(talk)


def test_a_refusal_takes_the_request_also_out_of_the_preamble(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000)
    talk.memory.append_user("something terrible")
    while not any(stay.how == "request" for stay in talk.memory.history.resident()):
        talk.reply(WEATHER)
        talk.answer("it rains and it pours " * 20)
        talk.memory.request()
    talk.reply(WEATHER)
    talk.answer()
    assert "something terrible" in talk.text
    talk.reply(Reply.refusal())
    talk.ask("and then?", "go on")
    opening = [text for text in texts(talk.standin.requests[-1]["messages"], "user") if text.startswith("<request")]
    assert opening == []
    assert "something terrible" not in str(talk.standin.requests[-1])
    assert not [stay for stay in talk.memory.history.resident() if stay.how == "request"]
    goes_on(talk)


def test_what_the_agent_was_told_in_a_refused_turn_it_is_told_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core={"human": BlockSpec(description="who")})
    talk.ask("good day", "good day")
    fact = talk.memory.archive("has two cats")
    talk.memory.core_append("human", "lives in Porto")
    talk.memory.page_in(fact.id, pin=True)
    talk.ask("something terrible", Reply.refusal())
    talk.watch.forget_tail()
    talk.memory.append_user("and then?")
    assert "lives in Porto" in talk.text
    assert "has two cats" in talk.text
    talk.reply("go on")


def test_what_the_agent_changed_in_a_refused_turn_it_still_sees(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core={"human": BlockSpec(description="who")})
    talk.ask("good day", "good day")
    talk.ask("I live in Porto. Something terrible, please", call("weather", {"city": "Porto"}))
    talk.memory.core_append("human", "lives in Porto", actor="agent")
    talk.answer("done", memory_tool=True)
    talk.reply(Reply.refusal())
    talk.watch.forget_tail()
    talk.memory.append_user("and then?")
    assert "lives in Porto" in core_of(talk.memory.request().params) + str(talk.memory.request().messages[-1])
    talk.reply("go on")


def test_a_pause_is_sent_back_as_it_came_and_goes_on(talk: Talk) -> None:
    paused = talk.ask("news?", Reply.pause("news", thinking("look"), "I am looking."))
    assert talk.memory.turn_is_open
    with pytest.raises(OpenCallsError, match="paused"):
        talk.memory.append_user("hello?")
    talk.memory.core  # noqa: B018  -- reading is no appending
    talk.reopen()
    talk.reply(search_result(_server_call_of(talk, paused)), thinking("so"), "No news.")
    last = talk.standin.requests[-1]["messages"][-1]
    assert last["role"] == "assistant"
    assert _plain(last["content"]) == talk.memory.history.blocks_of(paused)
    assert not talk.memory.turn_is_open
    assert kinds(goes_on(talk))[:2] == ["thinking", "text"]


def test_a_pause_that_cannot_be_sent_back_as_it_came_is_given_up(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    talk.ask("hello", "hello")
    paused = talk.ask("news?", Reply.pause("news"))
    talk.reopen(instructions="Be long.")
    talk.reply("No news.")
    assert [move.event for move in talk.memory.ledger(page=paused)] == ["drop"]
    huge = talk.ask("more news?", Reply.pause("x " * 900))
    talk.memory.report_too_long("prompt is too long: 8100 tokens > 8000 maximum")
    talk.reply("Still none.")
    assert [move.event for move in talk.memory.ledger(page=huge)] == ["drop"]
    goes_on(talk)


@pytest.mark.parametrize(
    "blocks", [(thinking("hm"),), (thinking("hm"), " "), ("Wait.", " "), ("I will search now ",), ("Wait.\n",)]
)
def test_a_pause_that_could_never_be_sent_back_is_given_up_at_once(talk: Talk, blocks: tuple[Any, ...]) -> None:
    talk.ask("hello", "hello")
    paused = talk.ask("news?", Reply(*blocks, stop_reason="pause_turn"))
    assert talk.memory.turn_is_open
    talk.reopen()
    talk.reply("No news.")
    assert [move.event for move in talk.memory.ledger(page=paused)] == ["drop"]
    goes_on(talk)


def test_pauses_that_could_never_be_sent_back_are_not_asked_for_for_ever(talk: Talk) -> None:
    talk.memory.append_user("news?")
    for _ in range(3):
        assert talk.memory.turn_is_open
        talk.reply(Reply(thinking("hm"), stop_reason="pause_turn"))
    assert not talk.memory.turn_is_open
    talk.ask("and now?", "No news.")


def test_a_pause_outlives_a_window_in_which_nothing_fits(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    paused = talk.ask("news?", Reply.pause("news"))
    talk.reopen(instructions="Be long. " * 700, count_tokens=lambda _: 8_001)
    with pytest.raises(WindowTooSmallError):
        talk.memory.request()
    talk.reopen(instructions="Be brief.", count_tokens=None)
    assert talk.memory.ledger(page=paused) == []
    talk.reply(search_result(_server_call_of(talk, paused)), "No news.")
    goes_on(talk)


def test_a_pause_at_the_edge_of_the_window_goes_on(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000)
    talk.ask("hello", "hello")
    while talk.memory.append_user("more " * 40) and talk.memory.request().tokens < 0.78 * 4500:
        talk.reply("more " * 60)
    paused = talk.reply(Reply.pause("news", "I am looking. " * 60))
    talk.reply(search_result(_server_call_of(talk, paused)), "No news.")
    goes_on(talk)


def _server_call_of(talk: Talk, step: str) -> str:
    return next(b["id"] for b in talk.memory.history.blocks_of(step) if b["type"] == "server_tool_use")


def _plain(content: list[Json]) -> list[Json]:
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in content]


@pytest.mark.parametrize("in_next_process", [False, True])
def test_what_the_end_of_the_window_cut_off_is_asked_for_again_with_more_room(
    tmp_path: Path, in_next_process: bool
) -> None:
    talk = Talk(tmp_path, window=6_000)
    talk.fill(1_000)
    before = talk.last and talk.last.epoch
    cut = talk.ask("go on", Reply.window_exceeded("I was about"))
    assert talk.memory.turn_is_open
    if in_next_process:
        talk.reopen()
    talk.reply("It is said.")
    assert not talk.memory.turn_is_open
    assert talk.last
    assert talk.last.epoch != before
    assert talk.memory.page_text(cut) == "I was about"
    assert "I was about" not in str(talk.last)
    goes_on(talk)


@pytest.mark.slow
def test_a_prompt_that_was_too_long_is_made_smaller_until_it_fits(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=20_000, standin=Standin(limit_tokens=9_000, max_tokens_count=False))
    for number in range(80):
        talk.memory.append_user(f"turn {number}: " + "and so we went on and on " * 20)
        _try_until_it_fits(talk)
    assert talk.memory.ledger(events=["error"])
    assert not talk.memory.check()


def _try_until_it_fits(talk: Talk) -> None:
    for _ in range(5):
        try:
            talk.reply("Yes. " + "it is so " * 30)
        except Rejected as error:
            talk.memory.report_too_long(str(error))
        else:
            return
    raise AssertionError("five attempts, and it still does not fit")
