"""Purging: afterwards no file of the agent holds the purged bytes, and everything else still works."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pager import BlockSpec, Memory, NotFound, Prefetch, StorageError, purging
from tests.standin import Reply, call, search_result, thinking
from tests.support import Talk, Words, database_of

# Whatever piece of the secret our own machinery cuts off, it holds one of these words.
MARKS = [f"zyzzogeton{number}q" for number in range(1_000)]
SECRET = f'The "vault" is {MARKS[0]},\n\tÇözüm \\ {MARKS[1]} — <core>{MARKS[2]}</core> 🗝'
ROOT = Path(__file__).parent.parent
CORE = {"human": BlockSpec(description="who", limit_tokens=400), "notes": BlockSpec()}


def marks_in(directory: Path, *more: bytes) -> dict[str, list[bytes]]:
    """Every file that holds a mark, in whatever case, or one of `more`, and what it holds."""
    found: dict[str, list[bytes]] = {}
    for path in sorted(each for each in directory.rglob("*") if each.is_file()):
        raw = path.read_bytes()
        held = [raw[max(0, at - 60) : at + 60] for at in [raw.lower().find(b"zyzzogeton")] if at >= 0]
        held += [each for each in more if each in raw]
        if held:
            found[str(path.relative_to(directory))] = held
    return found


def forms(text: str) -> list[bytes]:
    """A text as bytes in the ways in which a file may hold it."""
    escaped = [json.dumps(text, ensure_ascii=flag)[1:-1] for flag in (True, False)]
    return [each.encode() for each in {text, *escaped, json.dumps(escaped[0])[1:-1]}]


def assert_gone(talk: Talk, page: str, *more: bytes) -> None:
    assert not marks_in(talk.directory, *more)
    assert "purge" in [move.event for move in talk.memory.ledger(page=page)]
    with pytest.raises(NotFound, match="purged"):
        talk.memory.page_in(page)
    assert not talk.memory.check()
    talk.ask("and then?", thinking("hm"), "go on")
    talk.reopen()
    assert not talk.memory.check()
    talk.ask("still there?", "yes")
    assert not marks_in(talk.directory, *more)


def long_secret(words: int = 900) -> str:
    return " ".join(MARKS[number % len(MARKS)] for number in range(words))


# facts


def test_a_purged_fact_is_nowhere(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core=CORE, window=8_000)
    fact = talk.memory.archive(SECRET, key="vault", tags=["safe"])
    assert marks_in(tmp_path)  # the scan does find what is there
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id, *forms(SECRET))
    assert talk.memory.search_archive("vault") == []
    assert talk.memory.fact_versions("vault") == []
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
    assert [fact.id for fact in talk.memory.fact_versions("vault")] == [new.id]
    talk.memory.purge(new.id)
    assert talk.memory.archive("full again", key="vault").supersedes is None
    assert not talk.memory.check()


def test_a_fact_that_was_moved_out_of_core_leaves_no_piece_in_the_ledger(tmp_path: Path) -> None:
    """The ledger says what was edited; a long text is not cut there, where a piece of it could not be found again."""
    talk = Talk(tmp_path, core={"human": BlockSpec(limit_tokens=2_000)})
    text = long_secret(60)
    talk.memory.core_append("human", text)
    fact = talk.memory.move_out("human", text)
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
    while not any(stay.how == "request" for stay in talk.memory.resident()):
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
    server_call = talk.memory.blocks_of(paused)[-1]["id"]
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
    assert not [stay for stay in talk.memory.resident() if stay.how == "pinned"]


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
    eraser = purging.Eraser([secret])
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
    before = [talk.memory.blocks_of(step) for step in ("s1", "s3")]
    step = talk.memory.append_user(word)
    talk.reply("well")
    talk.memory.purge(step)
    assert [talk.memory.blocks_of(step) for step in ("s1", "s3")] == before
    made, result = talk.memory.blocks_of("s2")
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
    assert talk.memory.blocks_of("s2")[0]["input"] == {"text": "[purged]", "[purged]": {"type": "[purged]"}}


# vectors and files


def test_the_vector_is_gone_from_chroma_too(tmp_path: Path) -> None:
    embedder = Words()
    talk = Talk(tmp_path, embedder=embedder)
    with talk.memory.transaction():
        for number in range(300):
            talk.memory.archive(f"fact {number} about topic {number % 7}", neighbours=0)
    fact = talk.memory.archive(SECRET)
    with talk.memory.transaction():
        for number in range(300):
            talk.memory.archive(f"later fact {number}", neighbours=0)
    assert talk.memory.search_archive("vault")[0].page_id == fact.id
    vector = embedder.embed([SECRET])[0].tobytes()
    assert any("chroma" in name for name in marks_in(tmp_path, vector))
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id, vector)
    assert talk.memory.search_archive("topic 3")[0].parts["meaning"] > 0.3


def test_the_vector_is_gone_from_chroma_also_when_meaning_is_off(tmp_path: Path) -> None:
    """The directory holds an index from a time with an embedder; this process has none."""
    embedder = Words()
    talk = Talk(tmp_path, embedder=embedder)
    with talk.memory.transaction():
        for number in range(260):
            talk.memory.archive(f"fact {number}", neighbours=0)
    fact = talk.memory.archive(SECRET)
    talk.memory.search_archive("vault")
    with talk.memory.transaction():
        for number in range(260):
            talk.memory.archive(f"later fact {number}", neighbours=0)
    talk.memory.search_archive("vault")
    vector = embedder.embed([SECRET])[0].tobytes()
    talk.reopen(embedder=None)
    assert any("chroma" in name for name in marks_in(tmp_path, vector))
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id, vector)
    talk.reopen(embedder=embedder)
    assert talk.memory.search_archive("fact 7")
    assert not talk.memory.check()


def test_facts_that_quoted_it_are_found_by_meaning_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path, embedder=Words())
    fact = talk.memory.archive(SECRET)
    quoting = talk.memory.archive(f"a window seat, and {SECRET}")
    talk.memory.purge(fact.id)
    hit = talk.memory.search_archive("window seat")[0]
    assert (hit.page_id, "meaning" in hit.parts) == (quoting.id, True)
    assert_gone(talk, fact.id)


def test_files_that_were_set_aside_are_searched_too(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    fact = talk.memory.archive(SECRET)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "broken.json").write_text(f"not json: {SECRET}", encoding="utf-8")
    (inbox / "harmless.json").write_text("not json", encoding="utf-8")
    talk.memory.take_inbox()
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)
    assert [path.name for path in (inbox / "rejected").iterdir()] == ["harmless.json"]


# crashes and readers


def test_a_purge_that_was_cut_short_is_finished_at_the_next_opening(tmp_path: Path) -> None:
    """Killed when the database is scrubbed, and nothing else is done yet."""
    script = """
import os, signal, sys
from pathlib import Path
from pager import Memory, purging
from tests.support import HandClock, Words

memory = Memory.open(Path(sys.argv[1]), embedder=Words(), clock=HandClock())
for number in range(300):
    memory.archive(f"fact {number}", neighbours=0)
memory.archive(sys.argv[2])
memory.search_archive("vault")
memory.append_user(sys.argv[2])
purging.purge(memory._store, memory._ledger, memory._pages, "f301", "person")
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path), SECRET], check=False, cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert marks_in(tmp_path)
    talk = Talk(tmp_path, embedder=Words())
    assert not marks_in(tmp_path, *forms(SECRET), Words().embed([SECRET])[0].tobytes())
    assert not talk.memory.check()
    assert talk.memory.search_archive("fact 12")


def test_a_reader_in_the_way_is_named_and_the_next_opening_finishes(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    fact = talk.memory.archive(SECRET)
    reader = sqlite3.connect(tmp_path / "pager.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM facts").fetchone()
    database_of(talk.memory).run("PRAGMA busy_timeout = 20")
    with pytest.raises(StorageError, match=r"Close the readers .* it finishes by itself"):
        talk.memory.purge(fact.id)
    reader.close()
    talk.reopen()
    assert not marks_in(tmp_path)
    assert_gone(talk, fact.id)


def test_an_open_reader_of_ours_is_not_in_the_way(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    fact = talk.memory.archive(SECRET)
    with Memory.read(tmp_path, clock=talk.clock) as reading:
        assert reading.search_archive("vault")
        talk.memory.purge(fact.id)
        assert reading.search_archive("vault") == []
    assert_gone(talk, fact.id)


def test_what_cannot_be_purged_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("hello", "hello")
    fact = talk.memory.archive(SECRET)
    talk.memory.purge(fact.id)
    before = len(talk.memory.ledger())
    for page, why in (
        ("f9", "no fact"),
        ("s99", "no step"),
        ("x99", "no page"),
        ("f1", "purged"),
        ("y1", "not a page id"),
    ):
        with pytest.raises(NotFound, match=why):
            talk.memory.purge(page)
    assert len(talk.memory.ledger()) == before
    talk.ask("still there?", "yes")


def test_a_purge_within_a_transaction_of_ours_is_refused_before_it_begins(tmp_path: Path) -> None:
    """It must erase files, which no transaction takes back."""
    talk = Talk(tmp_path)
    fact = talk.memory.archive("the vault is empty")
    with pytest.raises(StorageError, match="transaction"), talk.memory.transaction():
        talk.memory.purge(fact.id)
    assert talk.memory.fact(fact.id).text == "the vault is empty"
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)
