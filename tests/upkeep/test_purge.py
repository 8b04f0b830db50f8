"""Purging pages: afterwards no file of the agent holds the purged bytes, and everything else still works."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import BlockSpec, NotFoundError, Prefetch, RejectedError, tokens
from pager.upkeep.eraser import Eraser
from tests.standin import Reply, call, search_result, thinking
from tests.support import Talk
from tests.support.messages import core_of, image
from tests.support.secret import MARKS, SECRET, assert_gone, forms, long_secret, marks_in

CORE = {"human": BlockSpec(description="who", limit_tokens=400), "notes": BlockSpec(limit_tokens=400)}


@pytest.mark.slow
def test_a_fact_is_gone_from_everything_that_quoted_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core=CORE, window=8_000, prefetch=Prefetch(k=3))
    memory = talk.memory
    fact = memory.archive(SECRET, key="vault")
    talk.ask(f"Keep this: {SECRET}", thinking(f"so {SECRET}"), call("archive", {"text": SECRET, "list": [{SECRET: 1}]}))
    talk.answer(json.dumps({"text": SECRET, "page": fact.id}), memory_tool=True)
    talk.reply(f"Kept: {SECRET}")
    memory.core_append("human", f"vault: {SECRET}")
    memory.core_replace("human", SECRET, f"{SECRET} (old)")
    memory.core_append("notes", f"Note: {SECRET} (important)")
    memory.page_in(fact.id, pin=True)
    memory.search_archive(SECRET)
    memory.search_recall(SECRET)
    memory.archive(f"It was said that {SECRET}", key="said")
    memory.archive("something else", key="said")
    memory.forget("f2", f"because {SECRET}")
    memory.save_value("task", f"find {SECRET}")
    memory.save_value("other", "kept")
    talk.ask("what is in the vault?", "a key")
    talk.fill(9_000)
    memory.core_replace("human", f"vault: {SECRET} (old)", "vault: moved")
    memory.purge(fact.id)
    assert (memory.load_value("task"), memory.load_value("other")) == ("find [purged]", "kept")
    assert all(block.used_tokens == tokens.total(block.value) for block in memory.core())
    assert_gone(talk, fact.id)
    assert talk.memory.fact("f2").text == "It was said that [purged]"


def test_both_sides_of_a_supersession_can_be_purged(talk: Talk) -> None:
    old = talk.memory.archive(SECRET, key=MARKS[0], tags=[MARKS[1]])
    new = talk.memory.archive("the vault is empty", key=MARKS[0])
    talk.memory.forget(old.id, MARKS[2])
    talk.memory.purge(old.id)
    assert [fact.id for fact in talk.memory.history.fact_versions(MARKS[0])] == [new.id]
    talk.memory.purge(new.id)
    assert_gone(talk, old.id)  # key, tags and reason have left the ledger, too
    assert "forget" in [row.event for row in talk.memory.ledger(page=old.id)]
    assert talk.memory.archive("full again", key="vault").supersedes is None


def test_a_short_fact_is_gone_from_pins_and_recalled_facts(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000, prefetch=Prefetch(k=3))
    fact = talk.memory.archive("pin 77")
    talk.ask("my pin?", "hm")
    talk.memory.page_in(fact.id, pin=True)
    talk.ask("my pin?", "hm")
    talk.fill(8_000)
    talk.memory.purge(fact.id)
    assert not marks_in(tmp_path, b"pin 77")
    talk.ask("still there?", "yes")


def test_a_turn_is_gone_from_the_messages_behind_which_it_was_recalled(tmp_path: Path) -> None:
    talk = Talk(tmp_path, prefetch=Prefetch(k=3))
    step = talk.memory.record("user", f"The cello teacher: {SECRET}")
    talk.ask("And the cello?", "hm")
    assert [stay.page_id for stay in talk.memory.history.resident() if stay.how == "recalled"] == [step]
    talk.memory.purge(step)
    assert not marks_in(tmp_path)
    talk.ask("still there?", "yes")


def test_a_short_text_is_gone_from_the_core_block_it_was_moved_out_of(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core=CORE)
    talk.ask("hello", "hello")
    talk.memory.core_append("human", "PIN: Q7Z9")
    talk.memory.core_append("notes", "Q7Z9x is another")
    talk.ask("and?", "yes")
    talk.reopen(limits=replace(talk.memory.limits, max_output_tokens=1_000))  # a new epoch, whose preamble shows core
    talk.ask("so?", "yes")
    assert "Q7Z9" in core_of(talk.standin.requests[-1])
    fact = talk.memory.move_to_archive("human", "Q7Z9")
    talk.ask("and?", "yes")
    talk.memory.purge(fact.id)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"Q7Z9" not in path.read_bytes().replace(b"Q7Z9x", b""), path
    versions = talk.memory.history.core_versions("human")
    assert [version.block.value for version in versions][-2:] == ["PIN: [purged]", "PIN: "]
    assert not talk.memory.check()


def test_quotes_of_other_facts_stay(talk: Talk) -> None:
    first = talk.memory.archive(SECRET)
    others = [talk.memory.archive(f"harmless fact number {number}") for number in range(20)]
    assert others[10].id.startswith(first.id)
    talk.ask("read it", call("page_in", {"page_id": others[10].id}))
    talk.answer(f"{others[10].id}: {others[10].text}", memory_tool=True)
    step = talk.reply("Read.")
    talk.memory.purge(first.id)
    assert "harmless fact number 10" in talk.memory.page_text("s2")
    assert talk.memory.page_text(step) == "Read."


def test_a_fact_with_the_same_text_is_purged_too_and_keys_and_tags_that_quote_it_are_gone(talk: Talk) -> None:
    first, second = talk.memory.archive(SECRET), talk.memory.archive(SECRET, key="vault")
    third = talk.memory.archive(f"{SECRET} and more")
    keyed = talk.memory.archive("one", key=SECRET, tags=[SECRET, "x"])
    talk.memory.page_in(second.id, pin=True)
    assert talk.memory.purge(first.id) >= 2
    assert talk.memory.fact(second.id).purged
    assert talk.memory.fact(third.id).text == "[purged] and more"
    assert [(hit.page_id, hit.text) for hit in talk.memory.search_archive("one", tags=["x"])] == [(keyed.id, "one")]
    rows = {row.page_id: row for row in talk.memory.ledger(events=["purge"])}
    assert rows[first.id].detail["also"] == [second.id]
    assert first.id in rows[second.id].reason
    assert_gone(talk, first.id)
    with pytest.raises(NotFoundError, match="purged"):
        talk.memory.purge(second.id)


def test_a_fact_of_two_lines_is_gone_from_the_summary_that_quoted_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000, summarize=lambda ask: f"They said {SECRET}\nand more.")
    fact = talk.memory.archive(f"{SECRET}\nand more")
    talk.fill(8_000)
    talk.memory.purge(fact.id)
    talk.memory.close()
    assert not marks_in(tmp_path)


def reply_with_calls(talk: Talk) -> str:
    step = talk.ask("look", thinking(SECRET), SECRET, call("weather", {"city": SECRET}))
    talk.answer(SECRET)
    talk.reply("Well.")
    return step


def reply_with_repeated_ids(talk: Talk) -> str:
    step = ""
    for _ in range(2):
        talk.memory.append_user("look")
        message = talk.send(Reply(call("weather", {"city": SECRET})))
        message["content"][0]["id"] = "call_0"
        step = talk.memory.append_assistant(message)
        talk.answer()
        talk.reply("Well.")
    talk.memory.purge(step)
    return "s2"


def paused_reply(talk: Talk) -> str:
    step = talk.ask("news?", Reply.pause(SECRET))
    talk.reply(search_result(talk.memory.history.blocks_of(step)[-1]["id"]), "None.")
    return step


def spilled_message(talk: Talk) -> str:
    step = talk.memory.append_user(long_secret())
    talk.reply("Long.")
    page = talk.memory.ledger(events=["spill"])[0].page_id
    assert page
    talk.memory.page_in(page, pin=True, offset=300)
    talk.ask("so?", "so")
    talk.fill(4_000)
    return step


def recorded_message(talk: Talk) -> str:
    talk.memory.record("user", "harmless", name="Dana")
    return talk.memory.record("user", SECRET, name="Dana", session=f"about {SECRET}")


def evicted_message(talk: Talk) -> str:
    step = talk.memory.append_user(SECRET, name="Dana")
    talk.reply(thinking(f"he says {SECRET}"), f"You said: {SECRET}")
    talk.fill(9_000)
    return step


def long_request_in_digest_and_preamble(talk: Talk) -> str:
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
    return step


def long_fact_in_pieces(talk: Talk) -> str:
    fact = talk.memory.archive(long_secret())
    talk.ask("read it", call("page_in", {"page_id": fact.id}))
    first = talk.memory.page_in(fact.id, actor="agent")
    talk.answer(f"{fact.id}: {first.text}", memory_tool=True)
    talk.reply("Long.")
    talk.memory.page_in(fact.id, offset=first.next_offset or 0, pin=True)
    talk.fill(8_000)
    return fact.id


def fact_moved_out_of_core(talk: Talk) -> str:
    talk.memory.core_append("notes", long_secret(60))  # a long text is not cut in the ledger
    return talk.memory.move_to_archive("notes", long_secret(60)).id


BUILDERS = [
    reply_with_calls, reply_with_repeated_ids, paused_reply, spilled_message, recorded_message, evicted_message,
    long_request_in_digest_and_preamble, long_fact_in_pieces, fact_moved_out_of_core,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDERS)
def test_a_purged_page_is_gone_and_calls_stay_paired(tmp_path: Path, build: Callable[[Talk], str]) -> None:
    talk = Talk(tmp_path, window=8_000, core={"notes": BlockSpec(limit_tokens=700)})
    page = build(talk)
    assert marks_in(talk.directory)
    talk.memory.purge(page)
    assert_gone(talk, page, *forms(SECRET))
    assert not [stay for stay in talk.memory.history.resident() if stay.how == "pinned"]


@pytest.mark.parametrize("reply", [Reply.pause(SECRET), Reply(call("weather", {"city": SECRET}))])
def test_a_step_that_is_not_finished_can_be_purged(talk: Talk, reply: Reply) -> None:
    step = talk.ask("look", reply)
    talk.memory.purge(step)
    talk.answer()
    talk.reply("Well.")
    assert_gone(talk, step)


@pytest.mark.slow
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
    assert "sunny" in talk.memory.page_text("s2")


def test_an_image_is_gone_wherever_it_was_shown(talk: Talk) -> None:
    shown = image(1_234)
    talk.ask([{"type": "text", "text": "look"}, shown], "a harbour")
    talk.ask([{"type": "text", "text": "again"}, shown], "the same")
    talk.ask("show it", call("weather", {}))
    talk.memory.append_result(talk.memory.open_calls[0].id, [shown], memory_tool=True)
    talk.reply("there")
    talk.memory.purge("s1")
    assert_gone(talk, "s1", shown["source"]["data"].encode())


@given(text=st.text(min_size=1, max_size=60), before=st.text(max_size=10), after=st.text(max_size=10))
@settings(max_examples=40)
def test_any_text_is_gone_from_any_text_and_any_json_that_holds_it(text: str, before: str, after: str) -> None:
    secret = f"{text}{MARKS[0]}{text}"
    eraser = Eraser([secret])
    inner = [json.dumps({"x": secret}, ensure_ascii=flag) for flag in (True, False)]
    outer: Any = {"a": [f"{before}{secret}{after}", {"input": {f"{before}{secret}": inner}}]}
    assert MARKS[0] not in eraser.erase_in_column(json.dumps(outer), is_json=True)
    for plain in [f"{before}{secret}{after}", *inner]:
        assert MARKS[0] not in eraser.erase_in_column(plain, is_json=False)


@pytest.mark.parametrize(
    "word", ["text", "type", "user", "assistant", "tool_use", "weather", "content", "input", "ephemeral", "toolu_1"]
)
def test_a_word_that_blocks_are_made_of_leaves_the_others_whole(talk: Talk, word: str) -> None:
    talk.ask("And in Porto?", call("weather", {"note": f"{word}: {word}"}, call_id="toolu_1"))
    talk.answer("sunny")
    talk.reply("It is sunny.")
    blocks_of = talk.memory.history.blocks_of
    before = [blocks_of(step) for step in ("s1", "s3")]
    step = talk.memory.append_user(word)
    talk.reply("well")
    talk.memory.purge(step)
    assert [blocks_of(step) for step in ("s1", "s3")] == before
    made, result = blocks_of("s2")
    assert (made["type"], made["id"], made["name"], list(made["input"])) == ("tool_use", "toolu_1", "weather", ["note"])
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_1")
    assert talk.memory.search_recall("Porto")[0].who == "user"
    talk.ask("and then?", "go on")  # in a valid request
    assert talk.memory.check() == []


def test_inside_the_input_of_a_tool_any_name_may_be_a_text(talk: Talk) -> None:
    talk.ask("note it", call("weather", {"text": "Lisboa", "Lisboa": {"type": "Lisboa"}}))
    talk.answer()
    talk.reply("done")
    step = talk.memory.append_user("Lisboa")
    talk.reply("well")
    talk.memory.purge(step)
    arguments = talk.memory.history.blocks_of("s2")[0]["input"]
    assert arguments == {"text": "[purged]", "[purged]": {"type": "[purged]"}}


def test_what_cannot_be_purged_is_refused_and_nothing_changes(talk: Talk) -> None:
    talk.ask("hello", "hello")
    talk.memory.purge(talk.memory.archive(SECRET).id)
    before = len(talk.memory.ledger())
    for page, why in {
        "f9": "no fact", "s99": "no step", "x99": "no page", "f1": "purged", "y1": "not a page id",
    }.items():  # fmt: skip
        with pytest.raises(NotFoundError, match=why):
            talk.memory.purge(page)
    fact = talk.memory.archive("has two cats")
    with pytest.raises(RejectedError, match=r"within a transaction.*Purge after it"), talk.memory.transaction():
        talk.memory.purge(fact.id)
    assert talk.memory.fact(fact.id).text == "has two cats"
    assert len(talk.memory.ledger()) == before + 1
    talk.ask("still there?", "yes")
