"""Conversations in files: each turn is imported once, in order, and an error names its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.importing import import_conversations
from pager import Memory, RejectedError
from tests.importing.test_formats import ANTHROPIC, OPENAI
from tests.support import HandClock


def written(value: Any, *, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False)


def line(text: str, **more: Any) -> str:
    return written({"role": "user", "text": text, **more})


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory", embedder=None, clock=HandClock()) as memory:
        yield memory


def steps(memory: Memory) -> list[tuple[str, str]]:
    """The session and the text of everything that was imported."""
    rows = [memory._store.conversation.step(n) for n in range(1, memory._store.conversation.last_step() + 1)]
    return [(row["session"], memory.page(f"s{row['id']}")) for row in rows if row]


@pytest.mark.parametrize(
    ("text", "sessions"),
    [
        (written(ANTHROPIC, indent=2), ["c.json"]),
        (written(ANTHROPIC["messages"]), ["c.json"]),
        ("\n".join(map(written, OPENAI)), ["c.json"]),
        (f"{written(ANTHROPIC)}\n\n{written({'messages': OPENAI})}", ["c.json:1", "c.json:3"]),
    ],
)
def test_a_file_of_any_format_is_imported_once(memory: Memory, tmp_path: Path, text: str, sessions: list[str]) -> None:
    file = tmp_path / "c.json"
    file.write_text(text, encoding="utf-8")
    assert import_conversations(memory, file) == len(steps(memory))
    assert import_conversations(memory, file) == 0
    assert list(dict.fromkeys(session for session, _ in steps(memory))) == sessions
    assert memory.search_recall("order 17")
    assert memory.search_recall("way", after="2026-05-05", before="2026-05-05")[0].who == "assistant"


def test_a_file_of_lines_that_has_grown_gives_only_its_new_end(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "h.jsonl"
    for lines, new in ((["one", "two"], 2), (["one", "two"], 0), (["one", "two", "three"], 1), (["other", "two"], 2)):
        file.write_text("\n".join(map(line, lines)), encoding="utf-8")
        assert import_conversations(memory, file) == new
    assert [text for _, text in steps(memory)] == ["one", "two", "three", "other", "two"]


@pytest.mark.parametrize(
    ("text", "turns"), [("\n", []), ("\ufeff" + line("one\u2028two\u0085three"), ["one\u2028two\u0085three"])]
)
def test_only_a_line_break_ends_a_line(memory: Memory, tmp_path: Path, text: str, turns: list[str]) -> None:
    (tmp_path / "h.jsonl").write_text(text, encoding="utf-8")
    assert import_conversations(memory, tmp_path / "h.jsonl") == len(turns)
    assert [text for _, text in steps(memory)] == turns


@pytest.mark.parametrize(
    "wrong", ["no json", "[1]", "[" * 100_000, '{"role": "user"}', line("x", at="never"), line("x", mood=1)]
)
def test_an_error_names_the_line_and_nothing_is_imported(memory: Memory, tmp_path: Path, wrong: str) -> None:
    (tmp_path / "h.jsonl").write_text(f"{line('one')}\n\n{wrong}\n", encoding="utf-8")
    with pytest.raises(RejectedError, match=r"h\.jsonl:3: "):
        import_conversations(memory, tmp_path / "h.jsonl")
    assert steps(memory) == []


def said(words: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": word} for word in words.split()]


def test_a_conversation_is_recognised_by_its_text(memory: Memory, tmp_path: Path) -> None:
    first, moved = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(written(said("one two")), encoding="utf-8")
    moved.write_text(written({"messages": said("one two three")}), encoding="utf-8")
    assert [import_conversations(memory, file) for file in (first, moved, first, moved)] == [2, 1, 0, 0]
    assert [session for session, _ in steps(memory)] == ["a.json"] * 3
    moved.write_text(written(said("ONE two")), encoding="utf-8")
    assert import_conversations(memory, moved) == 2


@pytest.mark.parametrize(
    ("imports", "new", "sessions"),
    [
        ([["a b c d"], ["a b"], ["a"], ["a b e"]], [4, 0, 0, 3], ["0"] * 7),
        ([["a b", "a b c d", "a b e", "a"], ["a", "a b e", "a b c d"]], [7, 0], ["0"] * 4 + ["2"] * 3),
    ],
)
def test_a_beginning_is_left_alone_and_another_end_is_another_conversation(
    memory: Memory, tmp_path: Path, imports: list[list[str]], new: list[int], sessions: list[str]
) -> None:
    file = tmp_path / "c.json"
    counts: list[int] = []
    for talks in imports:
        file.write_text(written([{"id": number, "messages": said(talk)} for number, talk in enumerate(talks)]), "utf-8")
        counts.append(import_conversations(memory, file))
    assert counts == new
    assert [session for session, _ in steps(memory)] == [f"c.json:{number}" for number in sessions]


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([{"role": "user", "content": "x"}, {"content": "y"}], "message 1 is {'content': 'y'}"),
        ([{"role": "user", "content": 7}], "message 0: its content is 7"),
        ([{"role": "user", "content": [7]}], "message 0: its content is 7"),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], "message 0: a tool call is {'id': 'c'}"),
        ([{"role": "assistant", "tool_calls": {"id": "c"}}], "message 0: its tool_calls are {'id': 'c'}"),
        ([{"role": "user", "content": "x", "at": float("nan")}], "message 0: its time is nan"),
        ([{"role": "user", "content": "x", "at": True}], "message 0: its time is True"),
        ([{"role": "user", "content": "x", "at": "soon"}], "message 0: 'soon' is not a moment"),
        ([{"role": 7, "content": "x"}], "message 0: its role is 7"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_imported(
    memory: Memory, tmp_path: Path, messages: Any, message: str
) -> None:
    file = tmp_path / "c.json"
    file.write_text(written({"messages": messages}), encoding="utf-8")
    with pytest.raises(RejectedError) as refused:
        import_conversations(memory, file)
    assert str(refused.value).startswith(f"{file}: {message}")
    assert steps(memory) == []
