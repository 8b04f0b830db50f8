"""Rows as the store hands them up: of long lists for views, of the conversation and the prompt, of searches.

The rows of long lists are public: `pager.inspect` exports them. Their ids are text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, NamedTuple, TypeVar

from pager import blocks
from pager.safety.sources import Source
from pager.types import Block, Counts, Json, Usage

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """Some rows of a list, and the length of the whole list."""

    total: int
    rows: Sequence[Row]


class FactSize(NamedTuple):
    """The id, the key (empty for none) and the bytes of a fact's text."""

    id: str
    key: str
    bytes: int
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request, known by the step that answered it. It held the parts of the conversation up to `last_part`."""

    step: str
    at: datetime
    epoch: int
    model: str
    usage: Usage | None
    estimated_tokens: int
    last_part: str


@dataclass(frozen=True, slots=True)
class RequestSpan:
    """Some requests in a row: the first and the last, when the first was answered, their number, the tokens of the
    largest, and the newest epoch."""

    first: str
    last: str
    at: datetime
    count: int
    used_tokens: int
    epoch: int


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, resident or not. `begins` is the beginning of its text, `calls` are the names of the called tools."""

    page_id: str
    turn: str
    kind: str
    who: str
    at: datetime
    tokens: int
    resident: bool
    purged: bool
    begins: str
    calls: tuple[str, ...]
    via: tuple[str, ...] = ()
    ends_turn: bool = False  # the turn is answered, but for open calls


@dataclass(frozen=True, slots=True)
class SaidPart:
    """A said part of a step. It is not `searchable` if it is a result of one of our own tools."""

    page_id: str
    step: str
    slot: str
    searchable: bool
    block: Json

    @property
    def text(self) -> str:
        """Return the text as a person reads it."""
        return blocks.text_of(self.block)

    @property
    def is_thinking(self) -> bool:
        """Return True for the model's thinking."""
        return self.block.get("type") in blocks.THINKING


@dataclass(frozen=True, slots=True)
class CoreVersion:
    """A version of a core block, the newest step when it was written, and its number, counted from 1."""

    block: Block
    step: str
    ordinal: int


PartKind = Literal["said", "recalled", "notice", "update"]
Slot = Literal["user", "reply", "result"]
Span = tuple[int | None, int | None]  # half-open, in microseconds; None: no limit on that side
ALWAYS: Span = (None, None)


class FactFilter(NamedTuple):
    """The facts that are asked for: true at a moment, with all the tags, stored in a span, of a source."""

    at: int
    tags: Sequence[str] = ()
    stored: Span = ALWAYS
    source: str = ""
    only_trusted: bool = False


class End(NamedTuple):
    """The end of a fact: until when it was true, which one superseded it, why it was forgotten. None: it has not."""

    valid_until: int | None = None
    superseded_by: int | None = None
    forgotten: str | None = None


class Origin(NamedTuple):
    """A source of a fact, and when the fact was stored from it."""

    source: Source
    at: int


class EditRow(NamedTuple):
    """An edit of a sleep, as it is stored."""

    kind: Literal["new", "merge", "supersede", "end", "key", "core"]
    reason: str
    asks: str
    pages: Sequence[str]
    keeps: Sequence[str]
    after: Sequence[Json]
    block: str | None
    version: int | None
    value: str | None
    quotes: Sequence[tuple[int, int, int]]
    number: int = 0
    sleep: int = 0
    state: Literal["open", "applied", "refused", "stale", "undone"] = "open"
    why: str = ""
    done: Json = {}  # noqa: RUF012 - never changed


class TurnRow(NamedTuple):
    """A turn, with what was said in it: step, speaker, time, text and untrusted sources."""

    turn: int
    session: str
    steps: list[tuple[int, tuple[str, datetime, str, tuple[str, ...]]]]


NO_NAMES = frozenset[str]()


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
    sources: frozenset[str] = NO_NAMES  # the untrusted ones of all that it holds


@dataclass(slots=True)
class Epoch:
    """The life of one unchanged prompt prefix: everything before the conversation, as it was sent."""

    id: int
    tools: list[Json]
    system: list[Json]
    preamble: list[Json]
    digest: list[Json]
    settings: Json
    sizes: dict[str, Counts]
    reason: str
    noticed: bool = False
    sources: frozenset[str] = NO_NAMES  # the untrusted ones of core and preamble


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
    may_call: bool = True
    sources: frozenset[str] = NO_NAMES  # the untrusted ones of all that stood in it
    options: Json = field(default_factory=Json)  # parameters of this request alone


class Said(NamedTuple):
    """A searchable part, with its step and its speaker."""

    part: int
    step: int
    role: str
    name: str | None
    at: int
    block: Json
    sources: frozenset[str]


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
