"""Taking a text out of what is stored: its copies, what was derived from it, and what our own tools quoted of it.

Pure: a text goes in, and comes out with `[purged]` where it held what is erased.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from pager import markup
from pager.blocks import THINKING, dump, text_block
from pager.prompt import digest
from pager.types import Json

PURGED = "[purged]"
COPY_CHARS = 8  # a shorter text is everywhere by chance: only strings that are nothing but it count as copies
ROLES = frozenset({"user", "assistant"})
# What makes a block a block, and pairs calls with results. Whoever purges the message "text" does not mean these.
GRAMMAR = frozenset({"type", "id", "tool_use_id", "name", "role", "media_type", "ttl", "error_code"})
ADDRESSES = frozenset({"block", "page_id", "offset", "valid_from"})  # of a command: they say where, not what


class Eraser:
    """Replaces texts, and what was derived from them, in plain strings and inside JSON."""

    def __init__(self, texts: list[str], media: Collection[str] = ()) -> None:
        self._media = set(media)  # what images and documents are made of, or their addresses
        plain = {form for text in texts for form in (text, markup.disarm(text))}
        derived = {
            form for text in plain for form in (text, text.strip(), " ".join(text.split()), digest.first_words(text))
        }
        derived |= {markup.disarm(text) for text in derived}
        derived -= ROLES
        copies = {text for text in derived if len(text) >= COPY_CHARS}
        copies |= {_as_repr(text, quote) for text in copies for quote in ("'", "\\'")}
        copies |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in copies for ascii_only in (True, False)}
        self._copies = sorted(copies, key=len, reverse=True)
        self._whole = {text for text in derived if text.strip() and len(text) < COPY_CHARS}
        short = sorted(self._whole, key=len, reverse=True)
        self._words = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in short)) if short else None

    def plain(self, text: str) -> str:
        if text in self._whole:
            return PURGED
        for copy in self._copies:
            text = text.replace(copy, PURGED)
        return text

    def linked(self, text: str) -> str:
        """A text that is known to hold the purged one, however short that is."""
        return self.plain(self._words.sub(PURGED, text) if self._words else text)

    def command(self, raw: str) -> str | None:
        """A command that waits, without the text; None when nothing is left that it could say."""
        try:
            command = json.loads(raw)
            given = dict(command["arguments"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return raw if self.plain(raw) == raw else None
        told = {name: self._walk([value])[0] for name, value in given.items() if name not in ADDRESSES}
        if PURGED in [value for name, value in told.items() if value != given[name]]:
            return None
        cleaned = raw if told.items() <= given.items() else dump({**command, "arguments": {**given, **told}})
        return cleaned if self.plain(cleaned) == cleaned else None

    def change(self, text: str, *, is_json: bool) -> str:
        if not is_json:
            return self.plain(text)
        value = json.loads(text)
        cleaned = self._walk(value)
        return text if cleaned == value else dump(cleaned)

    def _walk(self, value: Any, *, in_input: bool = False) -> Any:
        """Every string, and inside a tool's input, where anything may be a text, every key."""
        if isinstance(value, str):
            return self.plain(value)
        if isinstance(value, list):
            return [self._walk(item, in_input=in_input) for item in cast("list[Any]", value)]
        if not isinstance(value, Mapping):
            return value
        items = cast("Mapping[str, Any]", value).items()
        if self._media and not self._media.isdisjoint(made_of(cast("Json", value))):
            return text_block(PURGED)
        if in_input:
            return {self.plain(key): self._walk(item, in_input=True) for key, item in items}
        block = {key: item if key in GRAMMAR else self._walk(item, in_input=key == "input") for key, item in items}
        if block.get("type") in THINKING and block != value:
            block["signature"] = ""  # it may carry what was thought; this block is never sent again
        return block


def made_of(block: Json) -> list[str]:
    """The data or the address of an image or a document."""
    source = block.get("source")
    if block.get("type") not in ("image", "document") or not isinstance(source, Mapping):
        return []
    known = cast("Mapping[str, Any]", source)
    return [text for name in ("data", "url", "file_id") if isinstance(text := known.get(name), str)]


def _as_repr(text: str, quote: str) -> str:
    """The text as an error quotes it; how a quotation mark stands there depends on what is around it."""
    return "".join(quote if char == "'" else char if char == '"' else repr(char)[1:-1] for char in text)
