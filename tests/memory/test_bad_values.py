"""Values of a wrong kind, in every place that takes one: an error that says what to give, and nothing changed."""

import math
import os
import sqlite3
from contextlib import closing
from datetime import date, timedelta
from operator import attrgetter
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
from tests.support import HandClock, Talk, Words, undone

pytestmark = pytest.mark.slow

HALF = "\ud800"
ODD: list[Any] = [
    None, 0, -1, 2**63, -(2**63) - 1, 10**400, math.nan, math.inf, 1.5, True, b"x", [], {}, (), set(), object(), "",
    "\0", HALF, "x" * 100_000, "s" + "9" * 5000, "f²", ["\0"], [HALF], [None], [{}], date(1, 1, 1), timedelta(1),
    lambda: 1, Exception("x"), range(3), complex(1, 2),
]  # fmt: skip
# Methods that take a value first, and methods with arguments among which "?" is that value.
FIRST_VALUE = [
    *("append_user", "append_assistant", "begin_call", "hold_call", "mark_done", "report_too_long", "record_many"),
    *("archive", "purge", "search_archive", "page_in", "page_out", "load_value", "core", "fact", "page_text"),
    *("embed_pending", "history.core_version_number", "history.core_versions", "history.fact_versions"),
    *("history.blocks_of", "history.residencies", "history.counter", "history.rebuild"),
    *("inspect.newest_facts", "inspect.most_used_facts", "inspect.never_used_facts"),
]
ARGUMENTS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("append_user", ["x"], {"name": "?"}),
    ("append_assistant", [{"content": "x", "stop_reason": "end_turn", "model": "?"}], {}),
    ("append_result", ["?", "x"], {}),
    ("embed_pending", [], {"stop": "?"}),
    ("answer_interrupted", [], {"rerun": "?"}),
    ("record", ["?", "?"], {}),
    *(("archive", ["x"], {name: "?"}) for name in ("key", "tags", "valid_from", "valid_until", "actor")),
    ("record", ["user", "x"], {"source": "?"}),
    ("purge_expired", ["?"], {}),
    ("forget", ["?", "x"], {}),
    ("forget", ["f1", "?"], {}),
    *(("search_archive", ["x"], {name: "?"}) for name in ("limit", "as_of")),
    ("search_recall", ["?"], {"limit": 3}),
    *(("search_recall", ["x"], {name: "?"}) for name in ("limit", "actor")),
    ("core_append", ["?", "?"], {}),
    ("core_replace", ["human", "?", "?"], {}),
    *(("page_in", ["f1"], {name: "?"}) for name in ("pin", "offset")),
    ("move_to_archive", ["?", "?"], {}),
    ("save_value", ["?", "?"], {}),
    ("ledger", [], {"page": "?", "events": "?"}),
    ("ledger", [], {"after": "?", "limit": "?"}),
    *((name, ["?"], {}) for name in FIRST_VALUE),
]


def filled_in(template: Any, odd: Any) -> Any:
    """Return a copy of the template with the odd value in every place of "?"."""
    if isinstance(template, dict):
        return {name: filled_in(value, odd) for name, value in template.items()}
    if isinstance(template, list):
        return [filled_in(value, odd) for value in template]
    return odd if template == "?" else template


@pytest.mark.slow
@pytest.mark.parametrize(("method", "positional", "named"), ARGUMENTS)
def test_it_is_taken_or_refused_in_words_that_are_short(
    tmp_path: Path, method: str, positional: list[Any], named: dict[str, Any]
) -> None:
    with Memory.open(tmp_path, embedder=None, core={"human": BlockSpec()}, clock=HandClock()) as memory:
        memory.archive("likes window seats", key="seat")
        call = attrgetter(method)(memory)
        for odd in ODD:
            memory.append_user("hello")
            memory.request()
            before = memory.ledger()
            try:
                call(*filled_in(positional, odd), **filled_in(named, odd))
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
        ("limits", 5), ("prefetch", 5), ("count_tokens", 5), ("summarize", 5), ("clock", 5),
        ("model", HALF), ("thinking", 5), ("tools", ["x"]), ("tools", [{}]), ("tools", [{"name": "a"}, {"name": "a"}]),
        ("tools", [{"name": "a b"}]), ("tools", None), ("instructions", None), ("model", None), ("cache_ttl", "10m"),
        ("embedder", "defalt"), ("embedder", object()), ("core", {"human": {"value": "x"}}), ("core", [1]),
        ("core", {"human": BlockSpec(limit_tokens=10**30)}),
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


def test_a_request_that_was_undone_waits_for_no_reply(talk: Talk) -> None:
    talk.memory.append_user("hello")
    with undone(talk.memory):
        talk.memory.request()
    talk.memory.append_assistant("hello")
    talk.ask("and again")
    assert not talk.memory.check()


def test_what_is_not_committed_is_not_checked(talk: Talk) -> None:
    with pytest.raises(RejectedError, match="after the transaction"), talk.memory.transaction():
        talk.memory.check()


def test_a_command_under_a_name_that_is_no_text_takes_effect(talk: Talk, tmp_path: Path) -> None:
    send_command(tmp_path, "message", {"text": "from elsewhere"}, talk.clock)
    file = next((tmp_path / "inbox").glob("*.json"))
    file.rename(os.fsdecode(os.fsencode(file.parent) + b"/\xff.json"))
    talk.ask("hello")
    assert "from elsewhere" in talk.memory.page_text("s1")
    assert list((tmp_path / "inbox").glob("*.json")) == []


def go_on(directory: Path) -> None:
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
    with Memory.open(tmp_path, embedder=None, clock=HandClock()) as memory:
        memory.append_user("hello")
        memory.request()
        memory.append_assistant({"content": "hi", "stop_reason": "end_turn", "usage": {"input_tokens": 700}})
    with closing(sqlite3.connect(tmp_path / "pager.db")) as database:
        database.executescript(sql)
    for _ in range(2):
        with pytest.raises(StorageError, match="estore a backup"):
            go_on(tmp_path)


def test_a_memory_whose_database_is_gone_is_not_begun_anew_without_a_word(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        with memory.transaction():
            for number in range(300):
                memory.archive(f"topic{number}")
        memory.search_archive("topic3")
    (tmp_path / "pager.db").unlink()
    with pytest.raises(StorageError, match="Restore a backup"):
        Memory.open(tmp_path, embedder=Words())


def test_a_lock_is_let_go_when_its_holder_cannot_be_named(tmp_path: Path) -> None:
    class Broken(HandClock):
        def now(self) -> Any:
            raise RuntimeError("no time")

    with pytest.raises(RuntimeError):
        Memory.open(tmp_path, embedder=None, clock=Broken())
    with Memory.open(tmp_path, embedder=None), pytest.raises(InUseError):
        Memory.open(tmp_path, embedder=None)
