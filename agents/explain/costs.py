"""The costs of requests: tokens in, cached and out, dollars, and where the provider's cache did not have the prefix.

Prices are those of the agent's last run.
"""

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from agents.explain import AnyMemory
from agents.meter import Prices
from pager.inspect import AnsweredRequest, Rows
from pager.memory import Memory
from pager.types import Usage

PRICES_KEY = "prices"
CACHE_LIFETIMES = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
CACHE_HIT_SHARE = 0.95  # of what was cached; a provider counts a few tokens more or less


@dataclass(frozen=True, slots=True)
class Cost:
    """One request. `broke` says why the cache did not have its prefix; it is empty if it had."""

    step: str
    at: datetime
    usage: Usage | None
    usd: float | None
    broke: str


@dataclass(frozen=True, slots=True)
class Costs:
    """The sum of all requests, and some of them, newest first."""

    total: Usage
    usd: float | None
    requests: Rows[Cost]


def save_prices(memory: Memory, prices: Prices | None) -> None:
    """Store the prices with which the agent runs, for programs that know only its name."""
    text = json.dumps(asdict(prices)) if prices else None
    if memory.load_value(PRICES_KEY) != text:
        memory.save_value(PRICES_KEY, text)


def load_prices(reader: AnyMemory) -> Prices | None:
    """Return the prices of the agent's last run, if it had any."""
    text = reader.load_value(PRICES_KEY)
    return Prices(**json.loads(text)) if text else None


def costs(reader: AnyMemory, offset: int = 0, limit: int = 50, at: str | None = None) -> Costs:
    """Return the sum of all requests, and some of them, newest first; with `at` up to the one that it answered."""

    def usd(usage: Usage | None) -> float | None:
        return prices.usd(usage) if prices and usage else None

    with reader.read_snapshot():
        prices = load_prices(reader)
        found = reader.inspect.requests(offset, limit + 1, at)  # with the one before the oldest, to compare
        epochs = {number: reader.inspect.epoch(number) for number in {request.epoch for request in found.rows}}
        rows: list[Cost] = []
        for request, before in zip(found.rows[:limit], [*found.rows[1:], None], strict=False):
            epoch = epochs[request.epoch]
            why = cache_loss(before, request, (epoch.settings.get("cache_ttl") if epoch else None) or "5m")
            rows.append(Cost(request.step, request.at, request.usage, usd(request.usage), why))
        total = reader.inspect.usage(at)
        return Costs(total, usd(total), Rows(found.total, rows))


def cache_loss(before: AnsweredRequest | None, now: AnsweredRequest, ttl: str = "5m") -> str:
    """Return why a request did not read from the cache what the one before had left there; empty if it did."""
    if before is None or before.usage is None or now.usage is None:
        return ""
    cached = before.usage.cache_read_input_tokens + before.usage.cache_creation_input_tokens
    read = now.usage.cache_read_input_tokens
    if read >= CACHE_HIT_SHARE * cached:
        return ""
    lost = f"{cached - read:,} tokens were not found in the cache"
    if before.epoch != now.epoch:
        return f"a new epoch began: {lost}"
    if before.model != now.model:
        return f"the model changed: {lost}"
    lifetime = CACHE_LIFETIMES.get(ttl, CACHE_LIFETIMES["5m"])
    if now.at - before.at > lifetime:
        passed, kept = (f"{span.total_seconds() / 60:.0f} minutes" for span in (now.at - before.at, lifetime))
        return f"{passed} had passed, and the cache keeps {kept}: {lost}"
    return f"the provider did not find the prefix, which was the same: {lost}"
