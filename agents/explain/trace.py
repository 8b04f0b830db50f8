"""The life of a text: written, moved, superseded, evicted and why, searched for, found or missed by what margin.

>>> life = trace(reader, "prefers window seats")
>>> life.verdict.present, life.verdict.reasons        # is it in the prompt, and if not, why
>>> trace(reader, "f12", at="s45")                    # a page by its id, as of the request that s45 answered
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from agents.explain import AnyMemory, trace_events
from agents.explain.trace_events import RESIDENCIES, TraceEvent, quoted, searches
from agents.explain.trace_reasons import is_purged, reasons
from pager.errors import NotFoundError, RejectedError
from pager.inspect import Places, PromptPiece, SaidPart, contains_text, normalize_text
from pager.types import Fact, Hit, read_page_id, read_step_id

MOST = 5  # pages, searches and similar pages, unless others are asked for
MOST_COUNTED = 100  # places of a kind that are looked at to choose from
MOST_EVENTS = 5  # of a page: the first and the newest
MOST_REASONS = 4
SIMILAR_CHARS = 160
MOST_SHOWN = 6  # pieces of a request that are named as places


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of a request that holds the text."""

    part: str
    title: str
    page_id: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The presence of a text in the request that the step `at` answered, or in the next one (None): where, or why not.
    `more_places` counts those beyond `places`."""

    at: str | None
    present: bool
    places: tuple[Place, ...] = ()
    reasons: tuple[str, ...] = ()
    more_places: int = 0


@dataclass(frozen=True, slots=True)
class PageLife:
    """The life of one place of the text: a page, or a core block. `events` are the first and the newest ones, in order;
    `more_events` stood between them. It is `present` if it holds the text in the request of the verdict."""

    page_id: str | None
    block: str | None
    present: bool
    events: tuple[TraceEvent, ...]
    more_events: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The life of a text: the places that hold it, those in the prompt and the newest first, and the newest searches
    for it. `known` is False if no place holds it; `near` is then what is similar. `more_pages` and `more_searches` are
    left out; `uncounted` is True if it stands in more places than were looked at."""

    text: str
    known: bool
    verdict: Verdict
    pages: tuple[PageLife, ...]
    more_pages: int
    uncounted: bool
    searches: tuple[TraceEvent, ...]
    more_searches: int
    near: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class _Subject:
    """The places that hold the text, and the page that was named by its id. `wanted` is the text to look for in
    requests; it is empty for a step or a part, which are looked for by their ids."""

    wanted: str
    places: Places
    page: str | None = None
    purged: bool = False

    @classmethod
    def find(cls, reader: AnyMemory, text: str) -> _Subject:
        """Return the page that the text names by its id, if there is one, else the places that hold the text."""
        with suppress(NotFoundError):  # it is no id, or the id of nothing: then it is a text to look for
            named = read_page_id(text)
            if named.kind == "f":
                fact = reader.fact(text)
                return cls(normalize_text(fact.text), Places((), (fact,), (), more=False), str(named), fact.purged)
            if named.kind == "k":
                reader.page_text(text)
                return cls("", Places((), (), (), more=False), str(named))
            if parts := tuple(reader.inspect.said_parts(str(named))):
                purged = reader.inspect.step(parts[0].step).purged
                return cls("", Places(parts, (), (), more=False), str(named), purged)
        return cls(normalize_text(text), reader.inspect.find_text(text, MOST_COUNTED))

    @property
    def steps(self) -> dict[str, list[SaidPart]]:
        steps: dict[str, list[SaidPart]] = {}
        for part in self.places.parts:
            steps.setdefault(part.step, []).append(part)
        return steps

    @property
    def texts(self) -> dict[str, str]:
        """Return the texts of the pages by their ids."""
        said = {page: " ".join(part.text for part in parts) for page, parts in self.steps.items()}
        return said | {fact.id: fact.text for fact in self.places.facts}

    @property
    def pages(self) -> tuple[str, ...]:
        if self.page and not self.places:
            return (self.page,)  # a skill, which is read from a file: nobody said or stored it
        return (*self.steps, *(fact.id for fact in self.places.facts))

    def stands_in(self, piece: PromptPiece) -> bool:
        if self.purged:
            return False
        if self.wanted:
            return contains_text(piece.text, self.wanted)
        own = piece.key in {f"part:{part.page_id[1:]}" for part in self.places.parts}
        if self.page in self.pages:  # a step, also when only the ends of a part of it are left
            return own or piece.page_id == self.page
        return piece.page_id != self.page if own else piece.page_id == self.page


def trace(reader: AnyMemory, text: str, at: str | None = None, *, limit: int = MOST) -> Trace:
    """Return the life of `text`, or of the page of that id, and its presence in a request: the one that `at` answered
    (or the next one that was answered after it); without `at` the next request. At most `limit` pages and searches."""
    if not text.strip():
        raise RejectedError("there is nothing to look for; give a piece of the text, or a page id such as f12.")
    with reader.read_snapshot():
        at = None if at is None else reader.inspect.reply_for(at)
        subject = _Subject.find(reader, text)
        known = bool(subject.places or subject.pages)
        missing = "" if known else _missing_page(reader, text)
        hits: list[Hit] = []
        if not (missing or known):
            hits += reader.search_archive(text, limit=limit)
            hits += reader.search_recall(text, limit=limit)
        held = [] if missing else _held(reader, subject, at)
        names = _by_relevance(subject, held, at, partial(trace_events.has_ended, reader))
        verdict = _verdict(reader, subject, held, names, at)
        verdict = Verdict(at, present=False, reasons=(missing,)) if missing else verdict
        lives = tuple(_life(reader, subject, name, held) for name in names[:limit])
        found = list(_searches(reader, subject))[::-1]
    near = tuple(replace(hit, text=" ".join(hit.text[:SIMILAR_CHARS].split())) for hit in hits)
    more, more_found = max(0, len(names) - limit), max(0, len(found) - limit)
    return Trace(text, known, verdict, lives, more, subject.places.more, tuple(found[:limit]), more_found, near)


def _missing_page(reader: AnyMemory, text: str) -> str:
    """Return the pages that exist, if the text is the id of a page that does not."""
    try:
        kind, _ = read_page_id(text)
    except NotFoundError:
        return ""
    if kind == "x":
        parts = dict.fromkeys(row.page_id for row in reader.ledger(events=["spill"], limit=MOST_SHOWN) if row.page_id)
        existing = f"the last ones are {', '.join(parts)}" if parts else "none was spilled yet"
        return f"There is no part {quoted(text.strip())}; of those that were too large {existing}."
    if kind == "k":
        skills = ", ".join(f"{skill.id} ({skill.name})" for skill in reader.inspect.skills())
        return f"There is no skill {quoted(text.strip())}: {f'there are {skills}' if skills else 'the agent has none'}."
    last = (reader.inspect.facts(limit=0) if kind == "f" else reader.inspect.steps(0, 0)).total
    existing = f"the last one is {kind}{last}" if last else "there are none yet"
    return f"There is no {'fact' if kind == 'f' else 'step'} {quoted(text.strip())}: {existing}."


def _by_relevance(
    subject: _Subject, held: Sequence[Place], at: str | None, has_ended: Callable[[Fact], bool]
) -> list[str]:
    """Return the places of a text, pages by their ids and core blocks by their names: what is in the prompt first, then
    blocks, true facts, steps and ended facts, of each the newest first; what came after `at` stands last."""
    before = sys.maxsize if at is None else read_step_id(at)
    later = {page for page in subject.steps if read_step_id(page) >= before}
    later |= {fact.id for fact in subject.places.facts if read_step_id(fact.step) >= before}
    shown = {place.page_id for place in held}
    facts = {fact.id: 3 if has_ended(fact) else 1 for fact in subject.places.facts}
    kinds = dict.fromkeys(subject.places.core, 0) | facts | dict.fromkeys(subject.steps, 2)
    if not kinds:
        return list(subject.pages)  # a skill
    present = {name: name in shown for name in kinds}
    if any(place.part == "core" for place in held):
        present |= dict.fromkeys(subject.places.core, True)
    return sorted(kinds, key=lambda name: (not present[name], name in later, kinds[name]))  # they are the newest first


def _life(reader: AnyMemory, subject: _Subject, name: str, held: Sequence[Place]) -> PageLife:
    if name in subject.places.core:
        events = list(trace_events.core_changes(reader.history.core_versions(name), subject.wanted))
        present = any(place.part == "core" for place in held) and events[-1].text.find("took it out") < 0
    else:
        events = sorted(_events(reader, subject, name), key=lambda event: event.at)
        present = any(place.page_id == name for place in held)
    shown = events if len(events) <= MOST_EVENTS else [events[0], *events[1 - MOST_EVENTS :]]
    page, block = (None, name) if name in subject.places.core else (name, None)
    return PageLife(page, block, present, tuple(shown), len(events) - len(shown))


def _events(reader: AnyMemory, subject: _Subject, page: str) -> Iterator[TraceEvent]:
    if parts := subject.steps.get(page):
        yield trace_events.said(reader, page, parts, subject.wanted)
        for part in parts:
            yield from trace_events.moved(reader, part.page_id)
    yield from trace_events.moved(reader, page)
    for fact in subject.places.facts:
        if fact.id == page:
            yield from trace_events.expired(reader, fact)
    for residency in reader.history.residencies(page):
        if residency.how != "step" and residency.until_step is not None:
            yield trace_events.left(reader, residency)


def _searches(reader: AnyMemory, subject: _Subject) -> Iterator[TraceEvent]:
    """Return the searches of its life, but for those that found nothing before it existed or after it had ended."""
    facts, texts = subject.places.facts, subject.texts
    begins = [reader.inspect.step(page).at for page in subject.steps] + [fact.at for fact in facts]
    ends = [fact.valid_until for fact in facts if fact.valid_until]
    begin = min(begins, default=None)
    end = max(ends) if ends and len(ends) == len(facts) and not subject.steps else None
    for event in searches(reader, texts, subject.wanted or normalize_text(" ".join(texts.values()))):
        if event.page_id or not ((begin and event.at < begin) or (end and event.at > end)):
            yield event


def _held(reader: AnyMemory, subject: _Subject, at: str | None) -> list[Place]:
    """Return the pieces of a request that hold the text."""
    pieces = (piece for piece in reader.inspect.pieces(at) if subject.stands_in(piece))
    places = list(dict.fromkeys(Place(piece.part, piece.title, piece.page_id) for piece in pieces))
    is_gone = subject.purged and (at is None or is_purged(reader, subject.pages[0], at))
    if places or is_gone:
        return places
    for residency in reader.history.resident(
        at
    ):  # no piece shows it: it is in a result of page_in, or was purged since
        if residency.page_id == subject.page:
            part, title = RESIDENCIES[residency.how]
            where = residency.page_id if residency.how == "step" else residency.from_step
            places.append(Place(part, f"{title}{', purged since' if subject.purged else ''}", where))
    return list(dict.fromkeys(places))


def _verdict(
    reader: AnyMemory, subject: _Subject, held: Sequence[Place], names: Sequence[str], at: str | None
) -> Verdict:
    if held:
        return Verdict(at, present=True, places=tuple(held[:MOST_SHOWN]), more_places=max(0, len(held) - MOST_SHOWN))
    why = reasons(reader, subject.places, subject.steps, subject.wanted, at, names[:MOST_REASONS])
    return Verdict(at, present=False, reasons=why)
