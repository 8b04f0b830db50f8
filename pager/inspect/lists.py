"""Long lists in pieces, and the places that hold a text: what a debug view asks of an agent, whatever its age.

>>> with Memory.open(directory) as memory:
...     fact = memory.archive("prefers window seats")
...     memory.inspect.facts("current", offset=0, limit=50).total
...     [found.id for found in memory.inspect.holding("WINDOW seats").facts]
1
['f1']

Lists are newest first and found by an index; looking for a text reads every text once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from pager import blocks
from pager.arguments import one_form, whole_number
from pager.call_lock import CallLock, locked
from pager.clock import to_micros
from pager.errors import NotFoundError, RejectedError
from pager.store import Store
from pager.store.lists import FACTS
from pager.store.rows import Asked, CoreVersion, Epoch, Piece, Pin, Rows, StepRow
from pager.tiers.archive import Archive
from pager.types import Fact, FactCounts, FactUse, Movement, Usage, number_of, read_page_id

MOST_PLACES = 25  # of each kind in which a text is found, oldest first
BATCH = 200
LONGEST_CHARS = 1_000  # of a text that is looked for; what is longer is known by its beginning
LONGEST_LIST = 1_000
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Places:
    """Where a text stands: parts of the conversation, facts, core blocks by name; `more` when there are others."""

    pieces: tuple[Piece, ...]
    facts: tuple[Fact, ...]
    core: tuple[str, ...]
    more: bool

    def __bool__(self) -> bool:
        return bool(self.pieces or self.facts or self.core)


class Inspection:
    """Read-only. Made by a `MemoryReader`, whose turn its calls take."""

    def __init__(self, store: Store, calls: CallLock, archive: Archive) -> None:
        self._store = store
        self._calls = calls
        self._archive = archive

    # lists

    @locked
    def requests(self, limit: int, through: str | None = None) -> list[Asked]:
        """The newest requests, in order; with `through` up to the one that this step answered."""
        number = None if through is None else _step(through)
        return self._store.lists.requests(_length(limit), number)

    @locked
    def requests_from(self, offset: int, limit: int) -> Rows[Asked]:
        return self._store.lists.requests_from(_offset(offset), _length(limit))

    @locked
    def around(self, step: str) -> tuple[str | None, str | None]:
        """The replies to a request before and after a step."""
        number = _step(step)
        found = self._store.prompt.answered_around(number)
        before, after = (None if near is None else f"s{near}" for near in found)
        return before, after

    @locked
    def epoch(self, number: int) -> Epoch | None:
        return self._store.prompt.epoch(number)

    @locked
    def usage(self) -> Usage:
        """What all requests together cost, in tokens."""
        return self._store.lists.usage()

    @locked
    def steps(self, offset: int, limit: int) -> Rows[StepRow]:
        return self._store.lists.steps(_offset(offset), _length(limit))

    @locked
    def step(self, page_id: str) -> StepRow:
        """One step as the list has it."""
        row = self._store.lists.step(_step(page_id))
        if row is None:
            raise NotFoundError(f"there is no step {page_id!r}.")
        return row

    @locked
    def pieces_of(self, step: int) -> list[Piece]:
        """The said parts of a step; none when there is no such step."""
        return self._store.lists.pieces_of(step)

    @locked
    def piece(self, part: int) -> list[Piece]:
        """The said part x<part>, if there is one."""
        found = self._store.lists.piece(part)
        return [found] if found else []

    @locked
    def facts(self, kind: str = "all", *, text: str = "", offset: int = 0, limit: int = 50) -> Rows[FactUse]:
        """Facts, or those of a kind: current, ended, used, unused; with `text` those that hold it."""
        if kind not in FACTS:
            raise RejectedError(f"{kind!r} is no kind of facts; there are {', '.join(FACTS)}.")
        return self._store.lists.facts(kind, text, _offset(offset), _length(limit))

    @locked
    def movements(self, events: Sequence[str] = (), *, offset: int = 0, limit: int = 50) -> Rows[Movement]:
        return self._store.lists.movements(tuple(events), _offset(offset), _length(limit))

    @locked
    def events(self) -> dict[str, int]:
        """How many rows of each event the ledger has."""
        return self._store.lists.events()

    @locked
    def pins(self) -> list[Pin]:
        """What is pinned, also what the prompt has not shown yet."""
        return self._store.prompt.pins()

    @locked
    def command(self, command_id: str) -> str | None:
        """What became of a command that was left in the inbox; None while it waits."""
        return self._store.settings.command(command_id)

    @locked
    def core_history(self, block: str) -> list[CoreVersion]:
        """Every version of a core block, oldest first."""
        return self._store.lists.core_history(block)

    # facts

    @locked
    def newest_facts(self, limit: int = 20, before: int | None = None) -> list[Fact]:
        """Return the newest facts; with `before` those with a lower number."""
        return self._store.archive.newest(whole_number(limit, "limit"), before)

    @locked
    def fact_counts(self) -> FactCounts:
        return self._store.archive.counts(self._now())

    @locked
    def most_used_facts(self, limit: int = 20) -> list[FactUse]:
        """Return the facts that searches and page_in returned most often."""
        return self._store.archive.most_used(whole_number(limit, "limit"))

    @locked
    def never_used_facts(self, limit: int = 20) -> list[Fact]:
        """Return the oldest facts without an end that nothing ever returned."""
        return self._store.archive.never_used(whole_number(limit, "limit"))

    @locked
    def current_fact(self, key: str) -> Fact | None:
        """Return the fact of a key that is true now, if there is one."""
        lasting = [fact for fact, _ in self._store.archive.versions(one_form(key), beyond=self._now())]
        return next((fact for fact in lasting if to_micros(fact.valid_from) <= self._now()), None)

    @locked
    def is_true(self, fact: Fact) -> bool:
        """Return True if a fact is true now."""
        return bool(self._store.archive.true_at([number_of(fact.id)], self._now(), ()))

    @locked
    def facts_by_key(self, prefix: str = "") -> list[tuple[int, str, int]]:
        """Return number, key and bytes of the facts that are true now and whose key begins with `prefix`, by key."""
        return self._store.archive.filed(self._now(), prefix)

    @locked
    def facts_without_key(self) -> list[tuple[int, int]]:
        """Return number and bytes of the facts without a key that are true now, newest first."""
        return self._store.archive.without_key(self._now())

    def _now(self) -> int:
        return to_micros(self._archive.present())

    # a text

    @locked
    def holding(self, text: str, most: int = MOST_PLACES) -> Places:
        """Every place that holds a text, oldest first, at most so many of each kind. Case and white space do not count.
        What our own tools answered only repeats other places, and is left out, with the calls that asked for it."""
        wanted, pattern = normal(text), like(text)
        browse = self._store.lists
        pieces = _first(
            most + 1,
            _all(lambda after: browse.pieces_like(pattern, after, BATCH), lambda piece: piece.part),
            lambda piece: holds(blocks.text_of(piece.block), wanted) and not self._ours(piece),
        )
        facts = _first(
            most + 1,
            _all(lambda after: browse.facts_like(pattern, after, BATCH), lambda fact: number_of(fact.id)),
            lambda fact: wanted in normal(fact.text),
        )
        core = [
            name
            for name in browse.core_like(pattern)
            if any(wanted in normal(version.block.value) for version in browse.core_history(name))
        ]
        more = len(pieces) > most or len(facts) > most
        return Places(tuple(pieces[:most]), tuple(facts[:most]), tuple(core), more)

    def _ours(self, piece: Piece) -> bool:
        """Whether it is a call of one of our own tools, or its result."""
        if piece.searchable or (piece.slot != "result" and piece.block.get("type") != "tool_use"):
            return False
        if piece.slot == "result":
            return True
        answers = [part for part in self._store.lists.pieces_of(piece.step) if part.slot == "result"]
        own = {part.block.get("tool_use_id") for part in answers if not part.searchable}
        return piece.block.get("id") in own

    @locked
    def searches(self, pages: Sequence[str], words: Sequence[str], limit: int) -> list[Movement]:
        """The newest searches that found or just missed one of the pages, or asked for one of the words, in order."""
        patterns = [f'%["{read_page_id(page)}",%' for page in pages] + [like(word) for word in words]
        return self._store.lists.searches(patterns, _length(limit))


_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": " ", "t": " ", "r": " "}


def normal(text: str) -> str:
    """A text as it is compared: without case, every white space the same, and accents joined to their letters, however
    they were typed."""
    return composed(composed(" ".join(text.split())).casefold())


def composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def holds(text: str, wanted: str) -> bool:
    """Whether a text holds a normal one, as it stands or as JSON, which is how the input of a tool call is told."""
    return wanted in normal(text) or (
        "\\" in text and wanted in normal(_ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), text))
    )


def like(text: str) -> str:
    """A pattern of LIKE that every text holding `text` fits, also in JSON: whatever may be written otherwise (another
    case, an escape, a line break, letters in pieces) is left open."""
    shown = " ".join(composed(text).split())[:LONGEST_CHARS]
    kept = "".join(char if _stands_as_it_is(char) else "\0" for char in shown)
    return "%" + "".join(f"{word}%" for word in kept.split("\0") if word)


def _stands_as_it_is(char: str) -> bool:
    """LIKE knows the two cases of ASCII letters; others are safe when they have but one, and cannot be in pieces."""
    has_one_form = char.lower() == char.upper() == char.casefold() and unicodedata.is_normalized("NFD", char)
    return char.isalnum() and (char.isascii() or has_one_form)


def _first(most: int, rows: Iterable[Row], fits: Callable[[Row], bool]) -> list[Row]:
    return list(islice(filter(fits, rows), most))


def _all(batch: Callable[[int], Sequence[Row]], number: Callable[[Row], int]) -> Iterator[Row]:
    """Rows in the order of their numbers, asked for in batches as they are needed."""
    after = 0
    while rows := batch(after):
        yield from rows
        after = number(rows[-1])


def _step(page_id: str) -> int:
    kind, number = read_page_id(page_id)
    if kind != "s":
        raise NotFoundError(f"{page_id!r} is not a step; steps are s45.")
    return number


def _offset(value: int) -> int:
    if whole_number(value, "offset") < 0:
        raise RejectedError(f"offset is {value}; give 0 or more.")
    return value


def _length(value: int) -> int:
    if not 0 <= whole_number(value, "limit") <= LONGEST_LIST:
        raise RejectedError(f"limit is {value}; ask for at most {LONGEST_LIST} at a time.")
    return value
