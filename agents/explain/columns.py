"""The window over time: one column per request, stacked by part. A pure function over a `pager.MemoryReader`.

Within an epoch the prompt only grows, so the newest request of each epoch says what the ones before it held.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from agents.explain.window_parts import PARTS, fitted, model_of, part_of
from pager.limits import Limits
from pager.prompt.state import PromptState
from pager.reader import MemoryReader
from pager.store.rows import Asked, Part
from pager.types import Counts

MOST_COLUMNS = 120


@dataclass(frozen=True, slots=True)
class Column:
    """A request: the tokens of each part (in the order of `PARTS`), which add up to `used_tokens`. `opened` says why an
    epoch began with it, and is empty where none did."""

    step: str
    at: datetime
    epoch: int
    opened: str
    tokens: tuple[int, ...]
    used_tokens: int
    usable_tokens: int | None
    thresholds: tuple[int, int, int] | None  # notify_at, evict_at, evict_to


class _Grown:
    """What one part of the window held after each of its pieces."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._sums = [Counts()]

    def add(self, part: Part) -> None:
        self._ids.append(part.id)
        self._sums.append(self._sums[-1] + part.counts)

    def through(self, part: int) -> Counts:
        return self._sums[bisect_right(self._ids, part)]


def columns(reading: MemoryReader, limit: int = MOST_COLUMNS, through: str | None = None) -> tuple[Column, ...]:
    """The newest `limit` requests, oldest first; with `through` up to the one that this step answered."""
    with reading.at_one_moment():
        asked = reading.inspect.requests(limit + 1, through)
        before = asked[0].answered.epoch if len(asked) > limit else 0
        found: list[Column] = []
        for epoch, group in groupby(asked[-limit:] if limit else (), key=lambda each: each.answered.epoch):
            found += _of_epoch(reading, list(group), opens=epoch != before)
            before = epoch
        return tuple(found)


def _of_epoch(reading: MemoryReader, asked: Sequence[Asked], *, opens: bool) -> Iterable[Column]:
    view = reading.history.prompt(f"s{asked[-1].answered.step}")
    counter = reading.history.counter(model_of(view))
    grown = [_Grown() for _ in PARTS]
    for part in sorted((part for step in view.steps for part in step.parts if part.form), key=lambda part: part.id):
        grown[PARTS.index(part_of(part))].add(part)
    for place, each in enumerate(asked):
        known = each.answered
        estimates = [
            counter.tokens(_fixed(view, name) + own.through(known.through_part))
            for name, own in zip(PARTS, grown, strict=True)
        ]
        used = known.usage.whole_input if known.usage else known.estimate
        limits = reading.history.limits_at(f"s{known.step}")
        yield Column(
            f"s{known.step}",
            each.at,
            known.epoch,
            _reason(reading, known.step) if opens and not place else "",
            tuple(fitted(estimates, used)),
            used,
            limits and limits.usable_tokens,
            limits and _thresholds(limits),
        )


def _thresholds(limits: Limits) -> tuple[int, int, int]:
    return limits.of_usable(limits.notify_at), limits.of_usable(limits.evict_at), limits.of_usable(limits.evict_to)


def _fixed(view: PromptState, name: str) -> Counts:
    return view.epoch.sizes.get(name, Counts()) if view.epoch else Counts()


def _reason(reading: MemoryReader, step: int) -> str:
    return "".join(row.reason for row in reading.ledger(events=["epoch"], limit=1, at=f"s{step}"))
