"""What an agent remembers at one moment, as data. Pure functions over a `pager.MemoryReader`; nothing is drawn here.

    >>> with MemoryReader.open(directory) as reading:
    ...     now = take(reading)                 # what the next request would hold
    ...     then = take(reading, at="s45")      # what the request held that the reply s45 answered
    >>> then.window.parts, then.core.blocks, then.steps

Every part of it is read by an index, so it costs the same however much the agent has lived through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime, tzinfo
from typing import Any, cast

from agents.explain.snapshot_parts import (
    ArchivedFact,
    ArchiveTier,
    CoreBlock,
    CoreTier,
    Moved,
    ResidentPage,
    ResidentStep,
    Snapshot,
    Thresholds,
    Window,
    WindowPart,
)
from agents.explain.window_parts import PARTS, fitted, model_of, tokens_of
from pager import blocks
from pager.clock import from_micros
from pager.limits import Limits
from pager.prompt import digest
from pager.prompt.state import PromptState
from pager.reader import MemoryReader
from pager.store.rows import Step
from pager.tokens.counter import Counter
from pager.types import Counts, Fact, FactUse, Json, Movement

FACTS = 5
MOVEMENTS = 10


def take(reading: MemoryReader, at: str | None = None, *, facts: int = FACTS, movements: int = MOVEMENTS) -> Snapshot:
    """The memory now, or in the request that the reply `at` answered; all of one moment, also while it is written."""
    with reading.at_one_moment():
        view, limits = reading.history.prompt(at), reading.history.limits_at(at)
        at = f"s{view.answered.step}" if at is not None and view.answered else None
        counter = reading.history.counter(model_of(view))
        held = _window(reading, view, limits, counter, at)
        scale = held.used_tokens / max(1, counter.tokens(view.counts()))
        return Snapshot(
            at,
            held,
            core_tier(reading, limits, at),
            tuple(resident_step(step, counter, scale, reading.zone) for step in view.steps),
            tuple(
                ResidentPage(stay.page_id, stay.how, f"s{stay.from_step}")
                for stay in reading.history.resident(at)
                if stay.how != "step"
            ),
            archive_tier(reading, at, facts),
            tuple(moved(movement) for movement in reading.ledger(limit=movements, at=at)),
        )


# the window


def window_at(reading: MemoryReader, at: str | None = None) -> Window:
    """The window alone, for who looks at nothing else."""
    with reading.at_one_moment():
        view = reading.history.prompt(at)
        return _window(reading, view, reading.history.limits_at(at), reading.history.counter(model_of(view)), at)


def _window(
    reading: MemoryReader, view: PromptState, limits: Limits | None, counter: Counter, at: str | None
) -> Window:
    opened = [movement.reason for movement in reading.ledger(events=["epoch"], limit=1, at=at)]
    told = [movement.event for movement in reading.ledger(events=["epoch", "notice"], limit=1, at=at)]
    lives = at is not None or view.epoch_lives
    return window(view, limits, counter, "".join(opened), noticed=told == ["notice"], lives=lives)


def window(
    view: PromptState, limits: Limits | None, counter: Counter, reason: str, *, noticed: bool, lives: bool
) -> Window:
    epoch, size = view.epoch, view.size(counter).tokens
    return Window(
        tuple(map(WindowPart, PARTS, fitted(list(tokens_of(view, counter).values()), size))),
        size,
        # Of a request that was answered the response said how large it was; of the next one it said so of most of it.
        view.base_tokens is not None and bool(view.answered and view.answered.usage),
        limits and limits.usable_tokens,
        limits and limits.limit_tokens,
        limits and limits.max_output_tokens,
        limits and thresholds(limits),
        model_of(view),
        epoch and epoch.id,
        reason,
        noticed,
        epoch is not None and not lives,
    )


def thresholds(limits: Limits) -> Thresholds:
    return Thresholds(*(limits.of_usable(share) for share in (limits.notify_at, limits.evict_at, limits.evict_to)))


# the tiers


def core_tier(reading: MemoryReader, limits: Limits | None, at: str | None) -> CoreTier:
    found = [
        CoreBlock(
            block.name, block.description, block.value, block.used_tokens, block.limit_tokens, block.read_only,
            block.file, reading.history.core_version_number(block), block.actor, block.at,
        )
        for block in reading.core(at)
    ]  # fmt: skip
    return CoreTier(tuple(found), sum(block.used_tokens for block in found), limits and limits.core_tokens)


def resident_step(step: Step, counter: Counter, scale: float, zone: tzinfo) -> ResidentStep:
    forms = [part.form for part in step.parts if part.kind == "said" and part.form]
    spoken = [form for form in forms if form.get("type") not in blocks.THINKING]
    size = round(scale * counter.tokens(sum((part.counts for part in step.parts if part.form), Counts())))
    who = "agent" if step.kind == "assistant" else step.name or "user"
    words = digest.first_words(" ".join(blocks.text_of(form) for form in spoken))
    return ResidentStep(f"s{step.id}", f"s{step.turn}", from_micros(step.at, zone), who, size, words)


def archive_tier(reading: MemoryReader, at: str | None, limit: int) -> ArchiveTier:
    if at is not None:
        last = reading.history.last_fact(at)
        newest = tuple(archived(fact) for fact in reading.inspect.newest_facts(limit, before=last + 1)) if last else ()
        return ArchiveTier(last, None, None, newest, (), ())
    counts = reading.inspect.fact_counts()
    return ArchiveTier(
        counts.total,
        counts.current,
        counts.never_used,
        tuple(archived(fact) for fact in reading.inspect.newest_facts(limit)),
        tuple(used(use) for use in reading.inspect.most_used_facts(limit)),
        tuple(archived(fact) for fact in reading.inspect.never_used_facts(limit)),
    )


def archived(fact: Fact) -> ArchivedFact:
    return ArchivedFact(
        fact.id, fact.text, fact.key, fact.tags, fact.at, fact.valid_from, fact.valid_until, fact.forgotten,
        fact.superseded_by, fact.purged,
    )  # fmt: skip


def used(use: FactUse) -> ArchivedFact:
    return replace(archived(use.fact), uses=use.uses, used_at=use.used_at)


def moved(movement: Movement) -> Moved:
    return Moved(
        movement.number, movement.at, f"s{movement.step}", movement.event, movement.page_id, movement.reason,
        movement.actor, movement.tokens, movement.detail,
    )  # fmt: skip


# for programs


def as_data(snapshot: Snapshot) -> Json:
    """The snapshot for JSON: the same keys at any moment, moments in ISO 8601."""
    data = cast(Json, _plain(asdict(snapshot)))
    data["window"]["free_tokens"] = snapshot.window.free_tokens
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value
