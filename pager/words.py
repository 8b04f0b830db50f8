"""The word indexes: made again from what is stored. They hold nothing of their own."""

from __future__ import annotations

import json

from pager.blocks import text_of
from pager.search import folded
from pager.store import Store


def indexed(text: str, name: str | None = None) -> str:
    """What is indexed for a text: the name of who said it is one of its words."""
    return folded(f"{name} {text}" if name else text)


def rebuild(store: Store) -> None:
    with store.transaction():
        store.upkeep.clear_words()
        for part, name, block in store.upkeep.said_for_words():
            store.said.index_words(part, indexed(text_of(json.loads(block)), name))
        for fact, text in store.upkeep.facts_for_words():
            store.archive.index_words(fact, indexed(text))
