"""Rows as the store hands them up: of the conversation, of the prompt, of searches, and of long lists for views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, NamedTuple, TypeVar

from pager.types import Block, Counts, Json, Usage

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """A piece of a list, and how long the whole list is."""

    total: int
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was answered, and when."""

    answered: Answered
    at: datetime


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, resident or not. `begins` is how its text begins, `calls` are the tools that it called."""

    page_id: str
    turn: int
    kind: str
    who: str
    at: datetime
    tokens: int
    resident: bool
    purged: bool
    begins: str
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A said part of a step. `searchable` is not what our own tools answered."""

    part: int
    step: int
    slot: str
    searchable: bool
    block: Json


@dataclass(frozen=True, slots=True)
class CoreVersion:
    """A version of a core block, the newest step when it was made, and the how manieth it is, from 1."""

    block: Block
    step: int
    ordinal: int


# the conversation and the prompt


PartKind = Literal["said", "recalled", "notice", "update"]
Slot = Literal["user", "reply", "result"]
Span = tuple[int | None, int | None]  # half-open, in microseconds; None: no limit on that side
ALWAYS: Span = (None, None)


@dataclass(slots=True)
class Part:
    """One piece of a step as the prompt carries it now. A `form` of None leaves it out of the prompt."""

    id: int
    kind: PartKind
    slot: Slot
    form: Json | None
    counts: Counts


@dataclass(slots=True)
class Step:
    """A step of the conversation with its parts, oldest first, and the ids of its calls without a result."""

    id: int
    kind: Literal["user", "assistant"]
    turn: int
    at: int
    parts: list[Part]
    open_calls: list[str]
    continues: bool = False
    ends_turn: bool = False
    stop_reason: str | None = None
    name: str | None = None
    paused: bool = False  # it stopped in the middle: while it is the last step, its reply must go on before all else


@dataclass(slots=True)
class Epoch:
    """The life of one unchanged prompt prefix: everything before the conversation, as it was sent."""

    id: int
    first_step: int
    tools: list[Json]
    system: list[Json]
    preamble: list[Json]
    digest: list[Json]
    settings: Json
    sizes: dict[str, Counts]
    reason: str
    noticed: bool = False


@dataclass(frozen=True, slots=True)
class Pin:
    """A piece of a page that stays in the prompt. An `unseen` one enters it with the next request."""

    page_id: str
    offset: int
    length: int
    tokens: int
    unseen: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """An answered request: with its steps it can be rebuilt byte for byte."""

    step: int
    epoch: int
    through_part: int
    mark_part: int | None
    model: str
    estimate: int
    usage: Usage | None


# searching


class Said(NamedTuple):
    """A searchable part, with its step and its speaker."""

    part: int
    step: int
    role: str
    name: str | None
    at: int
    block: Json


class SaidMeta(NamedTuple):
    """A searchable part without its text: speaker, time, session, and its number of words."""

    part: int
    step: int
    at: int
    kind: str
    role: str
    name: str | None
    session: str | None
    length: int
