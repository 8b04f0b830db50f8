"""The window over time: one column per request, divided into the parts of the window. Pure.

Within an epoch the prompt only grows. So the newest request of an epoch also tells the sizes of the ones before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from itertools import accumulate

from pager.inspect.window import PARTS, Thresholds, part_name, share_out
from pager.limits import Limits
from pager.prompt.state import PromptState
from pager.store.rows import AnsweredRequest
from pager.tokens.counter import Counter
from pager.types import Counts

MOST_COLUMNS = 120


@dataclass(frozen=True, slots=True)
class Column:
    """A request: the tokens of each of `PARTS`, which add up to `used_tokens`.

    `opened` is the reason for which an epoch began with it, and empty if none did.
    """

    step: str
    at: datetime
    epoch: int
    opened: str
    tokens: tuple[int, ...]
    used_tokens: int
    usable_tokens: int | None
    thresholds: tuple[int, int, int] | None  # notify_at, evict_at, evict_to


def columns_of(
    state: PromptState, counter: Counter, requests: Sequence[tuple[AnsweredRequest, Limits | None]], opened: str
) -> Iterator[Column]:
    """Yield the columns of some requests of one epoch with their limits. `state` is the newest of them."""
    parts = sorted((part for step in state.steps for part in step.parts if part.form), key=lambda part: part.id)
    growth: list[tuple[list[int], list[Counts]]] = []  # of each part of the window: ids, and the sum before each id
    for name in PARTS:
        own = [part for part in parts if part_name(part) == name]
        fixed = state.epoch.sizes.get(name, Counts()) if state.epoch else Counts()
        growth.append(([part.id for part in own], list(accumulate((part.counts for part in own), initial=fixed))))
    for place, (request, limits) in enumerate(requests):
        estimates = [counter.tokens(sums[bisect_right(ids, request.last_part)]) for ids, sums in growth]
        used = request.usage.whole_input if request.usage else request.estimated_tokens
        yield Column(
            step=request.step,
            at=request.at,
            epoch=request.epoch,
            opened="" if place else opened,
            tokens=tuple(share_out(used, estimates)),
            used_tokens=used,
            usable_tokens=limits.usable_tokens if limits else None,
            thresholds=astuple(Thresholds.of(limits)) if limits else None,
        )
