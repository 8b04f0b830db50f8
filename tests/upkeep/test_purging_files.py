"""Purging beyond the database: vectors in Chroma, files set aside, crashes in the middle, readers in the way."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pager import MemoryReader, NotFoundError, RejectedError, StorageError
from tests.support import Talk, Words, database_of
from tests.support.secret import SECRET, assert_gone, forms, marks_in

ROOT = Path(__file__).parents[2]


# vectors and files


def test_the_vector_is_gone_from_chroma_too(tmp_path: Path) -> None:
    embedder = Words()
    talk = Talk(tmp_path, embedder=embedder)
    with talk.memory.transaction():
        for number in range(300):
            talk.memory.archive(f"fact {number} about topic {number % 7}")
    fact = talk.memory.archive(SECRET)
    with talk.memory.transaction():
        for number in range(300):
            talk.memory.archive(f"later fact {number}")
    talk.memory.embed_pending()
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
            talk.memory.archive(f"fact {number}")
    fact = talk.memory.archive(SECRET)
    talk.memory.embed_pending()
    with talk.memory.transaction():
        for number in range(260):
            talk.memory.archive(f"later fact {number}")
    talk.memory.embed_pending()
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
    talk.memory.process_inbox()
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)
    assert [path.name for path in (inbox / "rejected").iterdir()] == ["harmless.json"]


# crashes and readers


def test_a_purge_that_was_cut_short_is_finished_at_the_next_opening(tmp_path: Path) -> None:
    """Killed when the database is scrubbed, and nothing else is done yet."""
    script = """
import os, signal, sys
from pathlib import Path
from pager import Memory
from pager.upkeep import purge as purging
from tests.support import HandClock, Words

memory = Memory.open(Path(sys.argv[1]), embedder=Words(), clock=HandClock())
for number in range(300):
    memory.archive(f"fact {number}")
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
    with MemoryReader.open(tmp_path, clock=talk.clock) as reading:
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
        with pytest.raises(NotFoundError, match=why):
            talk.memory.purge(page)
    assert len(talk.memory.ledger()) == before
    talk.ask("still there?", "yes")


def test_a_purge_within_a_transaction_of_ours_is_refused_before_it_begins(tmp_path: Path) -> None:
    """It must erase files, which no transaction takes back."""
    talk = Talk(tmp_path)
    fact = talk.memory.archive("the vault is empty")
    with pytest.raises(RejectedError, match="within a transaction"), talk.memory.transaction():
        talk.memory.purge(fact.id)
    assert talk.memory.fact(fact.id).text == "the vault is empty"
    talk.memory.purge(fact.id)
    assert_gone(talk, fact.id)
