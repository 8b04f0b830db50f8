"""The types of a sleep: what it proposes, and what came of it. Plain, frozen and picklable."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from pager.safety.sources import Source, untrusted_of
from pager.types import Json

EditKind = Literal["new", "merge", "supersede", "end", "key", "core"]
EditState = Literal["open", "applied", "refused", "stale", "undone"]


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact that an edit stores. It is true from `valid_from` on; None: from when it is stored."""

    text: str
    key: str | None = None
    tags: tuple[str, ...] = ()
    valid_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """The characters of a step that show what an edit says. A purge of the step leaves an empty text."""

    step: str
    begin: int
    end: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """A proposed change. It ends the facts `pages` and stores those of `after`, or gives a core block another text."""

    kind: EditKind
    reason: str
    pages: tuple[str, ...] = ()
    after: tuple[NewFact, ...] = ()
    keeps: tuple[str, ...] = ()  # facts without which it makes no sense
    block: str | None = None
    version: int | None = None  # of the block, as it read before
    value: str | None = None  # of the block afterwards
    asks: str = ""  # why a person has to decide; empty: it may be applied without one
    sources: tuple[Source, ...] = ()  # of all that it writes
    quotes: tuple[Quote, ...] = ()
    number: int = 0  # 0: it is not stored yet
    state: EditState = "open"
    why: str = ""  # it is stale, or was not undone
    before: tuple[str, ...] = ()  # the texts of `pages`, or of the block; empty once one was purged

    @property
    def via(self) -> tuple[str, ...]:
        """Return the untrusted sources of what it writes; none if that is trusted."""
        return untrusted_of(self.sources) if self.sources else ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """The edits that a sleep proposes. It is `finished` once nothing more is added; `detail` says what a model cost."""

    number: int
    at: datetime
    finished: bool
    edits: tuple[Edit, ...]
    detail: Json

    def count(self, state: EditState) -> int:
        """Return how many edits have a state."""
        return sum(edit.state == state for edit in self.edits)


@dataclass(frozen=True, slots=True)
class SleepUndone:
    """The outcome of undoing a sleep: the edits taken back, and those that stay, each with what has changed."""

    number: int
    undone: tuple[int, ...]
    stays: tuple[tuple[int, str], ...]


class SaidStep(NamedTuple):
    """A step that somebody said in a turn, with the untrusted sources behind it."""

    id: str
    who: str
    at: datetime
    text: str
    via: tuple[str, ...]


class SaidTurn(NamedTuple):
    """A turn that has left the window, gave no fact and was not read in a sleep."""

    id: str
    session: str
    steps: tuple[SaidStep, ...]

    @property
    def via(self) -> tuple[str, ...]:
        """Return the untrusted sources of all that was said in it."""
        return tuple(sorted({name for step in self.steps for name in step.via}))


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact that a model says it found, the steps it names, and what it quotes of them. Nothing of it is believed."""

    text: str
    steps: tuple[str, ...] = ()
    quote: str = ""
    key: str | None = None
    tags: tuple[str, ...] = ()


class FactPair(NamedTuple):
    """Two texts that are near in meaning: a fact (`f3`) or a new one of this sleep (`edit 7`), the older one first."""

    older: str
    newer: str
    texts: tuple[str, str]
    via: tuple[str, ...]


Verdict = Literal["both", "same", "replaces"]
