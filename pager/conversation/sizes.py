"""Measuring and shortening blocks: tiktoken's counts by kind, and parts that are too large for the window.

Counts are raw (they never change for a text); a `Counter` makes tokens of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from pager import blocks, markup, tokens
from pager.tokens import Counts, media
from pager.tokens.counter import MESSAGE_OVERHEAD, Counter
from pager.types import Json

MEDIA_PARTS = 4  # an image cannot be read on in pieces, so it may have the room of several parts
SURELY_TOO_LARGE = 8  # times the limit: such a text is not even counted
PREVIEW_SHARE = 0.5  # of max_part_tokens: what stays of a part that was spilled
HEAD_SHARE = 0.75  # of a preview: people put what matters first
SHORT_STRING_CHARS = 200  # a string of a tool's input below this length is never spilled


def count(block: Json) -> Counts:
    """A block's counts, media included, with a little for the block itself."""
    media_tokens = sum(media.tokens(item) for item in blocks.media_in(block))
    return tokens.count(blocks.countable(block)) + Counts(media=media_tokens) + MESSAGE_OVERHEAD


def too_large(block: Json, limit_tokens: int, counter: Counter) -> bool:
    """Whether a block has more than `limit_tokens`; says so quickly also for one of many megabytes."""
    if any(media.tokens(item) > MEDIA_PARTS * limit_tokens for item in blocks.media_in(block)):
        return True
    text = blocks.countable(block)
    if len(text) * 4 <= limit_tokens:
        return False
    if tokens.exceeds(text, SURELY_TOO_LARGE * limit_tokens):
        return True
    return counter.tokens(tokens.count(text)) > limit_tokens


def spill(block: Json, page_id: str, limit_tokens: int, counter: Counter) -> Json:
    """`block` with its head, its tail and its page id in at most `limit_tokens`; the id alone when that is too few."""
    text = blocks.text_of(block)
    budget = float(limit_tokens)
    while budget >= tokens_of_bare_id(page_id, counter):
        form = _ends(block, text, page_id, int(budget / max(counter.ratios[:4])))
        if counter.tokens(count(form)) <= limit_tokens:
            return form
        budget *= 0.75
    return _ends(block, text, page_id, 0)


def tokens_of_bare_id(page_id: str, counter: Counter) -> int:
    return counter.tokens(count(blocks.text_block(markup.spilled("", "", page_id, 10**7, 0))))


def _ends(block: Json, text: str, page_id: str, plain_tokens: int) -> Json:
    if block.get("type") == "tool_use":
        return _ends_of_strings(block, text, page_id, plain_tokens)
    holds = " and ".join(sorted({str(item["type"]) for item in blocks.media_in(block)}))  # what no text shows
    return blocks.shortened(block, lambda whole: _ends_of(whole, page_id, plain_tokens, len, holds=holds))


def _ends_of(text: str, page_id: str, plain_tokens: int, offset: Callable[[str], int], *, holds: str = "") -> str:
    """Head and tail of a text; `offset` says where in the page its head ends. What else it `holds` is left out."""
    bare = markup.spilled("", "", page_id, len(text), 0, holds)
    if not text:
        return bare
    room = plain_tokens - 45  # the words around it
    if room < 8:
        return bare
    head = tokens.head(text, int(room * HEAD_SHARE))
    tail = tokens.tail(text[len(head) :], room - int(room * HEAD_SHARE))
    if len(head) + len(tail) >= len(text):
        return f"{markup.disarm(text)}\n{bare}".lstrip("\n") if holds else markup.disarm(text)
    return markup.spilled(markup.disarm(head), markup.disarm(tail), page_id, len(text), offset(head), holds)


def _ends_of_strings(block: Json, page: str, page_id: str, plain_tokens: int) -> Json:
    """A tool's input keeps its shape: only its long strings are cut, each to the same share of the room. The page is
    the input as JSON, so that is where offsets count."""
    long = [text for text in blocks.strings(block.get("input", {})) if len(text) > SHORT_STRING_CHARS]
    share = plain_tokens // max(1, len(long))
    place = 0

    def shorten(text: str) -> str:
        nonlocal place
        if len(text) <= SHORT_STRING_CHARS:
            return text
        start = page.index(_escaped(text), place)
        place = start + len(_escaped(text))
        return _ends_of(text, page_id, share, lambda head: start + len(_escaped(head)))

    return blocks.shortened(block, shorten)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
