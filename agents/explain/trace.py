"""The life of a text: written, moved, superseded, evicted and why, searched for, found or missed by what margin.

    >>> told = trace(reading, "prefers window seats")
    >>> told.verdict.present, told.verdict.reasons        # is it in the prompt, and if not, why
    >>> trace(reading, "f12", at="s45")                   # a page by its id; as it was for the reply s45

A pure function over a `pager.MemoryReader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.explain import trace_words
from agents.explain.pieces import PromptPiece, pieces
from agents.explain.trace_parts import Near, Standing, Told, Trace, Verdict
from agents.explain.trace_searches import searches
from agents.explain.trace_verdict import gone, reasons
from agents.explain.trace_words import quoted
from pager import blocks
from pager.errors import NotFoundError, RejectedError
from pager.inspect.lists import holds, normal
from pager.reader import MemoryReader
from pager.store.rows import Piece
from pager.types import Fact, read_page_id

NEAR = 5
NEAR_CHARS = 160
MOST_SHOWN = 6  # pieces of a request that are named as places
CARRIED = {  # how a page is in a request -> the part of the window, and in words
    "step": ("turns", "a step of the conversation"), "request": ("request", "the request under way"),
    "pinned": ("pinned", "a pinned page"), "recalled": ("recalled", "a recalled fact"),
    "paged_in": ("turns", "a page that was read"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """The pages that a text was found on. `wanted` is what is looked for in requests, empty for a page whose words do
    not count; `page` is the page that was named by its id."""

    wanted: str
    page: str | None = None
    pieces: tuple[Piece, ...] = ()
    facts: tuple[Fact, ...] = ()
    core: tuple[str, ...] = ()
    more: bool = False
    purged: bool = False

    @property
    def pages(self) -> tuple[str, ...]:
        return (*self.steps, *(fact.id for fact in self.facts))

    @property
    def steps(self) -> dict[str, list[Piece]]:
        steps: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            steps.setdefault(f"s{piece.step}", []).append(piece)
        return steps

    @property
    def subject(self) -> str:
        """What a search has to be about to be about this."""
        said = (blocks.text_of(piece.block) for piece in self.pieces)
        return self.wanted or normal(" ".join((*said, *(fact.text for fact in self.facts))))

    def stands_in(self, piece: PromptPiece) -> bool:
        if self.purged:
            return False
        if self.wanted:
            return holds(piece.text, self.wanted)
        own = piece.key in {f"part:{held.part}" for held in self.pieces}
        if self.page in self.pages:  # a step, also when only the ends of a part of it are left
            return own or piece.page_id == self.page
        return piece.page_id != self.page if own else piece.page_id == self.page


def trace(reading: MemoryReader, text: str, at: str | None = None) -> Trace:
    """Where `text` (or the page of that id) has been, and whether it was in the request that `at` answered or, for any
    other step, in the next one after it; without `at`, whether it is in the prompt now."""
    if not text.strip():
        raise RejectedError("there is nothing to look for; give a piece of the text, or a page id such as f12.")
    with reading.at_one_moment():
        at = None if at is None else answering(reading, at)
        found = _page(reading, text) or _places(reading, text)
        life = list(_events(reading, found))
        asked = _asked(reading, found, life)
        events = sorted([*life, *asked], key=lambda told: told.at)
        missing = "" if found.pages or found.core else _missing(reading, text)
        near = () if missing or found.pages or found.core else _near(reading, text)
        verdict = Verdict(at, (), (missing,)) if missing else _verdict(reading, found, at)
        return Trace(text, found.pages, found.core, tuple(events), verdict, found.more, near)


def answering(reading: MemoryReader, at: str) -> str:
    """`at`, if it is a reply to a request; else the next reply after it."""
    last = reading.inspect.requests(1, through=at)
    if last and f"s{last[0].answered.step}" == at.strip():
        return at.strip()
    following = reading.inspect.around(at)[1]
    if following is None:
        known = f"the last one was answered by s{last[0].answered.step}" if last else "nothing was sent yet"
        raise NotFoundError(f"no request was answered after {at}; {known}.")
    return following


# where it is


def _page(reading: MemoryReader, text: str) -> Found | None:
    """The page that the text names by its id, if there is one."""
    try:
        named = read_page_id(text)
        kind, number = named
        if kind == "f":
            fact = reading.fact(text)
            return Found(normal(fact.text), str(named), facts=(fact,), purged=fact.purged)
    except NotFoundError:
        return None
    held = reading.inspect.pieces_of(number) if kind == "s" else reading.inspect.piece(number)
    if not held:
        return None
    return Found("", str(named), pieces=tuple(held), purged=reading.inspect.step(f"s{held[0].step}").purged)


def _missing(reading: MemoryReader, text: str) -> str:
    """What there is instead, when the text is the id of no page."""
    try:
        kind, _ = read_page_id(text)
    except NotFoundError:
        return ""
    if kind == "x":
        parts = dict.fromkeys(row.page_id for row in reading.ledger(events=["spill"], limit=MOST_SHOWN) if row.page_id)
        known = f"the last ones are {', '.join(parts)}" if parts else "none was spilled yet"
        return f"There is no part {quoted(text.strip())}; of those that were too large {known}."
    what = {"f": "fact", "s": "step"}[kind]
    browse = reading.inspect
    last = (browse.facts(limit=0) if kind == "f" else browse.steps(0, 0)).total
    known = f"the last one is {kind}{last}" if last else "there are none yet"
    return f"There is no {what} {quoted(text.strip())}: {known}."


def _places(reading: MemoryReader, text: str) -> Found:
    places = reading.inspect.holding(text)
    return Found(normal(text), None, places.pieces, places.facts, places.core, places.more)


def _near(reading: MemoryReader, text: str) -> tuple[Near, ...]:
    """What a search for these words finds, when no place holds them as they are."""
    hits = [*reading.search_archive(text, limit=NEAR), *reading.search_recall(text, limit=NEAR)]
    return tuple(Near(hit.page_id, " ".join(hit.text[:NEAR_CHARS].split())) for hit in hits)


# what happened


def _events(reading: MemoryReader, found: Found) -> Iterable[Told]:
    for page, held in found.steps.items():
        yield trace_words.said(reading.inspect.step(page), held, found.wanted)
        for piece in held:
            yield from _moved(reading, f"x{piece.part}")
    for page in found.pages:
        yield from _moved(reading, page)
        for stay in reading.history.residencies(page):
            if stay.how != "step" and stay.until_step is not None:  # what left as a step has its row in the ledger
                yield trace_words.left(stay, reading.inspect.step(f"s{stay.until_step}").at)
    for name in found.core:
        yield from trace_words.core(reading.inspect.core_history(name), found.wanted)


def _asked(reading: MemoryReader, found: Found, life: Sequence[Told]) -> Iterable[Told]:
    """The searches of its life. What came back empty before it was there, or when it was true no more, says nothing."""
    born = min((told.at for told in life), default=None)
    ends = [fact.valid_until for fact in found.facts]
    over = max((end for end in ends if end), default=None) if ends and all(ends) and not found.pieces else None
    for told in searches(reading, found.pages, found.subject):
        if told.page_id or not ((born and told.at < born) or (over and told.at > over)):
            yield told


def _moved(reading: MemoryReader, page: str) -> Iterable[Told]:
    return (trace_words.moved(row, reading) for row in reading.ledger(page=page))


# whether it is in the prompt


def _verdict(reading: MemoryReader, found: Found, at: str | None) -> Verdict:
    here = pieces(reading, at)
    places = dict.fromkeys(Standing(piece.part, piece.title, piece.page_id) for piece in here if found.stands_in(piece))
    places = places or dict.fromkeys(_carried(reading, found, at))
    why = () if places else reasons(reading, found.steps, found.facts, found.core, found.wanted, at)
    return Verdict(at, tuple(places)[:MOST_SHOWN], tuple(why), max(0, len(places) - MOST_SHOWN))


def _carried(reading: MemoryReader, found: Found, at: str | None) -> Iterable[Standing]:
    """How the page itself was carried where no piece shows it as its own: in what page_in answered, or as what was
    purged since."""
    if found.purged and (at is None or gone(reading, found.pages[0], int(at[1:]))):
        return
    for stay in reading.history.resident(at):
        if stay.page_id == found.page:
            since = ", purged since" if found.purged else ""
            where = stay.page_id if stay.how == "step" else f"s{stay.from_step}"
            yield Standing(CARRIED[stay.how][0], f"{CARRIED[stay.how][1]}{since}", where)
