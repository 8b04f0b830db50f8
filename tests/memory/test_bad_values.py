"""Values of a wrong kind, in every place that takes one: an error that says what to give, and nothing changed."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from pager import (
    BlockSpec,
    InUseError,
    Memory,
    MemoryReader,
    PagerError,
    Prefetch,
    RejectedError,
    StorageError,
    send_command,
)
from tests.support import HandClock, Talk, Words

pytestmark = pytest.mark.slow

HALF = "\ud800"
ODD: list[Any] = [
    None, 0, -1, 2**63, -(2**63) - 1, 10**400, math.nan, math.inf, 1.5, True, b"x", [], {}, (), set(), object(), "",
    "\0", HALF, "x" * 100_000, "s" + "9" * 5000, "f²", ["\0"], [HALF], [None], [{}], date(1, 1, 1), timedelta(1),
    lambda: 1, Exception("x"), range(3), complex(1, 2),
]  # fmt: skip
CALLS: dict[str, Callable[[Memory, Any], object]] = {
    "append_user": lambda memory, odd: memory.append_user(odd),
    "its name": lambda memory, odd: memory.append_user("x", name=odd),
    "append_assistant": lambda memory, odd: memory.append_assistant(odd),
    "a model": lambda memory, odd: memory.append_assistant({"content": "x", "stop_reason": "end_turn", "model": odd}),
    "begin_call": lambda memory, odd: memory.begin_call(odd),
    "hold_call": lambda memory, odd: memory.hold_call(odd),
    "append_result": lambda memory, odd: memory.append_result(odd, "x"),
    "answer_interrupted": lambda memory, odd: memory.answer_interrupted(rerun=odd),
    "mark_done": lambda memory, odd: memory.mark_done(odd),
    "report_too_long": lambda memory, odd: memory.report_too_long(odd),
    "record": lambda memory, odd: memory.record(odd, odd),
    "record_many": lambda memory, odd: memory.record_many(odd),
    "archive": lambda memory, odd: memory.archive(odd),
    "a key": lambda memory, odd: memory.archive("x", key=odd),
    "tags": lambda memory, odd: memory.archive("x", tags=odd),
    "valid_from": lambda memory, odd: memory.archive("x", valid_from=odd),
    "an actor": lambda memory, odd: memory.archive("x", actor=odd),
    "forget": lambda memory, odd: memory.forget(odd, "x"),
    "a reason": lambda memory, odd: memory.forget("f1", odd),
    "purge": lambda memory, odd: memory.purge(odd),
    "search_archive": lambda memory, odd: memory.search_archive(odd),
    "a limit": lambda memory, odd: memory.search_archive("x", limit=odd),
    "as_of": lambda memory, odd: memory.search_archive("x", as_of=odd),
    "search_recall": lambda memory, odd: memory.search_recall(odd, limit=3),
    "its limit": lambda memory, odd: memory.search_recall("x", limit=odd),
    "its actor": lambda memory, odd: memory.search_recall("x", actor=odd),
    "core_append": lambda memory, odd: memory.core_append(odd, odd),
    "core_replace": lambda memory, odd: memory.core_replace("human", odd, odd),
    "page_in": lambda memory, odd: memory.page_in(odd),
    "pin": lambda memory, odd: memory.page_in("f1", pin=odd),
    "an offset": lambda memory, odd: memory.page_in("f1", offset=odd),
    "page_out": lambda memory, odd: memory.page_out(odd),
    "move_to_archive": lambda memory, odd: memory.move_to_archive(odd, odd),
    "save_value": lambda memory, odd: memory.save_value(odd, odd),
    "note": lambda memory, odd: memory.load_value(odd),
    "core": lambda memory, odd: memory.core(odd),
    "core_version_number": lambda memory, odd: memory.history.core_version_number(odd),
    "core_versions": lambda memory, odd: memory.history.core_versions(odd),
    "fact": lambda memory, odd: memory.fact(odd),
    "fact_versions": lambda memory, odd: memory.history.fact_versions(odd),
    "newest_facts": lambda memory, odd: memory.inspect.newest_facts(odd),
    "most_used_facts": lambda memory, odd: memory.inspect.most_used_facts(odd),
    "never_used_facts": lambda memory, odd: memory.inspect.never_used_facts(odd),
    "last_fact": lambda memory, odd: memory.history.last_fact(odd),
    "page": lambda memory, odd: memory.page(odd),
    "blocks_of": lambda memory, odd: memory.history.blocks_of(odd),
    "ledger of": lambda memory, odd: memory.ledger(page=odd, events=odd),
    "ledger after": lambda memory, odd: memory.ledger(after=odd, limit=odd),
    "stays": lambda memory, odd: memory.history.residencies(odd),
    "counter": lambda memory, odd: memory.history.counter(odd),
    "rebuild": lambda memory, odd: memory.history.rebuild(odd),
}


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_it_is_taken_or_refused_in_words_that_are_short(tmp_path: Path, call: Callable[[Memory, Any], object]) -> None:
    with Memory.open(tmp_path, embedder=None, core={"human": BlockSpec()}, clock=HandClock()) as memory:
        memory.archive("likes window seats", key="seat")
        for odd in ODD:
            memory.append_user("hello")
            memory.request()
            before = memory.ledger()
            try:
                call(memory, odd)
            except PagerError as error:
                assert 10 < len(str(error)) <= 3_003
                assert memory.ledger()[: len(before)] == before
                assert not [row for row in memory.ledger()[len(before) :] if row.event != "error"]
        assert not memory.check()
        memory.append_user("hello")
        memory.request()


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("limits", 5), ("prefetch", 5), ("count_tokens", 5), ("summarize", 5), ("index", 5), ("clock", 5),
        ("model", HALF), ("thinking", 5), ("tools", ["x"]), ("tools", [{}]), ("tools", [{"name": "a"}, {"name": "a"}]),
        ("tools", [{"name": "a b"}]), ("core", {"human": BlockSpec(limit_tokens=10**30)}),
        ("core", {"human": BlockSpec(file="\0")}), ("core", {HALF: BlockSpec()}),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_and_leaves_the_directory_free(tmp_path: Path, name: str, odd: Any) -> None:
    with pytest.raises(PagerError):
        Memory.open(tmp_path, **{"embedder": None, name: odd})
    Memory.open(tmp_path, embedder=None).close()


@pytest.mark.parametrize("odd", [None, 5, "", b"x", "\0", HALF, "x" * 5000, []])
def test_a_path_that_is_none_is_refused(tmp_path: Path, odd: Any) -> None:
    with pytest.raises(PagerError):
        Memory.open(odd, embedder=None)
    with pytest.raises(PagerError):
        MemoryReader.open(odd)
    with pytest.raises(PagerError):
        send_command(odd, "message", {"text": "x"}, HandClock())
    with Memory.open(tmp_path, embedder=None) as memory, pytest.raises(PagerError):
        memory.export(odd)


@pytest.mark.parametrize("odd", [{"k": "x"}, {"k": -1}, {"budget_tokens": 1.5}])
def test_a_wrong_prefetch_is_refused(odd: Any) -> None:
    with pytest.raises(RejectedError):
        Prefetch(**odd)


def test_a_request_that_was_undone_waits_for_no_reply(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.memory.append_user("hello")
    with suppress(RuntimeError), talk.memory.transaction():
        talk.memory.request()
        raise RuntimeError
    talk.memory.append_assistant("hello")
    talk.ask("and again")
    assert not talk.memory.check()


def test_what_is_not_committed_is_not_checked(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    with pytest.raises(RejectedError, match="after the transaction"), talk.memory.transaction():
        talk.memory.check()


def test_a_command_under_a_name_that_is_no_text_takes_effect(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    send_command(tmp_path, "message", {"text": "from elsewhere"}, talk.clock)
    file = next((tmp_path / "inbox").glob("*.json"))
    file.rename(os.fsdecode(os.fsencode(file.parent) + b"/\xff.json"))
    talk.ask("hello")
    assert "from elsewhere" in talk.memory.page("s1")
    assert list((tmp_path / "inbox").glob("*.json")) == []


# files


def damaged(directory: Path, sql: str) -> None:
    with Memory.open(directory, embedder=None, clock=HandClock()) as memory:
        memory.append_user("hello")
        memory.request()
        memory.append_assistant({"content": "hi", "stop_reason": "end_turn", "usage": {"input_tokens": 700}})
    with closing(sqlite3.connect(directory / "pager.db")) as database:
        database.executescript(sql)


def use(directory: Path) -> None:
    with Memory.open(directory, embedder=None) as memory:
        memory.append_user("again")
        memory.request()


@pytest.mark.parametrize(
    "sql",
    [
        "PRAGMA user_version = 0",
        "PRAGMA user_version = -1",
        "DROP TABLE pins",
        "UPDATE epochs SET settings = '{'",
        "UPDATE epochs SET tools = cast(x'ff' AS TEXT)",
        "UPDATE tokenizers SET state = '{'",
        'UPDATE tokenizers SET state = \'{"seen": 1, "products": [[1]]}\'',
    ],
)
def test_a_damaged_database_is_told_as_such(tmp_path: Path, sql: str) -> None:
    damaged(tmp_path, sql)
    for _ in range(2):
        with pytest.raises(StorageError, match="estore a backup"):
            use(tmp_path)


def test_a_memory_whose_database_is_gone_is_not_begun_anew_without_a_word(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        with memory.transaction():
            for number in range(300):
                memory.archive(f"topic{number}")
        memory.search_archive("topic3")
    (tmp_path / "pager.db").unlink()
    with pytest.raises(StorageError, match="Restore a backup"):
        Memory.open(tmp_path, embedder=Words())


@pytest.mark.parametrize("way", ["file", "link", "state"])
def test_what_stands_in_the_index_s_place_is_cleared_away(tmp_path: Path, way: str) -> None:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        place = tmp_path / "chroma"
        if way == "file":
            place.write_text("no directory")
        elif way == "link":
            place.symlink_to(place)
        else:
            (place / "state.json" / "inner").mkdir(parents=True)
        with memory.transaction():
            for number in range(300):
                memory.archive(f"topic{number}")
        memory.embed_pending()
        assert memory.search_archive("topic3", limit=1)[0].page_id == "f4"
        assert (place / "state.json").is_file()
        assert not memory.check()


def test_a_lock_is_let_go_when_its_holder_cannot_be_named(tmp_path: Path) -> None:
    class Broken(HandClock):
        def now(self) -> Any:
            raise RuntimeError("no time")

    with pytest.raises(RuntimeError):
        Memory.open(tmp_path, embedder=None, clock=Broken())
    with Memory.open(tmp_path, embedder=None), pytest.raises(InUseError):
        Memory.open(tmp_path, embedder=None)
