"""The shortest ways to put rows into a store."""

from pathlib import Path
from typing import Any

from pager.store import Store
from pager.store.rows import Epoch
from pager.types import Counts, Json
from tests.support import HandClock


class Place:
    """A directory with one store, which a test may open any number of times. Closes all of them at the end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "pager.db"
        self._opened: list[Store] = []

    def open(self, *, read_only: bool = False) -> Store:
        self._opened.append(Store(self.file, HandClock(), read_only=read_only))
        return self._opened[-1]

    def reopen(self) -> Store:
        self.close()
        return self.open()

    def bytes(self) -> bytes:
        """Return all that its files hold."""
        return b"".join(file.read_bytes() for file in sorted(self.directory.iterdir()) if file.is_file())

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def say(store: Store, said: str, at: int = 0, **step: Any) -> tuple[int, int]:
    """Append a user step of one searchable part, and return both ids."""
    number = store.conversation.append_step("user", "user", at, **step)
    part = store.conversation.append_part(number, "said", "user", text(said), at, said, None)
    return number, part


def say_until(store: Store, step: int) -> None:
    """Append steps until that one is the newest."""
    while store.conversation.last_step() < step:
        say(store, "and then")


def found(store: Store, question: str) -> set[int]:
    """Return the steps that hold a word of the question."""
    parts = {int(part) for term in store.conversation.terms([question])[0] for part in store.said.places(term)}
    return {said.step for said in store.said.said(sorted(parts)).values()}


def keep(
    store: Store, said: str, *, key: str | None = None, tags: tuple[str, ...] = (), start: int = 0,
    until: int | None = None, supersedes: int | None = None,
) -> int:  # fmt: skip
    """Append a fact with its words, and return its id."""
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
