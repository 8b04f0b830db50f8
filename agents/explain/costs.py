"""What requests cost: tokens in, cached and out, dollars, and where a prefix was not found in the provider's cache.

Pure but for the reading. Prices are those with which the agent ran last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from agents.meter import Prices
from pager.memory import Memory
from pager.reader import MemoryReader
from pager.store.rows import Answered, Asked, Rows
from pager.types import Usage

NOTE = "prices"
LIFETIMES = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}  # of what the provider's cache keeps
ABOUT = 0.95  # of what was cached; a provider counts a few tokens more or less


@dataclass(frozen=True, slots=True)
class Cost:
    """One request. `broke` says why what had been cached was not read from the cache; empty when it was."""

    step: str
    at: datetime
    usage: Usage | None
    usd: float | None
    broke: str


@dataclass(frozen=True, slots=True)
class Costs:
    total: Usage
    usd: float | None
    requests: Rows[Cost]


def note(memory: Memory, prices: Prices | None) -> None:
    """Write down with which prices the agent runs, for those who know only its name."""
    told = json.dumps(asdict(prices)) if prices else None
    if memory.load_value(NOTE) != told:
        memory.save_value(NOTE, told)


def noted(reading: MemoryReader) -> Prices | None:
    told = reading.load_value(NOTE)
    return Prices(**json.loads(told)) if told else None


def costs(reading: MemoryReader, offset: int = 0, limit: int = 50) -> Costs:
    """The sum of all requests, and some of them, newest first."""
    with reading.at_one_moment():
        prices = noted(reading)
        piece = reading.inspect.requests_from(offset, limit + 1)  # with the one before the oldest, to compare
        settings = {epoch: _settings(reading, epoch) for epoch in {each.answered.epoch for each in piece.rows}}
        rows = [
            Cost(
                f"s{each.answered.step}", each.at, each.answered.usage, _usd(prices, each.answered.usage),
                broke(before, each, settings[each.answered.epoch]),
            )
            for each, before in zip(piece.rows[:limit], [*piece.rows[1:], None], strict=False)
        ]  # fmt: skip
        total = reading.inspect.usage()
        return Costs(total, _usd(prices, total), Rows(piece.total, rows))


def _settings(reading: MemoryReader, number: int) -> Mapping[str, Any]:
    epoch = reading.inspect.epoch(number)
    return epoch.settings if epoch else {}


def _usd(prices: Prices | None, usage: Usage | None) -> float | None:
    return prices.usd(usage) if prices and usage else None


def broke(before: Asked | None, now: Asked, settings: Mapping[str, Any]) -> str:
    """Why a request did not find in the cache what the one before had left there."""
    if before is None or not (_cached(before.answered) and now.answered.usage):
        return ""
    kept = _cached(before.answered)
    read = now.answered.usage.cache_read_input_tokens
    if read >= ABOUT * kept:
        return ""
    lost = f"{kept - read:,} tokens were not found in the cache"
    if before.answered.epoch != now.answered.epoch:
        return f"a new epoch began: {lost}"
    if before.answered.model != now.answered.model:
        return f"the model changed: {lost}"
    lifetime = LIFETIMES.get(str(settings.get("cache_ttl") or "5m"), LIFETIMES["5m"])
    passed = now.at - before.at
    if passed > lifetime:
        return f"{_minutes(passed)} had passed, and the cache keeps {_minutes(lifetime)}: {lost}"
    return f"the provider did not find the prefix, which was the same: {lost}"


def _minutes(span: timedelta) -> str:
    return f"{span.total_seconds() / 60:.0f} minutes"


def _cached(answered: Answered) -> int:
    usage = answered.usage
    return usage.cache_read_input_tokens + usage.cache_creation_input_tokens if usage else 0
