"""A tokenizer that is not tiktoken's: the same for the same seed, and nobody else's.

A text is split by kind of character, each kind is counted as tiktoken's o200k_base counts it alone, and every kind
has its own ratio between 1.0 and 1.6, drawn from the seed. So no single ratio explains its counts. What has no
text counts by its size (images by width and height, documents by their pages or bytes), times 1.0 to 1.2.

    >>> one, other = Tokenizer(seed=1), Tokenizer(seed=2)
    >>> one.text("two hats for 34.50") == Tokenizer(seed=1).text("two hats for 34.50")
    True
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import random
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pager import tokens

KINDS = ("words", "digits", "other", "code", "media")
Counts = tuple[int, int, int, int, int, int]  # in the order of KINDS, and how many bytes the text has
NOTHING: Counts = (0, 0, 0, 0, 0, 0)

# A word with a letter beyond ASCII, or a run in another script; never looked for twice in the same letters.
_OTHER = re.compile(r"(?<![A-Za-z])[A-Za-z]*[^\x00-\x7f][A-Za-z\u0080-\U0010ffff]*")
_APOSTROPHE = re.compile(r"(?<=[A-Za-z])'(?=[A-Za-z])")  # as in "don't": of a word, and no code
_NO_LETTERS = re.compile(r"[^A-Za-z']+")
_DIGITS = re.compile(r"[0-9]{1,3}")
_NO_CODE = re.compile(r"[A-Za-z0-9 ]+")
_PNG = b"\x89PNG\r\n\x1a\n"
_PAGE = re.compile(rb"/Type\s*/Page(?![a-z])")
IMAGE_TOKENS = 1_600  # of an image whose size is not known
IMAGE_MOST_TOKENS = 4_784  # larger ones are scaled down
PAGE_TOKENS = 2_200


@lru_cache(maxsize=20_000)
def count_text(text: str) -> Counts:
    ascii_part = _OTHER.sub(" ", text)
    marked = _APOSTROPHE.sub("\0", ascii_part)
    words = tokens.total(_NO_LETTERS.sub(" ", marked.replace("'", " ").replace("\0", "'")).strip())
    ascii_part = _APOSTROPHE.sub("", ascii_part)
    digits = len(_DIGITS.findall(ascii_part))
    other = tokens.total(" ".join(_OTHER.findall(text)))
    code = tokens.total(_NO_CODE.sub(" ", ascii_part).strip(" "))
    return (words, digits, other, code, 0, len(text.encode("utf-8", "surrogatepass")))


def add(one: Counts, two: Counts) -> Counts:
    w, d, o, c, m, b = one
    return (w + two[0], d + two[1], o + two[2], c + two[3], m + two[4], b + two[5])


def count_json(value: object) -> Counts:
    return count_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def count_block(block: Mapping[str, Any]) -> Counts:
    """Count one content block. Thinking counts by its signature instead."""
    kind = block["type"]
    if kind == "text":
        return count_text(block["text"])
    if kind in {"thinking", "redacted_thinking"}:
        return NOTHING
    if kind == "tool_use":
        return add(count_text(block["name"]), count_json(block["input"]))
    if kind == "image":
        return _media(_image_tokens(block["source"]))
    if kind == "document":
        return _count_document(block)
    if kind == "tool_result":
        return count_content(block.get("content") or "")
    if kind == "web_search_tool_result" and isinstance(block["content"], list):
        return _count_search(block)
    return count_json({name: value for name, value in block.items() if name != "cache_control"})


def _count_search(block: Mapping[str, Any]) -> Counts:
    """The model reads what is sealed in the results; nobody else knows how much that is."""
    total = NOTHING
    for each in block["content"]:
        total = add(
            add(total, count_text(f"{each['url']} {each['title']}")), _media(len(each["encrypted_content"]) // 6)
        )
    return total


def count_content(content: str | list[Any]) -> Counts:
    if isinstance(content, str):
        return count_text(content) if content else NOTHING
    total = NOTHING
    for block in content:
        total = add(total, count_block(block))
    return total


def _count_document(block: Mapping[str, Any]) -> Counts:
    source = block["source"]
    heading = count_text(f"{block.get('title') or ''} {block.get('context') or ''}")
    if source["type"] == "text":
        return add(heading, count_text(source["data"]))
    if source["type"] == "content":
        return add(heading, count_content(source["content"]))
    if source["type"] != "base64":
        return add(heading, _media(PAGE_TOKENS))
    data = _decode(source["data"])
    pages = len(_PAGE.findall(data)) or 1 + len(data) // 100_000
    return add(heading, _media(pages * PAGE_TOKENS))


def _image_tokens(source: Mapping[str, Any]) -> int:
    head = _decode(source["data"][:64]) if source["type"] == "base64" else b""
    if not head.startswith(_PNG) or len(head) < 24:
        return IMAGE_TOKENS
    width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    return min(IMAGE_MOST_TOKENS, max(1, math.ceil(width * height / 750)))


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except binascii.Error:
        return b""


def _media(count: int) -> Counts:
    return (0, 0, 0, 0, count, 0)


class Tokenizer:
    """Counts by kind, times this seed's ratios."""

    def __init__(self, *, seed: int = 0, ratios: Mapping[str, float] | None = None) -> None:
        drawn = random.Random(f"ratios {seed}")
        self.ratios = {kind: round(drawn.uniform(1.0, 1.2 if kind == "media" else 1.6), 3) for kind in KINDS}
        self.ratios |= ratios or {}
        self._by_place = tuple(self.ratios[kind] for kind in KINDS)

    def tokens(self, counts: Counts) -> int:
        """Never more than one token per byte: no tokenizer does that."""
        words, digits, other, code, media = self._by_place
        text = counts[0] * words + counts[1] * digits + counts[2] * other + counts[3] * code
        return math.ceil(min(text, counts[5]) + counts[4] * media)

    def text(self, text: str) -> int:
        return self.tokens(count_text(text))
