"""What a snapshot is made of: plain, frozen, and the same for the terminal, the browser and `--json`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pager.types import Json


@dataclass(frozen=True, slots=True)
class WindowPart:
    name: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """In tokens of the window: from where on the agent is told, from where on steps leave, and down to where."""

    notify_at: int
    evict_at: int
    evict_to: int


@dataclass(frozen=True, slots=True)
class Window:
    """One request. The parts add up to `used_tokens`, as the provider said it (`counted`) or as it is estimated.

    Limits are None before the first request: a memory does not know its window until something was sent. `ended`: the
    next request opens a new epoch.
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

    @property
    def free_tokens(self) -> int | None:
        return None if self.usable_tokens is None else max(0, self.usable_tokens - self.used_tokens)


@dataclass(frozen=True, slots=True)
class CoreBlock:
    """A core block: how full, and who edited it last. `version` counts from 1."""

    name: str
    description: str
    value: str
    used_tokens: int
    limit_tokens: int
    read_only: bool
    file: str | None
    version: int
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CoreTier:
    blocks: tuple[CoreBlock, ...]
    used_tokens: int
    limit_tokens: int | None


@dataclass(frozen=True, slots=True)
class ResidentStep:
    """A step in the prompt: `tokens` as it is carried there, and how it begins."""

    page_id: str
    turn: str
    at: datetime
    who: str
    tokens: int
    words: str


@dataclass(frozen=True, slots=True)
class ResidentPage:
    """A page that is in the prompt, but not as a step of the conversation: pinned, request, recalled or paged_in."""

    page_id: str
    how: str
    since: str


@dataclass(frozen=True, slots=True)
class ArchivedFact:
    """A fact. `uses` is None where it was not asked for."""

    page_id: str
    text: str
    key: str | None
    tags: tuple[str, ...]
    at: datetime
    valid_from: datetime
    valid_until: datetime | None
    forgotten: str | None
    superseded_by: str | None
    purged: bool
    uses: int | None = None
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ArchiveTier:
    """The archive. Of a moment in the past only what was stored by then is known: the counts of uses are today's."""

    total: int
    current: int | None
    never_used: int | None
    newest: tuple[ArchivedFact, ...]
    most_used: tuple[ArchivedFact, ...]
    unused: tuple[ArchivedFact, ...]


@dataclass(frozen=True, slots=True)
class Moved:
    """A movement of the ledger."""

    number: int
    at: datetime
    step: str
    event: str
    page_id: str | None
    reason: str
    actor: str
    tokens: int
    detail: Json


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An agent's memory at one moment: now, or as it was in the request that the reply `at` answered."""

    at: str | None
    window: Window
    core: CoreTier
    steps: tuple[ResidentStep, ...]
    pages: tuple[ResidentPage, ...]
    archive: ArchiveTier
    movements: tuple[Moved, ...]
