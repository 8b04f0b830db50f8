"""Purging beyond the database: Chroma, the inbox, readers in the way."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pager import BlockSpec, StorageError
from pager.upkeep.inbox import send_command
from tests.support import Talk, Words, database_of
from tests.support.secret import MARKS, SECRET, assert_gone, forms, marks_in

QUOTES = f'It\'s "{MARKS[0]}"\n\\ é'
CORE = {"human": BlockSpec(limit_tokens=400)}


@pytest.mark.slow
@pytest.mark.parametrize("has_embedder", [True, False])
def test_the_vector_is_gone_from_chroma(tmp_path: Path, has_embedder: bool) -> None:
    embedder = Words()
    talk = Talk(tmp_path, embedder=embedder)
    with talk.memory.transaction():
        for number in range(300):
            talk.memory.archive(f"fact {number} about topic {number % 7}")
    fact = talk.memory.archive(SECRET)
    talk.memory.embed_pending()
    with talk.memory.transaction():
        for number in range(300):
            talk.memory.archive(f"later fact {number}")
    talk.memory.embed_pending()
    vector = embedder.embed([SECRET])[0].tobytes()
    assert any("chroma" in name for name in marks_in(tmp_path, vector))
    if not has_embedder:
        talk.reopen(embedder=None)
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id, vector)
    talk.reopen(embedder=embedder)
    assert talk.memory.search_archive("topic 3")[0].parts["meaning"] > 0.3
    assert not talk.memory.check()
    talk.memory.close()


def test_facts_that_quoted_it_are_found_by_meaning_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path, embedder=Words())
    fact = talk.memory.archive(SECRET)
    quoting = talk.memory.archive(f"a window seat, and {SECRET}")
    talk.memory.purge(fact.id)
    hit = talk.memory.search_archive("window seat")[0]
    assert (hit.page_id, "meaning" in hit.parts) == (quoting.id, True)
    assert_gone(talk, fact.id)


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


def test_pending_commands_are_erased_and_half_written_files_deleted(tmp_path: Path) -> None:
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
    assert "Remember: [purged]" in talk.memory.page_text("s1")
    assert talk.memory.page_text("s2") == "hello"


def test_files_that_were_set_aside_are_deleted_and_their_errors_erased(talk: Talk, tmp_path: Path) -> None:
    text = " ".join(MARKS[:30])
    fact = talk.memory.archive(text)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "wrong.json").write_text(f'{{"kind": "message", "arguments": {{"text": ["{text}"]}}}}', encoding="utf-8")
    (inbox / "broken.json").write_text(f"not json: {text}", encoding="utf-8")
    (inbox / "harmless.json").write_text("not json", encoding="utf-8")
    talk.memory.process_inbox()
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)
    assert [path.name for path in (inbox / "rejected").iterdir()] == ["harmless.json"]


@pytest.mark.slow
def test_a_reader_in_the_way_is_an_error_and_the_next_opening_finishes(tmp_path: Path) -> None:
    """Of a vector in the index nothing is left either. tests/crash/test_kill.py kills the process instead."""
    talk = Talk(tmp_path, embedder=Words())
    with talk.memory.transaction():
        for number in range(300):
            talk.memory.archive(f"fact {number}")
        fact = talk.memory.archive(SECRET)
    talk.memory.embed_pending()
    vector = Words().embed([SECRET])[0].tobytes()
    assert any("chroma" in name for name in marks_in(tmp_path, vector))
    with closing(sqlite3.connect(tmp_path / "pager.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM facts").fetchone()
        database_of(talk.memory).run("PRAGMA busy_timeout = 20")
        with pytest.raises(StorageError, match=r"Close the readers .* it finishes by itself"):
            talk.memory.purge(fact.id)
    talk.reopen()
    assert_gone(talk, fact.id, *forms(SECRET), vector)
    assert talk.memory.search_archive("fact 12")
    talk.memory.close()
