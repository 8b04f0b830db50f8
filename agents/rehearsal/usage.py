"""What a request costs: tiktoken's count of its text, and what of it the prompt cache would have had.

A plain reading of the provider's rules: a mark writes the prefix that ends there, a later request reads the longest
prefix it finds at one of its marks or within the 20 blocks before it; what is shorter than `CACHE_LEAST_TOKENS` is
never cached, and what was not read for five minutes (or an hour) is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from agents.rehearsal.wire import Json
from pager import blocks, tokens
from pager.tokens import media

CACHE_LEAST_TOKENS = 1_024
LOOKBACK_BLOCKS = 20
LIFE_SECONDS = {"5m": 300.0, "1h": 3600.0}
CALL_TOKENS = 8  # around the name and the input of a call


@dataclass(frozen=True, slots=True)
class Place:
    """The end of a block in a prompt: what stands before it, and how long a mark there keeps it."""

    prefix: bytes
    tokens: int
    mark: str | None


def places(params: Json) -> list[Place]:
    """Every block of a request, in the order in which the provider reads it."""
    result: list[Place] = []
    running, total = blake2b(digest_size=16), 0
    for where, block in _blocks(params):
        control = block.get("cache_control")
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        running.update(f"{where}{blocks.dump(plain)}".encode(errors="replace"))
        total += block_tokens(plain)
        result.append(Place(running.digest(), total, control.get("ttl", "5m") if control else None))
    whole = params.get("cache_control")
    if whole and result and not result[-1].mark:
        last = result.pop()
        result.append(Place(last.prefix, last.tokens, whole.get("ttl", "5m")))
    return result


def block_tokens(block: Json) -> int:
    total = _text_tokens(blocks.countable(block)) if "type" in block else _text_tokens(blocks.dump(block))
    total += sum(media.tokens(each) for each in blocks.media_in(block))
    return total + (CALL_TOKENS if block.get("type") == "tool_use" else 0)


def _blocks(params: Json) -> Iterator[tuple[str, Json]]:
    for tool in params.get("tools") or ():
        yield "tool", tool
    for block in _as_blocks(params.get("system")):
        yield "system", block
    for index, message in enumerate(params["messages"]):
        for block in _as_blocks(message["content"]):
            yield f"{index} {message['role']}", block


def _as_blocks(content: Any) -> list[Json]:
    return [blocks.text_block(content)] if isinstance(content, str) else list(content or ())


@lru_cache(maxsize=20_000)
def _text_tokens(text: str) -> int:
    return tokens.total(text)


class PromptCache:
    def __init__(self) -> None:
        self._until: dict[bytes, tuple[float, str]] = {}  # prefix -> when it is gone, and for how long it was kept

    def bill(self, prompt: list[Place], now: float) -> Json:
        """The input's share of a message's usage. Remembers the marks of this request."""
        self._until = {prefix: kept for prefix, kept in self._until.items() if kept[0] > now}
        marks = [index for index, place in enumerate(prompt) if place.mark and place.tokens >= CACHE_LEAST_TOKENS]
        found = [index for mark in marks if (index := self._nearest(prompt, mark)) is not None]
        read = prompt[max(found)].tokens if found else 0
        if found:
            self._keep(prompt[max(found)].prefix, self._until[prompt[max(found)].prefix][1], now)
        ends = {"5m": read, "1h": read}
        for index in marks:
            place = prompt[index]
            ends[place.mark or "5m"] = max(ends[place.mark or "5m"], place.tokens)
            self._keep(place.prefix, place.mark or "5m", now)
        hour = ends["1h"] - read
        minutes = max(0, ends["5m"] - ends["1h"])
        return {
            "input_tokens": (prompt[-1].tokens if prompt else 0) - read - hour - minutes,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": hour + minutes,
            "cache_creation": {"ephemeral_5m_input_tokens": minutes, "ephemeral_1h_input_tokens": hour},
        }

    def _nearest(self, prompt: list[Place], mark: int) -> int | None:
        back = range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1)
        return next((index for index in back if prompt[index].prefix in self._until), None)

    def _keep(self, prefix: bytes, ttl: str, now: float) -> None:
        gone, _ = self._until.get(prefix, (0.0, ttl))
        if now + LIFE_SECONDS[ttl] > gone:
            self._until[prefix] = (now + LIFE_SECONDS[ttl], ttl)
