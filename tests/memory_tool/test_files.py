"""The provider's memory tool over the tiers, where they say more than files do: paging, limits, days, long texts."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pager import BlockSpec, Limits, Memory, MemoryReader, RejectedError
from pager.memory_tool import MemoryFiles
from tests.support import HandClock

CORE = {
    "human": BlockSpec(value="Alice, a baker", limit_tokens=60),
    "notes": BlockSpec(limit_tokens=60),
    "rules": BlockSpec(value="be kind", read_only=True),
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=None, core=CORE, limits=Limits.for_window(10_000), clock=HandClock()) as memory:
        yield memory


@pytest.fixture
def files(memory: Memory) -> MemoryFiles:
    return MemoryFiles(memory)


def view(files: MemoryFiles, path: str, *view_range: int) -> str:
    return files.run({"command": "view", "path": path, "view_range": list(view_range)})


def create(files: MemoryFiles, path: str, text: str) -> str:
    return files.run({"command": "create", "path": path, "file_text": text})


def rename(files: MemoryFiles, old: str, new: str) -> str:
    return files.run({"command": "rename", "old_path": old, "new_path": new})


def block(memory: Memory, name: str) -> str:
    return next(block.value for block in memory.core() if block.name == name)


def test_half_a_character_is_a_replacement_character_everywhere(files: MemoryFiles, memory: Memory) -> None:
    path = "/memories/archive/a\ud800"
    create(files, path, "x\udfffy")
    assert view(files, path).endswith("\tx\ufffdy")
    files.run({"command": "str_replace", "path": path, "old_str": "x\udfff", "new_str": "z"})
    rename(files, path, "/memories/core/notes.md")
    assert block(memory, "notes") == "zy"
    with pytest.raises(RejectedError) as refused:
        files.run({"command": "delete", "path": path})
    assert str(refused.value) == "The path /memories/archive/a\ufffd does not exist"


def test_the_tiers_are_directories(files: MemoryFiles, memory: Memory) -> None:
    memory.archive("prefers aisle seats", key="travel/seat")
    memory.archive("has two cats")
    memory.archive("é", key="odd//key")
    memory.record("user", "I moved to Porto.", at="2026-04-30T14:30Z", name="Dana")
    said = len('{"type":"text","text":"I moved to Porto."}')
    assert view(files, "/memories").split("\n")[1:] == [
        f"{33 + 21 + said}B\t/memories",
        "33B\t/memories/archive/", "12B\t/memories/archive/f2", "2B\t/memories/archive/f3",
        "19B\t/memories/archive/travel/",
        "21B\t/memories/core/", "14B\t/memories/core/human.md", "0B\t/memories/core/notes.md",
        "7B\t/memories/core/rules.md",
        f"{said}B\t/memories/recall/", f"{said}B\t/memories/recall/2026-04-30.md",
    ]  # fmt: skip
    assert view(files, "/memories/archive/f3").endswith("\n     1\té")


def test_a_path_is_one_however_its_letters_are_typed(files: MemoryFiles, memory: Memory) -> None:
    create(files, "/memories/archive/caf\u00e9/menu", "cake")
    assert view(files, "/memories/archive/cafe\u0301/menu").endswith("\tcake")
    assert [row.key for row in memory.inspect.facts_by_key()] == ["caf\u00e9/menu"]


def test_a_file_is_a_fact_with_versions(files: MemoryFiles, memory: Memory) -> None:
    create(files, "/memories/archive/seat", "window")
    files.run({"command": "str_replace", "path": "/memories/archive/seat", "old_str": "window", "new_str": "aisle"})
    versions = [(fact.text, fact.actor) for fact in memory.history.fact_versions("seat")]
    assert versions == [("window", "agent"), ("aisle", "agent")]
    files.run({"command": "delete", "path": "/memories/archive/seat"})
    assert memory.search_archive("aisle window") == []
    assert memory.fact("f2").forgotten == "deleted as /memories/archive/seat"
    create(files, "/memories/archive/seat", "none")
    assert memory.search_archive("none")[0].page_id == "f3"


def test_what_is_read_is_in_the_ledger_and_what_did_not_fit_was_not_read(files: MemoryFiles, memory: Memory) -> None:
    create(files, "/memories/archive/seat", "window")
    memory.record("user", "one", at="2026-04-30T10:00Z")
    memory.record("user", "two", at="2026-04-30T11:00Z")
    view(files, "/memories/archive/seat")
    view(files, "/memories/recall/2026-04-30.md", 1, 2)
    reads = [(move.page_id, move.actor) for move in memory.ledger(events=["page_in"])]
    assert reads == [("f1", "agent"), ("s1", "agent")]
    view(files, "/memories/recall/2026-04-30.md", 5, -1)
    assert memory.ledger(events=["page_in"])[-1].page_id == "s2"
    for hour in range(3):
        memory.record("user", "A long day of work. " * 200, at=f"2026-05-01T1{hour}:00Z")
    assert "read on with view_range" in view(files, "/memories/recall/2026-05-01.md")
    assert [move.page_id for move in memory.ledger(events=["page_in"])[3:]] == ["s3"]


def test_a_day_holds_what_was_said_and_has_left_the_view(files: MemoryFiles, memory: Memory) -> None:
    memory.record("user", "I moved to Porto.", at="2026-05-03T09:30Z", name="Dana")
    memory.append_user("in view")
    shown = view(files, "/memories/recall/2026-05-03.md")
    assert shown.split("\n")[1:] == [
        "     1\t## s1 2026-05-03 09:30 Dana", "     2\tI moved to Porto.", "     3\t",
    ]  # fmt: skip
    with pytest.raises(RejectedError, match="does not exist"):
        view(files, "/memories/recall/2026-05-04.md")


def test_a_day_that_is_wholly_in_view_is_no_file(files: MemoryFiles, memory: Memory) -> None:
    memory.append_user("in view")
    (today,) = memory.history.days()
    assert view(files, "/memories/recall").split("\n")[1:] == ["0B\t/memories/recall"]
    with pytest.raises(RejectedError, match="does not exist"):
        view(files, f"/memories/recall/{today}.md")
    memory.record("user", "two", at=f"{today}T00:10")
    said = len('{"type":"text","text":"two"}')
    assert view(files, "/memories/recall").split("\n")[2:] == [f"{said}B\t/memories/recall/{today}.md"]
    assert view(files, f"/memories/recall/{today}.md").split("\n")[2] == "     2\ttwo"


@pytest.mark.slow
def test_a_page_is_read_to_its_end_by_ranges_of_lines(files: MemoryFiles, memory: Memory) -> None:
    text = "".join(f"{number:05}" for number in range(20_000))  # one line of 100,000 characters
    memory.record("user", text)
    read, first = "", 1
    while first:
        head, *lines = view(files, "/memories/recall/s1", first, -1).split("\n")
        note = lines.pop() if lines[-1].startswith("(Lines") else ""
        assert head == "Here's the content of /memories/recall/s1 with line numbers:"
        assert [int(line.split("\t")[0]) for line in lines] == list(range(first, first + len(lines)))
        read += "".join(line.split("\t", 1)[1] for line in lines)
        assert not note or f"are shown; read on with view_range [{first + len(lines)}, -1]" in note
        first = first + len(lines) if note else 0
    assert read == text


def test_a_fact_of_one_long_line_is_cut_and_says_where_it_is_whole(files: MemoryFiles) -> None:
    create(files, "/memories/archive/story", f"first\n{'a story ' * 4_000}\nlast")
    shown = view(files, "/memories/archive/story", 2, -1)
    assert "(Line 2 is too long to be shown whole; read it in pieces as /memories/recall/f1.)" in shown
    assert shown.endswith("(Lines 2 to 2 of 3 are shown; read on with view_range [3, -1].)")
    assert view(files, "/memories/archive/story", 3, -1).endswith("     3\tlast")


def test_a_long_listing_shows_one_level_then_pieces(files: MemoryFiles, memory: Memory) -> None:
    for number in range(300):
        memory.archive("x", key=f"{number:03}")
    root = view(files, "/memories").split("\n")
    assert root[0].endswith("View one to see what is in it:")
    assert [line.split("\t")[1] for line in root[1:]] == [
        "/memories", "/memories/archive/", "/memories/core/", "/memories/recall/",
    ]  # fmt: skip
    seen, first = list[str](), 1
    while first:
        lines = view(files, "/memories/archive", first, -1).split("\n")[1:]
        note = lines.pop() if lines[-1].startswith("(Entries") else ""
        seen += [line.split("\t")[1] for line in lines]
        first = first + len(lines) if note else 0
    assert seen[1:] == [f"/memories/archive/{number:03}" for number in range(300)]


def test_renaming_between_core_and_archive_moves_in_one_transaction(files: MemoryFiles, memory: Memory) -> None:
    rename(files, "/memories/core/human.md", "/memories/archive/people/alice")
    assert (block(memory, "human"), memory.history.fact_versions("people/alice")[0].text) == ("", "Alice, a baker")
    moves = [move.reason for move in memory.ledger(events=["page_out"])]
    assert moves == ["from the core block human"]
    rename(files, "/memories/archive/people/alice", "/memories/core/notes.md")
    assert block(memory, "notes") == "Alice, a baker"
    assert memory.search_archive("baker") == []
    rename(files, "/memories/core/notes.md", "/memories/core/human.md")
    assert (block(memory, "human"), block(memory, "notes")) == ("Alice, a baker", "")


def test_a_move_that_does_not_fit_changes_nothing(files: MemoryFiles, memory: Memory) -> None:
    create(files, "/memories/archive/long", "word " * 100)
    with pytest.raises(RejectedError, match=r"would hold 10\d of 60 tokens"):
        rename(files, "/memories/archive/long", "/memories/core/notes.md")
    assert block(memory, "notes") == ""
    assert memory.search_archive("word")[0].page_id == "f1"
    before = memory.ledger()
    with pytest.raises(RejectedError, match="is a file, not a directory"):
        rename(files, "/memories/core/human.md", "/memories/archive/long/alice")
    assert (block(memory, "human"), memory.ledger()) == ("Alice, a baker", before)


def test_renaming_keeps_tags_and_the_past(files: MemoryFiles, memory: Memory) -> None:
    memory.archive("likes hats", key="hats", tags=["taste"])
    memory.archive("no name yet", tags=["taste"])
    rename(files, "/memories/archive/hats", "/memories/archive/dress/hats")
    rename(files, "/memories/archive/f2", "/memories/archive/dress/other")
    rename(files, "/memories/archive/dress", "/memories/archive/clothes")
    now = {row.key: memory.fact(row.id) for row in memory.inspect.facts_by_key()}
    assert {key: (fact.text, fact.tags) for key, fact in now.items()} == {
        "clothes/hats": ("likes hats", ("taste",)), "clothes/other": ("no name yet", ("taste",)),
    }  # fmt: skip
    assert memory.fact("f1").forgotten == "renamed to /memories/archive/dress/hats"


# --- limits and refusals

CREATE = {"command": "create", "file_text": "x"}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ({**CREATE, "path": "/memories/core/other.md"}, "there are: /memories/core/human.md, /memories/core/notes.md"),
        ({**CREATE, "path": "/memories/core/human.md"}, "File /memories/core/human.md already exists"),
        ({**CREATE, "path": "/memories/core/notes.md", "file_text": "word " * 80}, "would hold 8"),
        ({**CREATE, "path": "/memories/recall/a"}, "read-only: what was said stays"),
        ({**CREATE, "path": "/memories/archive/f12"}, "a fact that has none is named by its id"),
        ({**CREATE, "path": "/memories/archive/a\nb"}, "no control characters"),
        ({**CREATE, "path": f"/memories/archive/{'é' * 128}"}, "names have at most 255 bytes between slashes"),
        ({**CREATE, "path": "/memories/archive/a "}, "no blanks at their ends"),
        ({**CREATE, "path": "/memories/archive/a", "file_text": " \n"}, "would be blank"),
        ({**CREATE, "path": "/memories/archive/a", "file_text": None}, "`file_text` is missing"),
        ({"command": "insert", "path": "/memories/core/rules.md", "insert_line": 0, "insert_text": "x"}, "read-only"),
        ({"command": "insert", "path": "/memories/core/rules.md", "insert_line": True, "insert_text": "x"}, "number"),
        ({"command": "delete", "path": "/memories/core/rules.md"}, "read-only"),
        ({"command": "delete", "path": "/memories/core"}, "Cannot delete the /memories/core directory itself"),
        ({"command": "delete", "path": "/memories/archive/"}, "Cannot delete the /memories/archive directory itself"),
        ({"command": "delete", "path": "/memories/recall/s1"}, "read-only"),
        ({"command": "delete", "path": "/memories/core/other.md"}, "The path /memories/core/other.md does not exist"),
        ({"command": "rename", "old_path": "/memories/core", "new_path": "/memories/x"}, "Cannot rename"),
        ({"command": "rename", "old_path": "/memories/recall/s1", "new_path": "/memories/x"}, "read-only"),
        ({"command": "rename", "old_path": "/memories/core/notes.md", "new_path": "/memories/x"}, "is empty"),
        ({"command": "rename", "old_path": "/memories/core/human.md", "new_path": "/memories/recall/x"}, "read-only"),
        ({"command": "rename", "old_path": "/memories/archive/d", "new_path": "/memories/core/notes.md"}, "directory"),
        ({"command": "rename", "old_path": "/memories/archive/d", "new_path": "/memories/archive/d/f"}, "into itself"),
        ({"command": "str_replace", "path": "/memories/archive/f1", "old_str": "o", "new_str": "x"}, "Rename it"),
        ({"command": "view", "path": "/memories/core/human.md", "view_range": [1]}, "Invalid `view_range`"),
        ({"command": "view"}, "`path` is missing"),
        ({"command": "look"}, "Unknown command: 'look'. There are: view, create"),
        ({}, "Unknown command: None"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(
    files: MemoryFiles, memory: Memory, command: dict[str, Any], message: str
) -> None:
    memory.archive("no name")
    memory.archive("in a directory", key="d/e")
    memory.record("user", "said")
    before = memory.ledger(), memory.core()
    with pytest.raises(RejectedError) as refused:
        files.run(command)
    assert message in str(refused.value)
    assert (memory.ledger(), memory.core()) == before


def test_a_reader_can_only_look(memory: Memory, tmp_path: Path) -> None:
    memory.archive("likes hats", key="hats")
    with MemoryReader.open(tmp_path, clock=HandClock(datetime(2026, 6, 1, tzinfo=UTC))) as reading:
        files = MemoryFiles(reading)
        assert view(files, "/memories/archive/hats").endswith("likes hats")
        with pytest.raises(RejectedError, match="read-only here"):
            create(files, "/memories/archive/x", "x")
