"""What the memory hands out, and the rows that its parts pass to each other. Plain, frozen where it can be.

Page ids are text outside (`f12` a fact, `s45` a step, `x3` a spilled part) and numbers inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pager.errors import NotFoundError, RejectedError

if TYPE_CHECKING:
    from pager.tokens import Counts

Json = dict[str, Any]
Actor = Literal["agent", "person", "pager", "file"]
PartKind = Literal["said", "recalled", "notice", "update"]
Slot = Literal["user", "reply", "result"]
FOREVER = 1 << 60


class PageId(NamedTuple):
    kind: Literal["f", "s", "x"]
    number: int

    def __str__(self) -> str:
        return f"{self.kind}{self.number}"


def read_page_id(text: str) -> PageId:
    """The page that `text` names, or `NotFoundError` with the forms that exist."""
    text = text if isinstance(text, str) else repr(text)  # pyright: ignore[reportUnnecessaryIsInstance] -- from JSON
    kind, digits = text.strip()[:1], text.strip()[1:]
    if kind not in ("f", "s", "x") or not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise NotFoundError(f"{text!r} is not a page id; pages are f12 (a fact), s45 (a step) or x3 (a spilled part).")
    return PageId(kind, int(digits))


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that was found, and why. The parts of a turn add up to its score: what its `words`, its `neighbours`,
    `who` said it, `when`, and its `meaning` gave it. Of a fact they are what it was judged by: BM25 and cosine."""

    page_id: str
    text: str
    at: datetime
    score: float
    parts: Mapping[str, float]
    who: str = ""
    tags: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    supersedes: int | None = None  # the number of the fact that this one took the place of


@dataclass(frozen=True, slots=True)
class Fact:
    """One version of a fact in the archive. It was true from `valid_from` until `valid_until` (None: still)."""

    number: int
    text: str
    key: str | None
    tags: tuple[str, ...]
    valid_from: datetime
    valid_until: datetime | None
    at: datetime
    actor: str
    step: int
    supersedes: int | None = None
    superseded_by: int | None = None
    forgotten: str | None = None
    purged: bool = False
    look_around: Callable[[], tuple[Hit, ...]] = field(default=tuple, repr=False, compare=False)

    @property
    def id(self) -> str:
        return f"f{self.number}"

    @property
    def neighbours(self) -> tuple[Hit, ...]:
        """The facts closest in meaning, of one that was just archived; searched for at the first look."""
        return self.look_around()


@dataclass(frozen=True, slots=True)
class FactUse:
    """How often a fact was brought back by a search or a page_in, and when last."""

    fact: Fact
    uses: int
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class FactCounts:
    """How many facts there are (purged ones do not count), are true at a moment, and were never used though open."""

    total: int
    current: int
    never_used: int


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """How a core block is to be: what a configuration says about it."""

    value: str = ""
    description: str = ""
    limit_tokens: int = 1000
    read_only: bool = False
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A core block as it now reads (or read, for an older version)."""

    name: str
    value: str
    description: str
    limit_tokens: int
    used_tokens: int
    read_only: bool
    file: str | None
    version: int
    actor: str
    at: datetime
    retired: bool = False


@dataclass(frozen=True, slots=True)
class PageText:
    """What `page_in` reads: `text` from `offset`, and where to read on (None at the end); from the beginning also the
    images and documents of the page, as blocks."""

    page_id: str
    text: str
    offset: int
    next_offset: int | None
    length: int
    where: str = ""
    media: tuple[Json, ...] = ()


class SaidStep(NamedTuple):
    """A step by its id: when it was said, and by whom."""

    page_id: str
    at: datetime
    who: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that has no result yet. `begun`: it may have run already."""

    id: str
    name: str
    input: Json
    step: int
    begun: bool = False
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class Movement:
    """A row of the ledger."""

    number: int
    at: datetime
    step: int
    event: str
    page_id: str | None
    reason: str
    actor: str
    tokens: int
    detail: Json


@dataclass(frozen=True, slots=True)
class Residency:
    """One interval in which a page was in the prompt: for the requests after step `from_step`, before `until_step`."""

    page_id: str
    how: str
    from_step: int
    until_step: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, ready to send: `client.messages.create(model=..., **request.params)`."""

    params: Json
    epoch: int
    tokens: int
    margin: int

    @property
    def messages(self) -> list[Json]:
        return self.params["messages"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a response says it cost. `input_tokens` is the uncached part, as on the wire."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    @property
    def whole_input(self) -> int:
        return self.input_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens

    @classmethod
    def read(cls, raw: Mapping[str, Any] | None) -> Usage | None:
        """The four numbers out of a response's `usage`; None when there are none."""
        if not raw:
            return None
        if not isinstance(raw, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- from JSON
            raise RejectedError(f"usage is {raw!r:.100}; give a dict with numbers of tokens.")
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        numbers = [raw.get(name) or 0 for name in names]
        if not all(isinstance(number, int) and 0 <= number < 2**53 for number in numbers):
            raise RejectedError(f"usage holds numbers of tokens, not {dict(raw)!r}.")
        return cls(*numbers)


@dataclass(frozen=True, slots=True)
class Problem:
    """What `check` found: which law or file, what is wrong, and whether it was mended."""

    where: str
    text: str
    fixed: bool = False


@dataclass(slots=True)
class Part:
    """One piece of a step as the prompt carries it now; `form` None is left out of the prompt."""

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

    @property
    def paused(self) -> bool:
        """Whether it stopped in the middle and, while it is the last step, has to go on before anything else."""
        return self.stop_reason == "pause_turn"

    @property
    def closed(self) -> bool:
        return not self.open_calls and not self.paused


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
    """A piece of a page that is kept in the prompt."""

    page_id: str
    offset: int
    length: int
    tokens: int
    unseen: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """What is kept of a request that was answered: with the steps it can be made again byte for byte."""

    step: int
    epoch: int
    through_part: int
    mark_part: int | None
    model: str
    estimate: int
    usage: Usage | None
