"""The parts of a request and their tokens: how full the window is, and with what, now or over many requests. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime, tzinfo
from itertools import accumulate

from pager import blocks
from pager.clock import from_micros
from pager.limits import Limits
from pager.prompt import digest
from pager.prompt.state import PromptState
from pager.store.rows import AnsweredRequest, Part
from pager.tokens.counter import Counter
from pager.types import Counts, number_of

# In the order of the prompt. What is left of usable is free.
MOST_COLUMNS = 480
PARTS = ("instructions", "tools", "core", "digest", "pinned", "request", "recalled", "steps")


@dataclass(frozen=True, slots=True)
class WindowPart:
    """A part of the window, one of `PARTS`, and its tokens."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds in tokens: where the agent gets a notice, where steps are evicted, and down to where."""

    notify_at: int
    evict_at: int
    evict_to: int

    @classmethod
    def of(cls, limits: Limits) -> "Thresholds":
        """Return the thresholds that some limits define."""
        return cls(*(limits.share_in_tokens(share) for share in (limits.notify_at, limits.evict_at, limits.evict_to)))


@dataclass(frozen=True, slots=True)
class WindowUse:
    """One request. The parts add up to `used_tokens`, which the provider counted (`counted`) or which is estimated.

    Limits are None before the first request: only a request tells the memory its window. `noticed` is True if the agent
    was told that the window fills, `ended` if the next request opens a new epoch.
    """

    parts: tuple[WindowPart, ...]
    used_tokens: int
    counted: bool
    usable_tokens: int | None
    limit_tokens: int | None
    max_output_tokens: int | None
    thresholds: Thresholds | None
    model: str
    epoch: int | None
    epoch_reason: str
    noticed: bool
    ended: bool
    free_tokens: int | None


@dataclass(frozen=True, slots=True)
class ResidentStep:
    """A step in the prompt: its tokens there, and its first words."""

    page_id: str
    turn: str
    at: datetime
    who: str
    tokens: int
    words: str


@dataclass(frozen=True, slots=True)
class Column:
    """A request: the tokens of each of `PARTS`. `opened` is the reason for the epoch that began with it, or empty."""

    step: str
    at: datetime
    epoch: int
    opened: str
    tokens: tuple[int, ...]
    used_tokens: int
    usable_tokens: int | None
    thresholds: tuple[int, int, int] | None  # notify_at, evict_at, evict_to


def window_of(
    state: PromptState, counter: Counter, limits: Limits | None, *, epoch_reason: str, noticed: bool, ended: bool
) -> WindowUse:
    """Return how full the window is with a request."""
    size = state.size(counter).tokens
    counts = {name: Counts() for name in PARTS} | (dict(state.epoch.sizes) if state.epoch else {})
    for part in (part for step in state.steps for part in step.parts if part.form):
        counts[part_name(part)] += part.counts
    estimates = [counter.tokens(counts[name]) for name in PARTS]
    usable = limits.usable_tokens if limits else None
    return WindowUse(
        parts=tuple(map(WindowPart, PARTS, share_out(size, estimates))),
        used_tokens=size,
        # Of the next request the provider counted all but what came since the last one.
        counted=state.base_tokens is not None and bool(state.answered and state.answered.usage),
        usable_tokens=usable, limit_tokens=limits.limit_tokens if limits else None,
        max_output_tokens=limits.max_output_tokens if limits else None,
        thresholds=Thresholds.of(limits) if limits else None,
        model=state.model, epoch=state.epoch.id if state.epoch else None, epoch_reason=epoch_reason,
        noticed=noticed, ended=state.epoch is not None and ended,
        free_tokens=None if usable is None else max(0, usable - size),
    )  # fmt: skip


def steps_of(state: PromptState, counter: Counter, zone: tzinfo) -> tuple[ResidentStep, ...]:
    """Return the steps of a request, with their share of its tokens."""
    scale = state.size(counter).tokens / max(1, counter.tokens(state.counts()))
    steps: list[ResidentStep] = []
    for step in state.steps:
        forms = [part.form for part in step.parts if part.kind == "said" and part.form]
        words = " ".join(blocks.text_of(form) for form in forms if form.get("type") not in blocks.THINKING)
        tokens = scale * counter.tokens(sum((part.counts for part in step.parts if part.form), Counts()))
        who, at = "agent" if step.kind == "assistant" else step.name or "user", from_micros(step.at, zone)
        first_words = digest.first_words(words)
        steps.append(ResidentStep(f"s{step.id}", f"s{step.turn}", at, who, round(tokens), first_words))
    return tuple(steps)


def part_name(part: Part) -> str:
    """Return the part of the window to which a part of a step belongs. An update counts as what it repeats."""
    if part.kind == "recalled":
        return "recalled"
    if part.kind == "update":
        return "pinned" if part.form and blocks.text_of(part.form).startswith("<pinned ") else "core"
    return "steps"


def share_out(total: int, estimates: Sequence[int]) -> list[int]:
    """Divide `total` in the proportions of the estimates, in whole numbers: the largest remainders round up."""
    whole = sum(estimates)
    if not whole:
        return [0] * len(estimates)
    shares = [divmod(estimate * total, whole) for estimate in estimates]
    left = total - sum(share for share, _ in shares)
    rounded_up = set(sorted(range(len(shares)), key=lambda place: -shares[place][1])[:left])
    return [share + (place in rounded_up) for place, (share, _) in enumerate(shares)]


def columns_of(
    state: PromptState, counter: Counter, requests: Sequence[tuple[AnsweredRequest, Limits | None]], opened: str
) -> Iterator[Column]:
    """Yield columns of requests of one epoch; `state` is the newest of them: within an epoch the prompt only grows."""
    parts = sorted((part for step in state.steps for part in step.parts if part.form), key=lambda part: part.id)
    growth: list[tuple[list[int], list[Counts]]] = []  # of each part of the window: ids, and the sum before each id
    for name in PARTS:
        own = [part for part in parts if part_name(part) == name]
        fixed = state.epoch.sizes.get(name, Counts()) if state.epoch else Counts()
        growth.append(([part.id for part in own], list(accumulate((part.counts for part in own), initial=fixed))))
    forms = ((step.id, part.form) for step in state.steps for part in step.parts if part.form)
    summed = {f"s{step}" for step, form in forms if blocks.is_providers_result(form)}  # by several passes
    for place, (request, limits) in enumerate(requests):
        estimates = [counter.tokens(sums[bisect_right(ids, number_of(request.last_part))]) for ids, sums in growth]
        counted = request.usage if request.step not in summed else None
        used = counted.whole_input if counted else request.estimated_tokens
        thresholds = astuple(Thresholds.of(limits)) if limits else None
        yield Column(
            step=request.step, at=request.at, epoch=request.epoch, opened="" if place else opened,
            tokens=tuple(share_out(used, estimates)), used_tokens=used,
            usable_tokens=limits.usable_tokens if limits else None, thresholds=thresholds,
        )  # fmt: skip
