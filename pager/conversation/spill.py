"""Shorten a content block that is too large for the window to its head, its tail and its page id. Pure."""

import json
from collections.abc import Callable

from pager import blocks, markup, tokens
from pager.tokens.counter import Counter, count_block
from pager.types import Json

PREVIEW_SHARE = 0.5  # of max_part_tokens: what stays of a part that was spilled
HEAD_SHARE = 0.75  # of a preview: people put what matters first
SHORT_STRING_CHARS = 200  # a string of a tool's input below this length is never shortened
WORDS_AROUND_TOKENS = 45  # the element that says what is missing


def spill(block: Json, page_id: str, limit_tokens: int, counter: Counter) -> Json:
    """Return `block` with head, tail and page id in at most `limit_tokens`; the id alone if that is too few."""
    text = blocks.text_of(block)
    id_tokens = counter.tokens(count_block(blocks.text_block(markup.spilled("", "", page_id, 10**7, 0))))
    budget = float(limit_tokens)
    while budget >= id_tokens:
        form = _shortened(block, text, page_id, int(budget / max(counter.ratios[:4])))
        if counter.tokens(count_block(form)) <= limit_tokens:
            return form
        budget *= 0.75
    return _shortened(block, text, page_id, 0)


def _shortened(block: Json, text: str, page_id: str, plain_tokens: int) -> Json:
    if block.get("type") == "tool_use":
        return _with_short_strings(block, text, page_id, plain_tokens)
    media = " and ".join(sorted({str(item["type"]) for item in blocks.media_in(block)}))
    return blocks.shortened(block, lambda whole: _head_and_tail(whole, page_id, plain_tokens, len, media=media))


def _head_and_tail(text: str, page_id: str, plain_tokens: int, offset: Callable[[str], int], *, media: str = "") -> str:
    """Return the ends of a text. `offset` maps its head to the place in the page where it ends."""
    id_alone = markup.spilled("", "", page_id, len(text), 0, media)
    room = plain_tokens - WORDS_AROUND_TOKENS
    if not text or room < 8:
        return id_alone
    head = tokens.head(text, int(room * HEAD_SHARE))
    tail = tokens.tail(text[len(head) :], room - int(room * HEAD_SHARE))
    if len(head) + len(tail) >= len(text):
        return f"{markup.disarm(text)}\n{id_alone}" if media else markup.disarm(text)
    return markup.spilled(markup.disarm(head), markup.disarm(tail), page_id, len(text), offset(head), media)


def _with_short_strings(block: Json, page: str, page_id: str, plain_tokens: int) -> Json:
    long = [text for text in blocks.strings(block.get("input", {})) if len(text) > SHORT_STRING_CHARS]
    share = plain_tokens // max(1, len(long))
    place = 0

    def shorten(text: str) -> str:
        nonlocal place
        if len(text) <= SHORT_STRING_CHARS:
            return text
        start = page.index(_escaped(text), place)
        place = start + len(_escaped(text))
        return _head_and_tail(text, page_id, share, lambda head: start + len(_escaped(head)))

    return blocks.shortened(block, shorten)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
