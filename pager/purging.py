"""Purging: afterwards no file of the agent holds the purged text.

`purge` scrubs, in one transaction, the page itself, every verbatim copy of its text, and what our own tools quoted
of it; it ends the epoch and leaves a tombstone in the ledger. `finish` makes the word indexes and the vector index anew
and erases freed pages and the log; should the process die before that, the next opening finishes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from pager import digest, markup, words
from pager.blocks import THINKING, dump, text_of
from pager.ledger import Ledger
from pager.meaning import Meaning
from pager.pages import Pages
from pager.store import Store
from pager.types import Json, read_page_id

PURGED = "[purged]"
COPY_CHARS = 8  # a shorter text is everywhere by chance: only strings that are nothing but it count as copies


class Eraser:
    """Replaces texts, and what was derived from them, in plain strings and inside JSON."""

    def __init__(self, texts: list[str]) -> None:
        derived = {
            form for text in texts for form in (text, markup.disarm(text), digest.first_words(text), text.strip())
        }
        self._copies = sorted((t for t in derived if len(t) >= COPY_CHARS), key=len, reverse=True)
        self._whole = {t for t in derived if t.strip() and len(t) < COPY_CHARS}

    def plain(self, text: str) -> str:
        if text in self._whole:
            return PURGED
        for copy in self._copies:
            if copy in text:
                text = text.replace(copy, PURGED)
            escaped = json.dumps(copy, ensure_ascii=False)[1:-1]
            if escaped in text:
                text = text.replace(escaped, PURGED)
        return text

    def change(self, text: str, *, is_json: bool) -> str:
        if not is_json:
            return self.plain(text)
        value = json.loads(text)
        cleaned = self._walk(value)
        return text if cleaned == value else dump(cleaned)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.plain(value)
        if isinstance(value, list):
            return [self._walk(item) for item in cast("list[Any]", value)]
        if isinstance(value, Mapping):
            block = {self.plain(key): self._walk(item) for key, item in cast("Mapping[str, Any]", value).items()}
            if block.get("type") in THINKING and block != value:
                block["signature"] = ""  # it may carry what was thought; this block is never sent again
            return block
        return value


def purge(store: Store, ledger: Ledger, pages: Pages, page_id: str, actor: str) -> int:
    """Scrub the database; how many places were cleaned. `finish` has to follow."""
    page = read_page_id(page_id)
    pages.text(str(page))  # refuses what does not exist or is purged already
    with store.transaction():
        store.journal.put("purging", str(page))
        store.journal.put("purges", str(int(store.journal.get("purges") or 0) + 1))
        texts = _texts(store, page.kind, page.number)
        for part in store.upkeep.asides_naming(str(page)):
            store.upkeep.overwrite_part(part, _emptied(store, part))
        _remove_page(store, page.kind, page.number)
        changed = store.upkeep.rewrite(Eraser(texts).change)
        for table, row in changed:
            if table == "facts":
                store.upkeep.drop_vector(row)  # it was made from the text that is gone
        if store.prompt.unpin(str(page)):
            store.prompt.leave(str(page), "pinned", store.conversation.last_step(), "purged")
        store.prompt.end_epoch(store.conversation.last_step())
        ledger.write("purge", str(page), actor=actor, places=len(changed))
    return len(changed)


def _texts(store: Store, kind: str, number: int) -> list[str]:
    if kind == "f":
        fact = store.archive.fact(number)
        return [fact.text] if fact else []
    if kind == "x":
        row = store.conversation.original(number)
        return [text_of(json.loads(row["block"]))] if row else []
    return [text for _, block in store.upkeep.parts_in(number) if (text := text_of(json.loads(block)))]


def _remove_page(store: Store, kind: str, number: int) -> None:
    if kind == "f":
        store.upkeep.mark_fact_purged(number)
        return
    parts = [number] if kind == "x" else [part for part, _ in store.upkeep.parts_in(number)]
    for part in parts:
        store.upkeep.overwrite_part(part, _emptied(store, part))
    if kind == "s":
        store.upkeep.mark_step_purged(number)


def _emptied(store: Store, part: int) -> str:
    """The block with its shape kept, so that calls and results still pair, and nothing of what it said."""
    row = store.conversation.original(part)
    block: Json = json.loads(row["block"]) if row else {}
    if block.get("type") == "tool_use":
        return dump({**block, "input": {}})
    if block.get("type") == "tool_result":
        kept = {name: block[name] for name in ("type", "tool_use_id", "is_error") if name in block}
        return dump({**kept, "content": [{"type": "text", "text": PURGED}]})
    return dump({"type": "text", "text": PURGED})


def finish(store: Store, meaning: Meaning | None) -> None:
    """Whatever was made from the purged text is made anew, and freed bytes are erased. Safe to repeat."""
    words.rebuild(store)
    store.upkeep.erase_freed()
    if meaning is not None:
        meaning.rebuild("purge")
    store.journal.put("purging", None)
    store.upkeep.erase_freed()
