"""Conversations in files: each message is imported once, in order, and an error names its place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.importing import import_conversations
from pager import Memory, RejectedError
from tests.importing.test_formats import ANTHROPIC, OPENAI


def written(value: Any, *, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False)


def line(text: str, **more: Any) -> str:
    return written({"role": "user", "text": text, **more})


@pytest.fixture
def read(memory: Memory, tmp_path: Path) -> Callable[..., int]:
    """Import a file with this text; return how many turns were new."""

    def read(text: str, name: str = "c.json") -> int:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return import_conversations(memory, tmp_path / name)

    return read


def steps(memory: Memory) -> list[tuple[str, str]]:
    """The session and the text of everything that was imported."""
    rows = [memory._store.conversation.step(n) for n in range(1, memory._store.conversation.last_step() + 1)]
    return [(row["session"], memory.page_text(f"s{row['id']}")) for row in rows if row]


@pytest.mark.parametrize(
    ("text", "sessions"),
    [
        (written(ANTHROPIC, indent=2), ["c.json"]),
        (written(ANTHROPIC["messages"]), ["c.json"]),
        ("\n".join(map(written, OPENAI)), ["c.json"]),
        (f"{written(ANTHROPIC)}\n\n{written({'messages': OPENAI})}", ["c.json:1", "c.json:3"]),
    ],
)
def test_a_file_of_any_format_is_imported_once(
    memory: Memory, read: Callable[..., int], text: str, sessions: list[str]
) -> None:
    assert (read(text), read(text)) == (len(steps(memory)), 0)
    assert list(dict.fromkeys(session for session, _ in steps(memory))) == sessions
    assert memory.search_recall("order 17")
    assert memory.search_recall("way", after="2026-05-05", before="2026-05-05")[0].who == "assistant"


def test_a_file_of_lines_that_has_grown_gives_only_its_new_end(memory: Memory, read: Callable[..., int]) -> None:
    files = ("one two", "one two", "one two three", "other two")
    assert [read("\n".join(map(line, words.split()))) for words in files] == [2, 0, 1, 2]
    assert [text for _, text in steps(memory)] == ["one", "two", "three", "other", "two"]


def test_only_a_line_break_ends_a_line(memory: Memory, read: Callable[..., int]) -> None:
    assert (read("\n", "h.jsonl"), read("\ufeff" + line("one\u2028two\u0085three"), "h.jsonl")) == (0, 1)
    assert [text for _, text in steps(memory)] == ["one\u2028two\u0085three"]


@pytest.mark.parametrize(
    "wrong", ["no json", "[1]", "[" * 100_000, '{"role": "user"}', line("x", at="never"), line("x", mood=1)]
)
def test_an_error_names_the_line_and_nothing_is_imported(memory: Memory, read: Callable[..., int], wrong: str) -> None:
    with pytest.raises(RejectedError, match=r"h\.jsonl:3: "):
        read(f"{line('one')}\n\n{wrong}\n", "h.jsonl")
    assert steps(memory) == []


def said(words: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": word} for word in words.split()]


def test_a_conversation_is_recognised_by_its_text(memory: Memory, read: Callable[..., int]) -> None:
    first, moved = written(said("one two")), written({"messages": said("one two three")})
    files = [(first, "a.json"), (moved, "b.json"), (first, "a.json"), (moved, "b.json")]
    assert [read(*file) for file in files] == [2, 1, 0, 0]
    assert [session for session, _ in steps(memory)] == ["a.json"] * 3
    assert read(written(said("ONE two")), "b.json") == 2


@pytest.mark.parametrize(
    ("imports", "new", "sessions"),
    [
        ([["a b c d"], ["a b"], ["a"], ["a b e"]], [4, 0, 0, 3], ["0"] * 7),
        ([["a b", "a b c d", "a b e", "a"], ["a", "a b e", "a b c d"]], [7, 0], ["0"] * 4 + ["2"] * 3),
    ],
)
def test_a_beginning_is_left_alone_and_another_end_is_another_conversation(
    memory: Memory, read: Callable[..., int], imports: list[list[str]], new: list[int], sessions: list[str]
) -> None:
    files = [[{"id": number, "messages": said(talk)} for number, talk in enumerate(talks)] for talks in imports]
    assert [read(written(file)) for file in files] == new
    assert [session for session, _ in steps(memory)] == [f"c.json:{number}" for number in sessions]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"content": "y"}, "is {'content': 'y'}"),
        *(({"role": "user", "content": content}, ": its content is 7") for content in (7, [7])),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, ": a tool call is {'id': 'c'}"),
        ({"role": "assistant", "tool_calls": {"id": "c"}}, ": its tool_calls are {'id': 'c'}"),
        ({"role": "user", "content": "x", "at": float("nan")}, ": its time is nan"),
        ({"role": "user", "content": "x", "at": True}, ": its time is True"),
        ({"role": "user", "content": "x", "at": "soon"}, ": 'soon' is not a moment"),
        ({"role": 7, "content": "x"}, ": its role is 7"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_imported(
    memory: Memory, read: Callable[..., int], message: Any, problem: str
) -> None:
    with pytest.raises(RejectedError) as refused:
        read(written({"messages": [*said("x"), message]}))
    assert "c.json: message 1" in str(refused.value)
    assert problem in str(refused.value)
    assert steps(memory) == []
