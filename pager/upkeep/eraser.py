"""Erase a text from what is stored: its copies, what was derived from it, and what our own tools quoted of it.

Pure: a text goes in, and comes out with `[purged]` in the place of what is erased.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from pager import markup
from pager.blocks import THINKING, dump, text_block
from pager.prompt import digest
from pager.types import Json

PURGED = "[purged]"
MIN_COPY_CHARS = 8  # a shorter text stands everywhere by chance: it is erased only where a string is nothing else
_ROLES = frozenset({"user", "assistant"})
# The keys whose values are no text of the conversation, but make a block or pair calls with results.
_STRUCTURE = frozenset({"type", "id", "tool_use_id", "name", "role", "media_type", "ttl", "error_code"})
_ADDRESSES = frozenset(
    {"block", "page_id", "offset", "valid_from", "valid_until"}
)  # arguments of commands that are no text


class Eraser:
    """Replaces texts, and what was derived from them, in plain strings and inside JSON. `media` are their sources."""

    def __init__(self, texts: list[str], media: Collection[str] = ()) -> None:
        self._media = set(media)
        forms = {form for text in texts for form in (text, markup.disarm(text))}
        derived = {
            form
            for text in forms
            for form in (text, text.strip(), markup.one_line(text), " ".join(text.split()), digest.first_words(text))
        }
        derived |= {markup.disarm(text) for text in derived}
        derived -= _ROLES
        copies = {text for text in derived if len(text) >= MIN_COPY_CHARS}
        copies |= {_as_repr(text, quote) for text in copies for quote in ("'", "\\'")}
        copies |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in copies for ascii_only in (True, False)}
        self._copies = sorted(copies, key=len, reverse=True)
        self._whole = {text for text in derived if text.strip() and len(text) < MIN_COPY_CHARS}
        short = sorted(self._whole, key=len, reverse=True)
        self._words = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in short)) if short else None

    def erase(self, text: str) -> str:
        """Return the text without any copy of what is erased."""
        if text in self._whole:
            return PURGED
        for copy in self._copies:
            text = text.replace(copy, PURGED)
        return text

    def erase_linked(self, text: str) -> str:
        """Return what `erase` does, for a text that is known to hold what is erased, however short that is."""
        return self.erase(self._words.sub(PURGED, text) if self._words else text)

    def erase_in_command(self, raw: str) -> str | None:
        """Return the file of a pending command without any copy; None if nothing would be left of the command."""
        try:
            command = json.loads(raw)
            arguments = dict(command["arguments"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return raw if self.erase(raw) == raw else None
        texts = {name: self._walk([value])[0] for name, value in arguments.items() if name not in _ADDRESSES}
        changed = {name: value for name, value in texts.items() if value != arguments[name]}
        if PURGED in changed.values():
            return None
        cleaned = dump({**command, "arguments": {**arguments, **changed}}) if changed else raw
        return cleaned if self.erase(cleaned) == cleaned else None

    def erase_in_column(self, text: str, *, is_json: bool) -> str:
        """Return a value of the database without any copy. JSON is rewritten string by string."""
        if not is_json:
            return self.erase(text)
        value = json.loads(text)
        cleaned = self._walk(value)
        return text if cleaned == value else dump(cleaned)

    def _walk(self, value: Any, *, in_input: bool = False) -> Any:
        """Erase in every string, and inside a tool's input, where a key may be a text, in every key."""
        if isinstance(value, str):
            return self.erase(value)
        if isinstance(value, list):
            return [self._walk(item, in_input=in_input) for item in cast("list[Any]", value)]
        if not isinstance(value, Mapping):
            return value
        items = cast("Mapping[str, Any]", value).items()
        if self._media and not self._media.isdisjoint(media_sources(cast("Json", value))):
            return text_block(PURGED)
        if in_input:
            return {self.erase(key): self._walk(item, in_input=True) for key, item in items}
        block = {key: item if key in _STRUCTURE else self._walk(item, in_input=key == "input") for key, item in items}
        if block.get("type") in THINKING and block != value:
            block["signature"] = ""  # it may hold the thought; this block is never sent again
        return block


def media_sources(block: Json) -> list[str]:
    """Return the data or the address of an image or a document."""
    source = block.get("source")
    if block.get("type") not in ("image", "document") or not isinstance(source, Mapping):
        return []
    fields = cast("Mapping[str, Any]", source)
    return [text for name in ("data", "url", "file_id") if isinstance(text := fields.get(name), str)]


def _as_repr(text: str, quote: str) -> str:
    """Return the text as an error quotes it. Which quotation marks are escaped depends on the text around it."""
    return "".join(quote if char == "'" else char if char == '"' else repr(char)[1:-1] for char in text)
