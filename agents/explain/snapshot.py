"""An agent's memory at one moment, as data.

    >>> with MemoryReader.open(directory) as reader:
    ...     now = take(reader)                 # what the next request would hold
    ...     then = take(reader, at="s45")      # what the request held that the step s45 answered
    >>> then.window.parts, then.core.blocks, then.steps

Everything is read by an index, so it costs the same however old the agent is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agents.explain import AnyMemory
from pager import Checklist
from pager.inspect import ResidentStep, WindowUse
from pager.types import Block, Fact, FactUse, Movement, Residency, number_of

FACTS = 5
MOVEMENTS = 10


@dataclass(frozen=True, slots=True)
class CoreTier:
    """The core blocks. Their versions are counted from 1. `plans` are those that are checklists, by their names."""

    blocks: tuple[Block, ...]
    used_tokens: int
    limit_tokens: int | None
    plans: Mapping[str, Checklist]


@dataclass(frozen=True, slots=True)
class ArchiveTier:
    """The archive. Of an earlier moment only the facts are known, not the uses: these are counted as of now."""

    total: int
    current: int | None
    never_used: int | None
    newest: tuple[Fact, ...]
    most_used: tuple[FactUse, ...]
    unused: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An agent's memory now, or as it was in the request that the step `at` answered. `pages` are those in the prompt
    that do not stand there as a step: pinned, recalled, paged in, or the request."""

    at: str | None
    window: WindowUse
    core: CoreTier
    steps: tuple[ResidentStep, ...]
    pages: tuple[Residency, ...]
    archive: ArchiveTier
    movements: tuple[Movement, ...]


def take(reader: AnyMemory, at: str | None = None, *, facts: int = FACTS, movements: int = MOVEMENTS) -> Snapshot:
    """Return the memory now, or at the request that `at` answered. It is of one moment, also while the agent runs."""
    with reader.read_snapshot():
        window, steps = reader.inspect.window_and_steps(at)
        pages = tuple(residency for residency in reader.history.resident(at) if residency.how != "step")
        moved, inspect = tuple(reader.ledger(limit=movements, at=at)), reader.inspect
        if at is None:
            counts, newest = inspect.fact_counts(), tuple(inspect.newest_facts(facts))
            most_used, unused = tuple(inspect.most_used_facts(facts)), tuple(inspect.never_used_facts(facts))
            archive = ArchiveTier(counts.total, counts.current, counts.never_used, newest, most_used, unused)
        else:
            newest = tuple(inspect.newest_facts(facts, at))
            total = number_of(newest[0].id) if newest else 0
            archive = ArchiveTier(total, None, None, newest, (), ())
        return Snapshot(at, window, core_tier(reader, at), steps, pages, archive, moved)


def core_tier(reader: AnyMemory, at: str | None = None) -> CoreTier:
    """Return the core tier alone."""
    limits = reader.history.limits_at(at)
    blocks = tuple(replace(block, version=reader.history.core_version_number(block)) for block in reader.core(at))
    plans = {block.name: plan for block in blocks if (plan := Checklist.read(block.value))}
    used = sum(block.used_tokens for block in blocks)
    return CoreTier(blocks, used, limits.core_tokens if limits else None, plans)
