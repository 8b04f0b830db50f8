"""The shortest ways to put rows into a store."""

from typing import Any

from pager.store import Store
from pager.types import Json


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


def keep(store: Store, said: str) -> int:
    """Append a fact with its words, and return its id."""
    fact = store.archive.append(said, None, (), 0, None, 0, "agent", 0, stated=False, sources=())
    store.archive.index_words(fact, said)
    return fact
