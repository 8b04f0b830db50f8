"""A secret that can be found in any file, also a piece of it, and the proof that it is gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pager import NotFoundError
from tests.standin import thinking
from tests.support import Talk

# Whatever piece of the secret our own machinery cuts off, it holds one of these words.
MARKS = [f"zyzzogeton{number}q" for number in range(1_000)]
SECRET = f'The "vault" is {MARKS[0]},\n\tÇözüm \\ {MARKS[1]} — <core>{MARKS[2]}</core> 🗝'


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
    with pytest.raises(NotFoundError, match="purged"):
        talk.memory.page_in(page)
    assert not talk.memory.check()
    talk.ask("and then?", thinking("hm"), "go on")
    talk.reopen()
    assert not talk.memory.check()
    talk.ask("still there?", "yes")
    assert not marks_in(talk.directory, *more)


def long_secret(words: int = 900) -> str:
    return " ".join(MARKS[number % len(MARKS)] for number in range(words))
