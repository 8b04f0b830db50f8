"""Adds to a reply what a provider adds: its ids, its token counts, and what the prompt cache had of the request.

The cache follows the provider's published rules. A mark stores the prefix that ends there. A later request reads the
longest stored prefix that ends at one of its marks or within the 20 blocks before it. A prefix below
`CACHE_MINIMUM_TOKENS` is never stored, and one that is not read for five minutes (or an hour) is dropped.
"""

import json
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import pager
from agents.models.model import PromptTooLongError
from agents.models.replies import RAW_JSON, Reply
from pager.types import Json

DEFAULT_LIMIT_TOKENS = 200_000
CACHE_MINIMUM_TOKENS = 1_024
LOOKBACK_BLOCKS = 20
TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}
CALL_TOKENS = 8  # around the name and the input of a call
END_TOKENS = 2  # what a reply costs beyond its content
MEDIA_TOKENS = 1_500  # of any image or file
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class BlockEnd:
    """The end of one block of a prompt: a hash of everything up to here, its tokens, and the mark's lifetime."""

    prefix: bytes
    tokens: int
    mark: str | None


class PromptCache:
    """The prefixes that a provider has stored for one account, as its published rules say."""

    def __init__(self, *, minimum_tokens: int = CACHE_MINIMUM_TOKENS, now: Callable[[], float]) -> None:
        self._minimum_tokens = minimum_tokens
        self._now = now
        self._cached: dict[bytes, tuple[float, str]] = {}  # prefix -> when it expires, and its lifetime

    def bill(self, prompt: list[BlockEnd]) -> Json:
        """Return the input's share of a message's usage, and store the prefixes at this request's marks."""
        now = self._now()
        self._cached = {prefix: entry for prefix, entry in self._cached.items() if entry[0] > now}
        marks = [at for at, end in enumerate(prompt) if end.mark and end.tokens >= self._minimum_tokens]
        looked_at = [prompt[max(0, mark + 1 - LOOKBACK_BLOCKS) : mark + 1] for mark in marks]
        hits = [end for ends in looked_at for end in ends if end.prefix in self._cached]
        read = 0
        if hits:
            hit = max(hits, key=lambda end: end.tokens)
            read = hit.tokens
            self._store(hit.prefix, self._cached[hit.prefix][1], now)
        written_until = {"5m": read, "1h": read}
        for end in (prompt[at] for at in marks):
            lifetime = end.mark or "5m"
            written_until[lifetime] = max(written_until[lifetime], end.tokens)
            self._store(end.prefix, lifetime, now)
        tokens_1h = written_until["1h"] - read
        tokens_5m = max(0, written_until["5m"] - written_until["1h"])
        return {
            "input_tokens": prompt[-1].tokens - read - tokens_1h - tokens_5m,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": tokens_1h + tokens_5m,
            "cache_creation": {"ephemeral_5m_input_tokens": tokens_5m, "ephemeral_1h_input_tokens": tokens_1h},
        }

    def _store(self, prefix: bytes, lifetime: str, now: float) -> None:
        entry = (now + TTL_SECONDS[lifetime], lifetime)
        self._cached[prefix] = max(entry, self._cached.get(prefix, entry))


class SimulatedProvider:
    """One account at a provider: a window, a tokenizer (tiktoken) and a prompt cache."""

    def __init__(self, limit_tokens: int = DEFAULT_LIMIT_TOKENS, *, now: Callable[[], float] = time.monotonic) -> None:
        self.limit_tokens = limit_tokens
        self._cache = PromptCache(now=now)

    def check_window(self, params: Json) -> None:
        """Raise PromptTooLongError, in the provider's words, if a request does not fit."""
        size, max_tokens, limit = count_tokens(params), params["max_tokens"], self.limit_tokens
        if size > limit:
            raise PromptTooLongError(f"prompt is too long: {size} tokens > {limit} maximum")
        if size + max_tokens > limit:
            total = f"input length and `max_tokens` exceed context limit: {size} + {max_tokens} > {limit}"
            raise PromptTooLongError(f"{total}, decrease input length or `max_tokens` and try again")

    def finish(self, params: Json, reply: Reply) -> Json:
        """Return the finished message for a reply, cut at `max_tokens`. Store the request's marked prefixes."""
        prompt = _block_ends(params)
        content, output_tokens, is_cut = _cut(reply, params["max_tokens"])
        name = blake2b(prompt[-1].prefix + str(params["max_tokens"]).encode(), digest_size=12).hexdigest()
        for index, block in enumerate(content):
            if block["type"] == "tool_use":
                content[index] = {"id": f"toolu_{name}{index:02}", "caller": {"type": "direct"}, **block}
        usage = {**self._cache.bill(prompt), "output_tokens": output_tokens, "service_tier": "standard"}
        return {
            "id": f"msg_{name}", "type": "message", "role": "assistant", "model": params["model"], "content": content,
            "stop_reason": "max_tokens" if is_cut else reply.stop_reason,
            "stop_sequence": None if is_cut else reply.stop_sequence,
            "stop_details": {"type": "refusal"} if reply.stop_reason == "refusal" and not is_cut else None,
            "usage": {**usage, **(reply.usage or {})},
        }  # fmt: skip


def count_tokens(params: Json) -> int:
    """Return the tokens of a request."""
    return _block_ends(params)[-1].tokens


def _block_ends(params: Json) -> list[BlockEnd]:
    """Return the end of every block of a request, in the order in which the provider reads them."""
    ends: list[BlockEnd] = []
    running, total = blake2b(digest_size=16), 0
    for where, block in _blocks(params):
        control = block.get("cache_control")
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        running.update(f"{where}{json.dumps(plain)}".encode())
        total += _block_tokens(plain)
        ends.append(BlockEnd(running.digest(), total, control.get("ttl", "5m") if control else None))
    return ends


def _blocks(params: Json) -> Iterator[tuple[str, Json]]:
    for tool in params.get("tools") or ():
        yield "tool", tool
    for block in as_blocks(params.get("system")):
        yield "system", block
    for index, message in enumerate(params["messages"]):
        for block in as_blocks(message["content"]):
            yield f"{index} {message['role']}", block


def as_blocks(content: Any) -> list[Json]:
    """Return the content of a message, a result or a system prompt as blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _block_tokens(block: Json) -> int:
    match block.get("type"):
        case "text" | "thinking" as kind:
            return _text_tokens(block[kind])
        case "tool_result":
            return sum(map(_block_tokens, as_blocks(block.get("content"))))
        case "tool_use":
            return _text_tokens(f"{block['name']} {_compact(block['input'])}") + CALL_TOKENS
        case "image":
            return MEDIA_TOKENS
        case "document" if block["source"]["type"] != "text":
            return MEDIA_TOKENS
        case _:
            return _text_tokens(_compact(block))


@lru_cache(maxsize=20_000)
def _text_tokens(text: str) -> int:
    return pager.count_tokens(text)


def _cut(reply: Reply, max_tokens: int) -> tuple[list[Json], int, bool]:
    """Return as much of a reply as fits, its tokens, and whether something is missing."""
    room = max_tokens - END_TOKENS
    content: list[Json] = []
    used = 0
    for block in reply.blocks:
        size = _block_tokens({key: value for key, value in block.items() if key not in {RAW_JSON, "signature"}})
        if used + size > room:
            if block["type"] == "text":
                text: str = block["text"]
                length = bisect_right(range(len(text)), room - used, key=lambda end: _text_tokens(text[:end])) - 1
                content += [{**block, "text": text[:length]}] if length > 0 else []
            return content, max_tokens, True
        content.append(dict(block))
        used += size
    return content, used + END_TOKENS, False
