"""Decide what has to happen before the next request leaves. Pure: sizes and limits in, a plan out.

The plan is one of three: *append* (send as it is), *notify* (tell the agent that the window fills), *renew* (open a
new epoch: the oldest closed steps leave, and what is still too large is spilled). It never asks for two epochs, never
lets an open step or the last one leave, and never parts a step from the one that goes on where it paused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pager.limits import Limits

EVICT = "evict"  # the cause of a new epoch when the prompt is too large
FLOOR_TOKENS = 40  # what is left of a part when only its id is shown


@dataclass(frozen=True, slots=True)
class PartSize:
    """A part as a new epoch would carry it. Of a `divisible` part a piece can stay, of a spilled image only its id."""

    part: int
    tokens: int
    spillable: bool = True
    divisible: bool = True

    def at_most(self, level: int) -> int:
        """Return its size when it is spilled down to a level."""
        if not self.spillable:
            return self.tokens
        return min(self.tokens, max(level, FLOOR_TOKENS) if self.divisible else FLOOR_TOKENS)


@dataclass(frozen=True, slots=True)
class StepSize:
    """A step as a new epoch would carry it. A step that `stays` is carried wherever it stands (a request)."""

    step: int
    parts: Sequence[PartSize]
    closed: bool
    continues: bool = False
    stays: bool = False

    @property
    def tokens(self) -> int:
        """Return the tokens of all parts."""
        return sum(part.tokens for part in self.parts)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Everything the plan depends on. `now` is the next request as it stands; `fixed` what a new epoch starts with."""

    now: int
    fixed: int
    steps: Sequence[StepSize]
    noticed: bool = False
    cause: str = ""  # why the epoch must end, whatever its size
    forgotten: int = 0  # the last step that holds something of a forgotten source: up to it they leave, if they may


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do before the next request: which steps leave, and which parts are spilled."""

    action: Literal["append", "notify", "renew"]
    leaving: tuple[int, ...] = ()
    spill: Mapping[int, int] = field(default_factory=dict[int, int])  # part -> tokens it may keep
    unannounced: bool = False
    shortage: int = 0  # tokens by which it still does not fit; then nothing can be made smaller


def plan(sizes: Sizes, limits: Limits) -> Plan:
    """Decide what has to happen before the next request."""
    over = sizes.now >= limits.evict_tokens
    if not over and not sizes.cause:
        if not sizes.noticed and sizes.now >= limits.notify_tokens:
            return Plan("notify", leaving=leaving(sizes, limits.target_tokens))
        return Plan("append")
    if over and not sizes.cause and sizes.now <= limits.usable_tokens:
        gone = leaving(sizes, limits.target_tokens)
        if not any(step.tokens for step in sizes.steps if step.step in gone and not step.stays):
            return Plan("append")  # as large as it is, it fits, and a new epoch would be no smaller
    if over and not sizes.cause and not sizes.noticed:
        # A jump from below notify_at: one announced request more, if its reply and a part still fit after it.
        if sizes.now + limits.max_output_tokens + limits.max_part_tokens <= limits.usable_tokens:
            return Plan("notify", leaving=leaving(sizes, limits.target_tokens))
        return _renew(sizes, limits, EVICT, unannounced=True)
    return _renew(sizes, limits, sizes.cause or EVICT)


def leaving(sizes: Sizes, target: int) -> tuple[int, ...]:
    """Return the oldest steps that have to leave until `target` is met, or all that may."""
    total = sizes.fixed + sum(step.tokens for step in sizes.steps)
    gone: list[int] = []
    count = 0  # how many of the oldest steps leave: a cut stands only where the next step does not go on
    for index, step in enumerate(sizes.steps[:-1]):
        if (total <= target and not step.continues and step.step > sizes.forgotten) or not step.closed:
            break
        gone.append(step.step)
        if not step.stays:
            total -= step.tokens
        if not sizes.steps[index + 1].continues:
            count = len(gone)
    return tuple(gone[:count])


def _renew(sizes: Sizes, limits: Limits, cause: str, *, unannounced: bool = False) -> Plan:
    fresh = sizes.fixed + sum(step.tokens for step in sizes.steps)
    gone: tuple[int, ...] = ()
    if fresh >= limits.evict_tokens or cause == EVICT:
        gone = leaving(sizes, limits.target_tokens)
    elif gone := leaving(sizes, fresh):
        unannounced = True
    left = set(gone)
    kept = [part for step in sizes.steps if step.stays or step.step not in left for part in step.parts]
    total = sizes.fixed + sum(part.tokens for part in kept)
    spill: dict[int, int] = {}
    if total > limits.usable_tokens:
        spill, total = spilled(kept, total, limits.evict_tokens, limits.max_part_tokens)
    return Plan("renew", gone, spill, unannounced, max(0, total - limits.usable_tokens))


def spilled(parts: Sequence[PartSize], total: int, target: int, ceiling: int) -> tuple[dict[int, int], int]:
    """Lower the largest parts to one level, halved from `ceiling` until `target` is met. Return levels and total."""
    level = ceiling
    while True:
        over = [part for part in parts if part.spillable and part.tokens > max(level, FLOOR_TOKENS)]
        over.sort(key=lambda part: -part.tokens)
        if total - sum(part.tokens - part.at_most(level) for part in over) <= target or level == 0:
            break
        level = level // 2 if level >= 2 * FLOOR_TOKENS else 0
    cut: dict[int, int] = {}
    for part in over:
        if total <= target:
            break
        cut[part.part] = level
        total -= part.tokens - part.at_most(level)
    return cut, total
