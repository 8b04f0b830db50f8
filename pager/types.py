"""The public types: what the memory hands out. Plain, frozen where they can be, and picklable.

Page ids are text: `f12` is a fact, `s45` a step, `x3` a spilled part, `k3` a skill. `handbook/f3` is a fact of a shared
memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import datetime
from operator import add
from typing import Any, Literal, NamedTuple, cast

from pager.errors import NotFoundError, RejectedError, brief
from pager.safety.sources import Source

Json = dict[str, Any]
UntrustedWrites = Literal["label", "ask", "refuse"]  # what a block does with text that has untrusted sources
FOREVER = 1 << 60
MAX_DESCRIPTION, MAX_SKILL = 1024, 100_000  # characters of a skill
_SKILL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
OF_TENANT = ".."  # between a tenant and the name of its agent; no id has it, so that a name has one reading
PAGE_KINDS = ("f", "s", "x", "k")


class PageId(NamedTuple):
    """A page id, taken apart."""

    kind: Literal["f", "s", "x", "k"]
    number: int

    def __str__(self) -> str:
        return f"{self.kind}{self.number}"


def read_page_id(text: str) -> PageId:
    """Parse a page id. Raises NotFoundError that lists the forms of page ids."""
    text = text if isinstance(text, str) else repr(text)  # pyright: ignore[reportUnnecessaryIsInstance] -- from JSON
    kind, digits = text.strip()[:1], text.strip()[1:]
    if kind not in PAGE_KINDS or not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        kinds = "f fact, s step, x spilled part, k skill"
        raise NotFoundError(f"{text!r} is not a page id: a letter ({kinds}) and a number.")
    return PageId(kind, int(digits))


def read_step_id(text: str) -> int:
    """Parse the id of a step. Raises NotFoundError for any other text."""
    kind, number = read_page_id(text)
    if kind != "s":
        raise NotFoundError(f"{text!r} is not a step: the id of a step is s and a number.")
    return number


def kind_of(page_id: str) -> str:
    """Return the letter in an id, also in one of a shared memory (`handbook/f3`)."""
    return page_id.rpartition("/")[2][:1]


def is_shared(page_id: str) -> bool:
    """Return True for the id of a page of a shared memory."""
    return "/" in page_id


def number_of(page_id: str) -> int:
    """Return the number in an id that the memory itself made."""
    return int(page_id[1:])


class Counts(NamedTuple):
    """Tokens by kind of text, because other tokenizers differ from tiktoken by a different factor for each kind."""

    words: int = 0  # ASCII letters, with the space before them
    digits: int = 0  # any ASCII digit
    other: int = 0  # anything beyond ASCII: other scripts, accented letters, emoji
    code: int = 0  # punctuation, symbols, runs of white space, and letters glued to them, as in "(self"
    media: int = 0  # images and documents; no text gives any

    @property
    def total(self) -> int:
        """Return the sum of the counts."""
        return sum(self)

    # A tuple's + would append. Here it adds up.
    def __add__(self, more: Counts) -> Counts:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Counts(*map(add, self, more))

    @classmethod
    def sum(cls, counts: Iterable[Counts]) -> Counts:
        """Add many counts up in one call."""
        rows = list(counts)
        return cls(*map(sum, zip(*rows, strict=True))) if rows else ZERO


ZERO = Counts()


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result, and why it was found.

    The parts of a score add up to it: what its `words`, the nearness of its `meaning` and the match of its word pieces
    (`late`) contributed; for a step also its `neighbours`, the speaker (`who`), the time (`when`) and the `facts` that
    were stored from it. Scores of facts and steps can be compared within one search of both.
    """

    page_id: str
    text: str
    at: datetime
    score: float
    parts: Mapping[str, float]
    who: str = ""
    tags: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    supersedes: str | None = None
    sources: tuple[Source, ...] = ()  # of a step only the untrusted ones
    via: tuple[str, ...] = ()  # the names among them that make it untrusted; none if it is trusted
    cosine: float | None = None  # of a fact's text with the question; None without an embedder


@dataclass(frozen=True, slots=True)
class Fact:
    """One version of a fact. It was true from `valid_from` until `valid_until` (None: it still is)."""

    id: str
    text: str
    key: str | None
    tags: tuple[str, ...]
    valid_from: datetime
    valid_until: datetime | None
    at: datetime  # when it was stored
    actor: str
    step: str  # the newest step when it was stored
    supersedes: str | None = None
    superseded_by: str | None = None
    forgotten: str | None = None  # the reason why it was ended
    purged: bool = False
    sources: tuple[Source, ...] = ()
    via: tuple[str, ...] = ()  # the names among them that make it untrusted; none if one source is trusted
    expires: datetime | None = None  # the end that was given when it was stored; valid_until may be earlier


@dataclass(frozen=True, slots=True)
class FactUse:
    """The uses of a fact: how often and when last searches and `page_in` returned it."""

    fact: Fact
    uses: int
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class FactCounts:
    """The number of all facts, of those that are true now, and of the true ones that nothing ever returned."""

    total: int  # without purged ones
    current: int
    never_used: int


@dataclass(frozen=True, slots=True)
class Record:
    """A message from elsewhere, with the form in which its program stores it (`data`), if that was given."""

    id: str
    role: str
    text: str
    at: datetime
    name: str | None
    session: str | None
    data: Json | None


@dataclass(frozen=True, slots=True)
class SessionUse:
    """A session of messages from elsewhere: its name, the number of its messages, and when the last one was said."""

    name: str
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class SourceForgotten:
    """What forgetting a source did, or would do. All are ids, but for the names of blocks."""

    source: str
    facts: tuple[str, ...]  # ended: they had no other source
    left: tuple[str, ...]  # facts that lost the source and have another one
    restored: tuple[str, ...]  # ended facts that are true again, as new ones
    blocks: tuple[str, ...]  # core blocks that went back to an earlier version
    lines: tuple[str, ...]  # what these blocks lost, each as `block: line`; a person may have added some of them
    pins: tuple[str, ...]  # pinned steps and parts of steps that were unpinned
    steps: tuple[str, ...]  # steps in the prompt that hold something of the source; they leave with the next request


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A turn that was withdrawn, and what that did: ids, but for its text, and the names of blocks and tools."""

    text: str  # what was said
    steps: tuple[str, ...]
    facts: tuple[str, ...]  # that the agent stored in it: they have ended
    restored: tuple[str, ...]  # what these superseded, or the agent forgot, is true again, as new facts
    blocks: tuple[str, ...]  # core blocks that the agent changed in it: they have their texts from before
    kept: tuple[str, ...]  # core blocks that somebody else has changed since: they stay as they are
    tools: tuple[str, ...]  # that ran, or may have: what they did elsewhere stays done


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """The configuration of a core block."""

    value: str = ""
    description: str = ""
    limit_tokens: int = 1000
    read_only: bool = False
    file: str | None = None
    untrusted_writes: UntrustedWrites = "label"


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """The configuration of a skill: instructions for one kind of work, which are read when they are needed."""

    name: str
    description: str  # one line in every prompt: what it is for, and when
    text: str

    @property
    def fault(self) -> tuple[Literal["name", "description", "text"], str] | None:
        """Return which part of it cannot be used, and why; None if all can."""
        with suppress(NotFoundError):
            read_page_id(self.name)
            return "name", f"{self.name!r} reads like the id of a page, so it cannot name a skill. Take another name."
        if not _SKILL_NAME.fullmatch(self.name):
            return "name", f"{brief(self.name, 80)} is no name for a skill: letters, digits, _ and -, at most 64."
        if not self.description.strip():
            return "description", "a skill needs a description: what it is for, and when. The agent chooses by it."
        if len(self.description) > MAX_DESCRIPTION:
            size = f"{len(self.description):,} characters, and at most {MAX_DESCRIPTION:,} are allowed"
            return "description", f"the description has {size}: it is in every prompt. Shorten it."
        if len(self.text) > MAX_SKILL:
            size = f"{len(self.text):,} characters, and at most {MAX_SKILL:,} are allowed"
            return "text", f"the skill has {size}. Move parts of it to files beside it."
        return None if self.text.strip() else ("text", "the skill says nothing. Write what the agent has to do.")


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill of an agent, without its text, which is the page `id`. A name keeps its id."""

    id: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Block:
    """A version of a core block."""

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
    untrusted_writes: UntrustedWrites = "label"
    via: tuple[str, ...] = ()  # the untrusted sources of its value
    emptied_by: tuple[str, ...] = ()  # of a block without text: those of who emptied it


@dataclass(frozen=True, slots=True)
class PageText:
    """A piece of a page from `offset` on, and where to read on (None at the end). The first one has the media."""

    page_id: str
    text: str
    offset: int
    next_offset: int | None
    length: int
    where: str = ""  # how the page is in the prompt already, as a sentence; empty if it is not
    media: tuple[Json, ...] = ()
    via: tuple[str, ...] = ()  # the untrusted sources of the page


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call without a result. A `begun` one may have run; one that `awaits_approval` needs a person."""

    id: str
    name: str
    input: Json
    step: str
    begun: bool = False
    awaits_approval: bool = False
    why: str = ""  # a person is asked, if not because its tool always asks


@dataclass(frozen=True, slots=True)
class Movement:
    """A row of the ledger."""

    number: int
    at: datetime
    step: str  # the newest step when it was written
    event: str
    page_id: str | None
    reason: str
    actor: str
    tokens: int
    detail: Json


@dataclass(frozen=True, slots=True)
class Residency:
    """An interval in which a page was in the prompt: in the requests after `from_step`, up to `until_step`."""

    page_id: str
    how: str  # step, request, pinned, paged_in or recalled
    from_step: str
    until_step: str | None  # None: it still is
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is ready to be sent: `client.messages.create(model=..., **request.params)`."""

    params: Json
    epoch: int
    tokens: int
    margin: int

    @property
    def messages(self) -> list[Json]:
        """Return the messages of the request."""
        return self.params["messages"]


@dataclass(frozen=True, slots=True)
class Usage:
    """The token counts of a response, and the searches of the provider's own tool, which cost extra. `input_tokens` is
    the uncached part, as on the wire."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    web_search_requests: int = 0

    @property
    def whole_input(self) -> int:
        """Return the input tokens, from the cache or not."""
        return self.input_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))

    @classmethod
    def read(cls, raw: Mapping[str, Any] | None) -> Usage | None:
        """Read the `usage` of a response; None if it has none."""
        if not raw:
            return None
        if not isinstance(raw, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- from JSON
            raise RejectedError(f"usage is {brief(raw)}; give a dict with numbers of tokens.")
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        numbers = [raw.get(name) or 0 for name in names]
        at_provider = raw.get("server_tool_use")
        searches = cast("Json", at_provider).get("web_search_requests") if isinstance(at_provider, Mapping) else 0
        numbers.append(searches or 0)
        if not all(isinstance(number, int) and 0 <= number < 2**53 for number in numbers):
            raise RejectedError(f"usage holds numbers of tokens and searches, not {dict(raw)!r}.")
        return cls(*numbers)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that `check` found: which law or file, what is wrong, and whether it was repaired."""

    where: str
    text: str
    fixed: bool = False
