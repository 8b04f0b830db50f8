"""The prompt cache: what is written at marks, what a mark finds again, and when it is gone.

A mark at a block names the prefix that ends there. Writing happens at marks only. MemoryReader looks, from each mark,
at the mark's own block and the 19 before it, and takes the longest prefix that is still there; that renews it.
A prefix under the minimum is neither written nor found, and nobody says so.
"""

from __future__ import annotations

from dataclasses import dataclass

LOOKBACK_BLOCKS = 20
TTL_MINUTES = {"5m": 5.0, "1h": 60.0}


@dataclass(frozen=True, slots=True)
class Position:
    """A block of the prompt: the digest of everything up to it, and how many tokens that is."""

    prefix: bytes
    tokens: int
    mark: str | None


@dataclass(frozen=True, slots=True)
class Cached:
    """How a prompt's tokens divide. What is neither read nor written is plain input."""

    read: int = 0
    written_5m: int = 0
    written_1h: int = 0


class PromptCache:
    def __init__(self, *, min_tokens: int) -> None:
        self._min_tokens = min_tokens
        self._entries: dict[bytes, tuple[float, str]] = {}  # prefix -> (expires at this minute, ttl)

    def pass_through(self, positions: list[Position], now: float) -> Cached:
        marks = [
            index for index, position in enumerate(positions) if position.mark and position.tokens >= self._min_tokens
        ]
        if not marks:
            return Cached()
        found = self._find(positions, marks, now)
        read = positions[found].tokens if found is not None else 0
        last = positions[marks[-1]].tokens
        hours = [positions[index].tokens for index in marks if positions[index].mark == "1h"]
        split = max(read, max(hours, default=0))
        for index in marks:
            self._write(positions[index].prefix, positions[index].mark or "5m", now)
        return Cached(read, max(0, last - split), split - read)

    def _find(self, positions: list[Position], marks: list[int], now: float) -> int | None:
        best = None
        for mark in marks:
            for index in range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1):
                if self._alive(positions[index].prefix, now):
                    best = index if best is None else max(best, index)
                    break
        if best is not None:
            self._write(positions[best].prefix, self._entries[positions[best].prefix][1], now)
        return best

    def _alive(self, prefix: bytes, now: float) -> bool:
        entry = self._entries.get(prefix)
        return entry is not None and now < entry[0]

    def _write(self, prefix: bytes, ttl: str, now: float) -> None:
        expires, kept = self._entries.get(prefix, (now, ttl))
        if now < expires and TTL_MINUTES[kept] > TTL_MINUTES[ttl]:
            ttl = kept
        self._entries[prefix] = (now + TTL_MINUTES[ttl], ttl)
