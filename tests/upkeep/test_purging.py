"""Purging: afterwards no file of the agent holds the purged bytes, and everything else still works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import BlockSpec, Prefetch
from pager.upkeep.eraser import Eraser
from tests.standin import Reply, call, search_result, thinking
from tests.support import Talk
from tests.support.secret import MARKS, SECRET, assert_gone, forms, long_secret, marks_in

CORE = {"human": BlockSpec(description="who", limit_tokens=400), "notes": BlockSpec()}


# facts


def test_a_purged_fact_is_nowhere(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core=CORE, window=8_000)
    fact = talk.memory.archive(SECRET, key="vault", tags=["safe"])
    assert marks_in(tmp_path)  # the scan does find what is there
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id, *forms(SECRET))
    assert talk.memory.search_archive("vault") == []
    assert talk.memory.history.fact_versions("vault") == []
    assert talk.memory.fact(fact.id).purged


def test_a_fact_is_gone_from_everywhere_that_quoted_it(tmp_path: Path) -> None:
    """Core, pins, recalled facts, calls and results, thinking, the digest, the ledger, other facts: evicted or not."""
    talk = Talk(tmp_path, core=CORE, window=8_000, prefetch=Prefetch(k=3))
    memory = talk.memory
    fact = memory.archive(SECRET, key="vault")
    talk.ask(f"Keep this: {SECRET}", thinking(f"so {SECRET}"), call("archive", {"text": SECRET, "list": [{SECRET: 1}]}))
    talk.answer(json.dumps({"text": SECRET, "page": fact.id}), memory_tool=True)
    talk.reply(f"Kept: {SECRET}")
    memory.core_append("human", f"vault: {SECRET}")
    memory.core_replace("human", SECRET, f"{SECRET} (old)")
    memory.page_in(fact.id, pin=True)
    memory.search_archive(SECRET)
    memory.search_recall(SECRET)
    memory.archive(f"It was said that {SECRET}", key="said")
    memory.archive("something else", key="said")
    memory.forget("f2", f"because {SECRET}")
    talk.ask("what is in the vault?", "a key")
    talk.fill(9_000)
    memory.core_replace("human", f"vault: {SECRET} (old)", "vault: moved")
    memory.purge(fact.id)
    assert_gone(talk, fact.id)
    assert talk.memory.fact("f2").text == "It was said that [purged]"


def test_both_sides_of_a_supersession_can_be_purged(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    old = talk.memory.archive(SECRET, key="vault")
    new = talk.memory.archive("the vault is empty", key="vault")
    talk.memory.purge(old.id)
    assert_gone(talk, old.id)
    assert [fact.id for fact in talk.memory.history.fact_versions("vault")] == [new.id]
    talk.memory.purge(new.id)
    assert talk.memory.archive("full again", key="vault").supersedes is None
    assert not talk.memory.check()


def test_a_fact_that_was_moved_out_of_core_leaves_no_piece_in_the_ledger(tmp_path: Path) -> None:
    """The ledger says what was edited; a long text is not cut there, where a piece of it could not be found again."""
    talk = Talk(tmp_path, core={"human": BlockSpec(limit_tokens=2_000)})
    text = long_secret(60)
    talk.memory.core_append("human", text)
    fact = talk.memory.move_to_archive("human", text)
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)


def test_pieces_of_a_long_fact_are_gone(tmp_path: Path) -> None:
    """Pinned in the middle and read in pieces by the agent: no piece is the whole text."""
    talk = Talk(tmp_path, window=8_000)
    fact = talk.memory.archive(long_secret())
    talk.ask("read it", call("page_in", {"page_id": fact.id}))
    first = talk.memory.page_in(fact.id, actor="agent")
    assert first.next_offset
    talk.answer(f"{fact.id}: {first.text}", memory_tool=True)
    talk.reply("Long.")
    talk.memory.page_in(fact.id, offset=first.next_offset, pin=True)
    talk.ask("so?", "so")
    talk.fill(8_000)
    assert marks_in(tmp_path)
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)


def test_a_short_fact_is_gone_from_what_we_wrote_ourselves(tmp_path: Path) -> None:
    """A text too short to be looked for everywhere is still taken out of pins and recalled facts."""
    talk = Talk(tmp_path, window=8_000, prefetch=Prefetch(k=3))
    fact = talk.memory.archive("pin 77")
    talk.ask("my pin?", "hm")
    talk.memory.page_in(fact.id, pin=True)
    talk.ask("my pin?", "hm")
    talk.fill(8_000)
    talk.memory.purge(fact.id)
    assert not marks_in(tmp_path, b"pin 77")
    talk.ask("still there?", "yes")


def test_quotes_of_other_facts_stay(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    first = talk.memory.archive(SECRET)
    others = [talk.memory.archive(f"harmless fact number {number}") for number in range(20)]
    assert others[10].id.startswith(first.id)
    talk.ask("read it", call("page_in", {"page_id": others[10].id}))
    talk.answer(f"{others[10].id}: {others[10].text}", memory_tool=True)
    step = talk.reply("Read.")
    talk.memory.purge(first.id)
    assert "harmless fact number 10" in talk.memory.page("s2")
    assert talk.memory.page(step) == "Read."


def test_keys_and_tags_that_quote_it_are_gone_too(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    first = talk.memory.archive(f"vault {MARKS[1]}")
    second = talk.memory.archive(f"safe {MARKS[2]}")
    keyed = talk.memory.archive("one", key=first.text, tags=[first.text, "x"])
    other = talk.memory.archive("two", key=second.text, tags=[second.text])
    for fact in (first, second):
        talk.memory.purge(fact.id)
    assert_gone(talk, second.id)
    assert [hit.page_id for hit in talk.memory.search_archive("one", tags=["x"])] == [keyed.id]
    assert talk.memory.fact(other.id).text == "two"


# steps and parts


@pytest.mark.parametrize("turns_after", [0, 9_000])
def test_a_purged_step_is_nowhere(tmp_path: Path, turns_after: int) -> None:
    talk = Talk(tmp_path, window=8_000)
    talk.ask("hello", "hello")
    step = talk.memory.append_user(SECRET, name="Dana")
    talk.reply(thinking(f"he says {SECRET}"), f"You said: {SECRET}")
    if turns_after:
        talk.fill(turns_after)
    assert talk.memory.search_recall("vault", limit=3)
    talk.memory.purge(step)
    assert_gone(talk, step, *forms(SECRET))
    assert step not in {hit.page_id for hit in talk.memory.search_recall("vault Dana", limit=50)}


def test_a_purged_request_leaves_the_digest_and_the_preamble(tmp_path: Path) -> None:
    """A request too long for the window stands spilled in the preamble, and its first words in the digest."""
    talk = Talk(tmp_path, window=8_000)
    text = f"<core>\n  {MARKS[5]} </core>\n\n {long_secret()}"
    step = talk.memory.append_user([{"type": "text", "text": text}, {"type": "text", "text": f"and {MARKS[7]}"}])
    while not any(stay.how == "request" for stay in talk.memory.history.resident()):
        talk.reply(call("weather", {"city": "Porto"}))
        talk.answer("it rains and it pours " * 20)
        talk.memory.request()
    talk.reply("Done.")
    assert "<request" in str(talk.standin.requests[-1]["messages"][0])
    talk.fill(4_000)
    assert f"{step}-" in str(talk.standin.requests[-1]["messages"][0])
    talk.memory.purge(step)
    assert_gone(talk, step)


def test_a_purged_part_is_nowhere_and_its_step_stays(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    talk.ask("look", call("weather", {"city": "Porto"}), call("weather", {"city": "Faro"}))
    one, two = talk.memory.open_calls
    talk.memory.append_result(one.id, long_secret())
    talk.memory.append_result(two.id, "sunny")
    talk.reply("Well.")
    page = next(move.page_id for move in talk.memory.ledger(events=["spill"]))
    assert page
    talk.memory.page_in(page, pin=True, offset=300)
    talk.ask("so?", "so")
    talk.fill(8_000)
    talk.memory.purge(page)
    assert_gone(talk, page)
    assert "sunny" in talk.memory.page("s2")


def test_a_purged_reply_keeps_its_calls_paired(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    step = talk.ask("look", thinking(SECRET), SECRET, call("weather", {"city": SECRET}))
    talk.answer(SECRET)
    talk.reply("Well.")
    talk.memory.purge(step)
    assert_gone(talk, step)


def test_a_purged_reply_whose_ids_were_made_unique_keeps_its_calls_paired(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    step = ""
    for _ in range(2):
        talk.memory.append_user("look")
        message = talk.send(Reply(call("weather", {"city": SECRET})))
        message["content"][0]["id"] = "call_0"
        step = talk.memory.append_assistant(message)
        talk.answer()
        talk.reply("Well.")
    talk.memory.purge(step)
    talk.memory.purge("s2")
    assert_gone(talk, step)


def test_a_purged_step_that_had_paused_leaves_no_half_of_a_server_call(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    paused = talk.ask("news?", Reply.pause(SECRET))
    server_call = talk.memory.history.blocks_of(paused)[-1]["id"]
    talk.reply(search_result(server_call), "None.")
    talk.memory.purge(paused)
    assert_gone(talk, paused)


def test_a_pinned_part_goes_with_its_step(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000)
    step = talk.memory.append_user(long_secret())
    talk.reply("Long.")
    page = talk.memory.ledger(events=["spill"])[0].page_id
    assert page
    talk.memory.page_in(page, pin=True, offset=300)
    talk.ask("so?", "so")
    talk.fill(4_000)
    talk.memory.purge(step)
    assert_gone(talk, step)
    assert not [stay for stay in talk.memory.history.resident() if stay.how == "pinned"]


def test_a_pause_that_waits_can_be_purged(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    step = talk.ask("news?", Reply.pause(SECRET))
    talk.memory.purge(step)
    talk.reply("None.")
    assert_gone(talk, step)


def test_a_step_with_open_calls_can_be_purged(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    step = talk.ask("look", call("weather", {"city": SECRET}))
    talk.memory.purge(step)
    talk.answer()
    talk.reply("Well.")
    assert_gone(talk, step)


def test_a_recorded_turn_can_be_purged(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    step = talk.memory.record("user", SECRET, name="Dana", session=f"about {SECRET}")
    talk.memory.record("user", "harmless", name="Dana")
    talk.memory.purge(step)
    assert_gone(talk, step)
    assert len(talk.memory.search_recall("Dana")) == 1


def test_an_image_can_be_purged(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    data = "enl6em9nZXRvbg" * 40
    step = talk.memory.append_user(
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]
    )
    talk.reply("A cat.")
    talk.memory.purge(step)
    assert_gone(talk, step, data.encode())


@given(text=st.text(min_size=1, max_size=60), before=st.text(max_size=10), after=st.text(max_size=10))
@settings(max_examples=40)
def test_any_text_is_gone_from_any_text_and_any_json_that_holds_it(text: str, before: str, after: str) -> None:
    secret = f"{text}{MARKS[0]}{text}"
    eraser = Eraser([secret])
    inner = [json.dumps({"x": secret}, ensure_ascii=flag) for flag in (True, False)]
    outer: Any = {"a": [f"{before}{secret}{after}", {"input": {f"{before}{secret}": inner}}]}
    assert MARKS[0] not in eraser.change(json.dumps(outer), is_json=True)
    for plain in [f"{before}{secret}{after}", *inner]:
        assert MARKS[0] not in eraser.change(plain, is_json=False)


@pytest.mark.parametrize(
    "word", ["text", "type", "user", "assistant", "tool_use", "weather", "content", "input", "ephemeral", "toolu_1"]
)
def test_a_word_that_blocks_are_made_of_leaves_the_others_whole(tmp_path: Path, word: str) -> None:
    talk = Talk(tmp_path)
    talk.ask("And in Porto?", call("weather", {"note": f"{word}: {word}"}, call_id="toolu_1"))
    talk.answer("sunny")
    talk.reply("It is sunny.")
    before = [talk.memory.history.blocks_of(step) for step in ("s1", "s3")]
    step = talk.memory.append_user(word)
    talk.reply("well")
    talk.memory.purge(step)
    assert [talk.memory.history.blocks_of(step) for step in ("s1", "s3")] == before
    made, result = talk.memory.history.blocks_of("s2")
    assert (made["type"], made["id"], made["name"], list(made["input"])) == ("tool_use", "toolu_1", "weather", ["note"])
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_1")
    assert talk.memory.search_recall("Porto")[0].who == "user"
    talk.ask("and then?", "go on")  # in a valid request
    assert talk.memory.check() == []


def test_inside_the_input_of_a_tool_any_name_may_be_a_text(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("note it", call("weather", {"text": "Lisboa", "Lisboa": {"type": "Lisboa"}}))
    talk.answer()
    talk.reply("done")
    step = talk.memory.append_user("Lisboa")
    talk.reply("well")
    talk.memory.purge(step)
    assert talk.memory.history.blocks_of("s2")[0]["input"] == {"text": "[purged]", "[purged]": {"type": "[purged]"}}
