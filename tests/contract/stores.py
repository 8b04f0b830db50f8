"""The stores that the contract is asked of, and the shortest ways to put something into one.

To test another implementation: add it to `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pager.store import Store
from pager.store.rows import Epoch
from pager.types import Counts, Json
from tests.support import HandClock

KINDS: dict[str, Callable[[Path, bool], Store]] = {
    "sqlite": lambda file, read_only: Store(file, HandClock(), read_only=read_only),
}


class Place:
    """Where one store lives: opened as often as a test likes, and closed after it."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        self.file = directory / "pager.db"
        self._opened: list[Store] = []

    def open(self, *, read_only: bool = False) -> Store:
        self._opened.append(KINDS[self.kind](self.file, read_only))
        return self._opened[-1]

    def reopen(self) -> Store:
        self.close()
        return self.open()

    def bytes(self) -> bytes:
        """All that its files hold."""
        return b"".join(file.read_bytes() for file in sorted(self.directory.iterdir()) if file.is_file())

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def say(store: Store, said: str, at: int = 0, **step: Any) -> tuple[int, int]:
    """A user step of one searchable part: their ids."""
    number = store.conversation.append_step("user", "user", at, **step)
    part = store.conversation.append_part(number, "said", "user", text(said), at, searchable=True)
    store.conversation.index_words(part, said)
    return number, part


def found(store: Store, question: str) -> set[int]:
    """The steps that hold a word of the question."""
    parts = {int(part) for term in store.conversation.terms(question) for part in store.said.places(term)}
    return {said.step for said in store.said.said(sorted(parts)).values()}


def keep(
    store: Store, said: str, *, key: str | None = None, tags: tuple[str, ...] = (), start: int = 0,
    until: int | None = None, supersedes: int | None = None,
) -> int:  # fmt: skip
    """A fact with its words."""
    fact = store.archive.append(
        said, key, tags, start, until, start, "agent", 0, stated=False, supersedes=supersedes
    )  # fmt: skip
    store.archive.index_words(fact, said)
    return fact


def epoch(number: int, **changes: Any) -> Epoch:
    known: dict[str, Any] = {
        "first_step": 0, "tools": [], "system": [], "preamble": [], "digest": [], "settings": {},
        "sizes": {"core": Counts(1, 2, 3, 4, 5)}, "reason": "", **changes,
    }  # fmt: skip
    return Epoch(number, **known)
