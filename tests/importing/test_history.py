"""Turns from elsewhere: each line once, in order, and an error that names the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.importing import importer as history
from pager import Memory, RejectedError
from tests.support import HandClock


def line(text: str, **more: Any) -> str:
    return json.dumps({"role": "user", "text": text, **more}, ensure_ascii=False)


def said(memory: Memory) -> list[str]:
    return [memory.page(f"s{number}") for number in range(1, memory._store.conversation.last_step() + 1)]


def test_a_file_that_has_grown_gives_only_what_is_new(tmp_path: Path) -> None:
    file = tmp_path / "h.jsonl"
    with Memory.open(tmp_path / "m", embedder=None, clock=HandClock()) as memory:
        file.write_text(f"{line('one')}\n{line('two')}\n", encoding="utf-8")
        assert (history.take(memory, file), history.take(memory, file)) == (2, 0)
        file.write_text(f"{line('one')}\n{line('two')}\n{line('three')}", encoding="utf-8")
        assert history.take(memory, file) == 1
        file.write_text(f"{line('other')}\n{line('two')}", encoding="utf-8")
        assert history.take(memory, file) == 2
        assert said(memory) == ["one", "two", "three", "other", "two"]


def test_an_empty_file_holds_no_turns(tmp_path: Path) -> None:
    file = tmp_path / "h.jsonl"
    file.write_text("\n", encoding="utf-8")
    with Memory.open(tmp_path / "m", embedder=None, clock=HandClock()) as memory:
        assert history.take(memory, file) == 0


def test_what_only_looks_like_the_end_of_a_line_is_text(tmp_path: Path) -> None:
    file = tmp_path / "h.jsonl"
    file.write_text("\ufeff" + line("one\u2028two\u0085three"), encoding="utf-8")
    with Memory.open(tmp_path / "m", embedder=None, clock=HandClock()) as memory:
        assert history.take(memory, file) == 1
        assert said(memory) == ["one\u2028two\u0085three"]


@pytest.mark.parametrize(
    "wrong", ["no json", "[1]", "[" * 100_000, '{"role": "user"}', line("x", at="never"), line("x", mood=1)]
)
def test_an_error_names_the_line_and_takes_nothing(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "h.jsonl"
    file.write_text(f"{line('one')}\n\n{wrong}\n", encoding="utf-8")
    with Memory.open(tmp_path / "m", embedder=None, clock=HandClock()) as memory:
        with pytest.raises(RejectedError, match=r"h\.jsonl:3: "):
            history.take(memory, file)
        assert said(memory) == []
