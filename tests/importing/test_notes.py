"""Markdown notes become facts: every line is in one, each has a key, and what is imported twice is there once."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.importing.notes import import_notes, sections
from pager import Memory, RejectedError
from tests.support import HandClock

CLAUDE = """\
Read this first.

# Build
Run `make`.

## Tests
```sh
# not a heading
pytest
```
# Style #
Short words.
# Build
Again.
# Empty
"""
LINES = st.sampled_from(["# a", "## b", "### c", "#d", "", "x", "  ", "```", "~~~", "# a #", "####### e", "y"])


def test_sections_are_facts_below_their_headings() -> None:
    assert sections("CLAUDE.md", CLAUDE) == [
        ("CLAUDE.md", "Read this first."),
        ("CLAUDE.md#Build", "# Build\nRun `make`."),
        ("CLAUDE.md#Build/Tests", "# Build\n## Tests\n```sh\n# not a heading\npytest\n```"),
        ("CLAUDE.md#Style", "# Style #\nShort words."),
        ("CLAUDE.md#Build (2)", "# Build\nAgain."),
    ]


@given(st.lists(LINES, max_size=30))
def test_no_line_is_lost_and_no_key_is_used_twice(lines: list[str]) -> None:
    found = sections("m.md", "\n".join(lines))
    assert len({note.key for note in found}) == len(found)
    assert all(note.text.strip() for note in found)
    kept = [line for note in found for line in note.text.split("\n") if line in ("x", "y", "#d", "####### e")]
    assert kept == [line for line in lines if line in ("x", "y", "#d", "####### e")]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m", embedder=None, clock=HandClock()) as memory:
        yield memory


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_a_folder_is_imported_once_and_changes_supersede(memory: Memory, tmp_path: Path) -> None:
    folder, notes = tmp_path / "memories", "# Seat\nwindow\n# Tea\ngreen\n"
    write(folder, {"MEMORY.md": notes, "more/hats.markdown": "likes hats", "notes.txt": "not this"})
    assert (import_notes(memory, folder), import_notes(memory, folder)) == (3, 0)
    write(folder, {"MEMORY.md": notes.replace("window", "aisle")})
    assert import_notes(memory, folder) == 1
    seats = [fact.text for fact in memory.history.fact_versions("memories/MEMORY.md#Seat")]
    assert seats == ["# Seat\nwindow", "# Seat\naisle"]
    assert memory.search_archive("hats")[0].text == "likes hats"


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("# A (2)\nx\n# A\ny\n# A\nz", ["m.md#A (2)", "m.md#A", "m.md#A (3)"]),
        ("# A\nx\n# A\ny\n# A (2)\nz", ["m.md#A", "m.md#A (3)", "m.md#A (2)"]),
        ("````md\n```\n# a\n```\n# b\n````\n# C\nx", ["m.md", "m.md#C"]),
        ("~~~\n```\n# a\n~~~\n# C\nx", ["m.md", "m.md#C"]),
        ("```sh\n# a\n``` not the end\n# b\n```\n# C\nx", ["m.md", "m.md#C"]),
        ("```inline``` words\n# C\nx", ["m.md", "m.md#C"]),
        ("---\nname: x\n# no heading\n---\n# C\nx", ["m.md#front matter", "m.md#C"]),
        ("---\n\n# C\nx", ["m.md", "m.md#C"]),
        ("A `b`\n=====\nx\n    # code\n> # said\n- # listed", ["m.md#A `b`"]),
    ],
)
def test_what_only_looks_like_a_heading_is_none_and_keys_differ(text: str, keys: list[str]) -> None:
    assert [note.key for note in sections("m.md", text)] == keys


def test_projects_have_keys_of_their_own_and_hidden_or_installed_files_are_left_out(
    memory: Memory, tmp_path: Path
) -> None:
    places = ("one", "two", "two/.git", "two/node_modules/x", "two/.venv/lib")
    write(tmp_path, {f"{place}/CLAUDE.md": f"# Build\nthat of {place}" for place in places})
    names = ("one/CLAUDE.md", "two", "two/CLAUDE.md")
    assert [import_notes(memory, tmp_path / name) for name in names] == [1, 1, 0]
    assert {fact.key: fact.text for fact in memory.inspect.newest_facts()} == {
        f"{place}/CLAUDE.md#Build": f"# Build\nthat of {place}" for place in ("one", "two")
    }


def test_a_folder_without_notes_and_a_file_that_is_no_text_are_refused(memory: Memory, tmp_path: Path) -> None:
    write(tmp_path, {"bad/a.md": "fine", "none/x.txt": "no Markdown"})
    (tmp_path / "bad" / "b.md").write_bytes(b"\xff\xfe\x00")
    os.mkfifo(tmp_path / "none" / "pipe.md")  # nobody will ever write to it
    for folder, message in (
        (tmp_path / "bad", r"b\.md cannot be read"),
        (tmp_path / "none", "holds no Markdown files"),
        (too_deep(tmp_path), r"x cannot be read: File name too long\."),
    ):
        with pytest.raises(RejectedError, match=message):
            import_notes(memory, folder)
    assert memory.inspect.newest_facts() == []


def too_deep(folder: Path) -> Path:
    """A directory in which there is one whose path is too long for the system to open it."""
    (folder / "deep").mkdir()
    inner = os.open(folder / "deep", os.O_RDONLY)
    for _ in range(25):
        os.mkdir("x" * 200, dir_fd=inner)
        outer, inner = inner, os.open("x" * 200, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    return folder / "deep"
