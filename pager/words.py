"""The word indexes: made again from what is stored. They hold nothing of their own."""

from __future__ import annotations

import json

from pager.blocks import text_of
from pager.store import Store


def indexed(text: str, name: str | None) -> str:
    """What is indexed for a said text: the speaker's name is one of its words."""
    return f"{name} {text}" if name else text


def rebuild(store: Store) -> None:
    with store.transaction():
        store.upkeep.clear_words()
        for part, name, block in store.upkeep.said_for_words():
            store.conversation.index_words(part, indexed(text_of(json.loads(block)), name))
        for fact, text in store.upkeep.facts_for_words():
            store.archive.index_words(fact, text)
