"""Purging in the corners: what errors quote, what waits in the inbox, notes, short texts, facts that say the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pager import BlockSpec, NotFoundError, RejectedError, tokens
from pager.upkeep.inbox import send_command
from tests.standin import call
from tests.support import Talk
from tests.support.messages import image
from tests.support.secret import MARKS, SECRET, assert_gone, forms, marks_in

QUOTES = f'It\'s "{MARKS[0]}"\n\\ é'
CORE = {"human": BlockSpec(limit_tokens=400)}


@pytest.mark.parametrize("text", [SECRET, QUOTES, QUOTES.replace('"', ""), QUOTES.replace("'", "")])
def test_what_a_refusal_quoted_is_gone(tmp_path: Path, text: str) -> None:
    talk = Talk(tmp_path, core=CORE)
    fact = talk.memory.archive(text)
    for old in (text, f"{text}'", f'{text}"'):
        send_command(tmp_path, "core_replace", {"block": "human", "old_text": old, "new_text": ""}, talk.clock)
    assert talk.memory.process_inbox() == 3
    assert marks_in(tmp_path)
    assert talk.memory.purge(fact.id) > 3
    assert_gone(talk, fact.id)


def test_commands_that_wait_are_scrubbed_and_what_was_left_half_written_goes(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core=CORE)
    fact = talk.memory.archive(SECRET)
    send_command(tmp_path, "message", {"text": f"Remember: {SECRET}"}, talk.clock)
    send_command(tmp_path, "archive", {"text": SECRET}, talk.clock)
    send_command(tmp_path, "message", {"text": "hello"}, talk.clock)
    inbox = tmp_path / "inbox"
    (inbox / "old.tmp").write_text(SECRET[:20] + MARKS[0][:14], encoding="utf-8")
    os.utime(inbox / "old.tmp", (1, 1))
    (inbox / "new.tmp").write_text(f"half {SECRET}", encoding="utf-8")
    (inbox / "other.tmp").write_text("half", encoding="utf-8")
    (inbox / "rejected" / "folder").mkdir(parents=True)
    (inbox / "rejected" / "folder" / "deep").write_text(SECRET, encoding="utf-8")
    talk.memory.purge(fact.id)
    assert not marks_in(tmp_path, *forms(SECRET))
    assert sorted(path.name for path in inbox.glob("*.tmp")) == ["other.tmp"]
    assert talk.memory.process_inbox() == 2
    assert "Remember: [purged]" in talk.memory.page("s1")
    assert talk.memory.page("s2") == "hello"


def test_what_is_told_of_a_file_that_was_no_command_goes_with_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    text = " ".join(MARKS[:30])
    fact = talk.memory.archive(text)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "wrong.json").write_text(f'{{"kind": "message", "arguments": {{"text": ["{text}"]}}}}', encoding="utf-8")
    talk.memory.process_inbox()
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)


def test_a_note_is_scrubbed_and_what_is_no_note_stays(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    fact = talk.memory.archive(SECRET)
    talk.memory.save_value("task", f"find {SECRET}")
    talk.memory.save_value("other", "kept")
    talk.memory.purge(fact.id)
    assert (talk.memory.load_value("task"), talk.memory.load_value("other")) == ("find [purged]", "kept")
    assert_gone(talk, fact.id)


def test_key_tags_and_reason_of_a_purged_fact_leave_the_ledger(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    fact = talk.memory.archive("something plain", key=MARKS[0], tags=[MARKS[1]])
    talk.memory.archive("something newer", key=MARKS[0])
    talk.memory.forget(fact.id, MARKS[2])
    talk.memory.purge("f2")
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)
    assert "forget" in [row.event for row in talk.memory.ledger(page=fact.id)]


def test_a_core_block_that_quoted_it_is_counted_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core={"human": BlockSpec(limit_tokens=100)})
    fact = talk.memory.archive(SECRET)
    talk.memory.core_append("human", f"Note: {SECRET} (important)")
    talk.memory.purge(fact.id)
    assert talk.memory.core()[0].used_tokens == tokens.total(talk.memory.core()[0].value)
    assert not talk.memory.check()


def test_a_short_text_is_gone_from_the_core_block_it_was_moved_out_of(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core={**CORE, "notes": BlockSpec(limit_tokens=400)})
    talk.ask("hello", "hello")
    talk.memory.core_append("human", "PIN: Q7Z9")
    talk.memory.core_append("notes", "Q7Z9x is another")
    talk.ask("and?", "yes")
    talk.reopen(limits=talk.memory.limits)
    fact = talk.memory.move_to_archive("human", "Q7Z9")
    talk.ask("and?", "yes")
    talk.memory.purge(fact.id)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"Q7Z9" not in path.read_bytes().replace(b"Q7Z9x", b""), path
    assert [block.value for block in talk.memory.history.core_versions("human")][-2:] == ["PIN: [purged]", "PIN: "]
    assert not talk.memory.check()


def test_a_fact_that_says_the_same_is_purged_too_and_said_so(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    first, second = talk.memory.archive(SECRET), talk.memory.archive(SECRET, key="vault")
    third = talk.memory.archive(f"{SECRET} and more")
    talk.memory.page_in(second.id, pin=True)
    assert talk.memory.purge(first.id) >= 2
    assert talk.memory.fact(second.id).purged
    assert talk.memory.fact(third.id).text == "[purged] and more"
    told = {row.page_id: row for row in talk.memory.ledger(events=["purge"])}
    assert told[first.id].detail["also"] == [second.id]
    assert first.id in told[second.id].reason
    assert_gone(talk, first.id)
    with pytest.raises(NotFoundError, match="purged"):
        talk.memory.purge(second.id)


def test_a_purge_counts_also_what_stands_in_one_place_only(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    assert talk.memory.purge(talk.memory.archive("Z").id) == 1


def test_a_purge_within_a_transaction_does_nothing(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    fact = talk.memory.archive(SECRET)
    send_command(tmp_path, "message", {"text": SECRET}, talk.clock)
    with talk.memory.transaction(), pytest.raises(RejectedError, match="within a transaction") as caught:
        talk.memory.purge(fact.id)
    assert "Purge after it" in str(caught.value)
    assert talk.memory.fact(fact.id).text == SECRET
    assert talk.memory.process_inbox() == 1
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)


def test_an_image_is_gone_wherever_it_was_shown(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    shown = image(1_234)
    data = shown["source"]["data"].encode()
    talk.ask([{"type": "text", "text": "look"}, shown], "a harbour")
    talk.ask([{"type": "text", "text": "again"}, shown], "the same")
    talk.ask("show it", call("weather", {}))
    talk.memory.append_result(talk.memory.open_calls[0].id, [shown], memory_tool=True)
    talk.reply("there")
    talk.memory.purge("s1")
    talk.ask("and now?", "gone")
    talk.memory.close()
    assert data not in b"".join(file.read_bytes() for file in tmp_path.glob("pager.db*"))


def test_a_fact_of_two_lines_is_gone_from_the_summary_that_quoted_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=6_000, summarize=lambda ask: f"They said {SECRET}\nand more.")
    fact = talk.memory.archive(f"{SECRET}\nand more")
    talk.fill(8_000)
    talk.memory.purge(fact.id)
    talk.memory.close()
    assert not marks_in(tmp_path)
