"""What was sent, summed up from the usage that the replies of real requests carried. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.demo.stage import Turn
from agents.meter import Prices

# The providers' usual prices, in parts of the price of an input token; replies are left out.
CACHE_PRICES = Prices(input=1.0, output=0.0, cache_read=0.1, cache_write=1.25)
PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Sent:
    """Everything that was sent until a turn was answered. `priced` is in uncached input tokens."""

    turn: int
    last_step: str
    request_tokens: int
    largest_tokens: int
    total_tokens: int
    read_share: float
    priced_tokens: float


def sent(turns: Sequence[Turn], until: int) -> Sent:
    """The first `until` of these turns; the request is the last one of turn `until`."""
    usages = [usage for turn in turns[:until] for _, usage in turn.usages]
    last_step, last = turns[until - 1].usages[-1]
    total = sum(usage.whole_input for usage in usages)
    return Sent(
        until,
        last_step,
        last.whole_input,
        max(usage.whole_input for usage in usages),
        total,
        sum(usage.cache_read_input_tokens for usage in usages) / total,
        sum(CACHE_PRICES.usd(usage) * PER_MILLION for usage in usages),
    )
