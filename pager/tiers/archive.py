"""The archival tier: facts with key, tags and the time in which they were true; found by words and by meaning.

Nothing is overwritten. A fact with the same key supersedes the one that is current; the old one keeps its interval and
is found with `as_of`. A fact that is stated to have been true only before the current one began joins the past instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from pager import tokens
from pager.arguments import one_form, text_of_person, text_or_none, whole_number
from pager.blocks import clean
from pager.clock import Clock, Moment, from_micros, span_end, span_start, to_micros
from pager.errors import NotFoundError, RejectedError
from pager.search.scores import fused
from pager.search.words import excerpt, index_text, words
from pager.store import ALWAYS, Span, Store
from pager.store.ledger import Ledger
from pager.tiers.pages import Pages
from pager.types import Fact, Hit, read_page_id
from pager.vectors.embedding import owe_vector
from pager.vectors.facts import Meaning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

AHEAD = "latest_fact"  # the key in the journal under which a time stands, once the clock was set back behind it
CLOSE = 0.6  # cosine from which on a fact is reported as a near neighbour
CANDIDATES = 64  # of each side, for the other one to judge
WORDS_DEEP = 256  # down to which place words are asked what they say to the candidates of meaning
MISSED = 3  # of the facts behind the last hit the ledger names so many
MOST_EXACT = 5000  # so many facts with a tag or of a span are all scored; of more, the newest and the nearest
TEXT_SHOWN = 2000  # characters of a fact in a hit; page_in reads it whole


Look = Callable[[], tuple[Hit, ...]]


class _Wanted(NamedTuple):
    """Which facts a search may find."""

    at: int  # true at this moment
    tags: list[str]  # with all of these
    stored: Span  # in this span

    @property
    def few(self) -> bool:
        return bool(self.tags) or self.stored != ALWAYS


class Archival:
    def __init__(self, store: Store, clock: Clock, ledger: Ledger, pages: Pages, meaning: Meaning | None) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self._pages = pages
        self.meaning = meaning
        self.in_turn: Callable[[Look], tuple[Hit, ...]] = lambda look: look()  # how a look that comes later is taken

    # writing

    def archive(
        self, text: str, *, key: str | None, tags: Sequence[str], valid_from: Moment | None, actor: str, neighbours: int
    ) -> Fact:  # fmt: skip
        text, key, tags = _checked(text, key, tags)
        # Before the transaction: embedding takes longer than everything else.
        vector = self.meaning.embedding.embed(text) if self.meaning else None
        now = self._clock.now()
        start = span_start(valid_from, self._clock.zone) if valid_from is not None else now
        with self._store.transaction():
            self._note_ahead(now)
            fact = self._store_version(text, key, tags, start, now, actor, stated=valid_from is not None)
            if self.meaning and vector is not None:
                self.meaning.store(fact.number, vector)
            else:
                owe_vector(self._store)
            # Last: before a statement that it may have to undo alone, SQLite writes out the words that wait.
            self._store.archive.index_words(fact.number, index_text(text))
        if vector is None or self.meaning is None or not neighbours:
            return fact
        # Who only stores does not wait for a search; who looks, searches once.
        near = partial(self.meaning.near, vector, 2 * neighbours + 1)
        look = cache(lambda: self.in_turn(lambda: self._neighbours(fact.number, near())[:neighbours]))
        return replace(fact, look_around=look)

    def _store_version(
        self, text: str, key: str | None, tags: Sequence[str], start: datetime, now: datetime, actor: str, *,
        stated: bool,
    ) -> Fact:  # fmt: skip
        """The row, and what it does to the other versions of its key: at any moment at most one of them is true."""
        archive, step = self._store.archive, self._store.conversation.last_step()
        others, later = self._timeline(key, start) if key is not None else ([], None)
        current = next((fact for fact in others if fact.superseded_by is None and fact.forgotten is None), None)
        if current is not None:
            archive.release_key(current.number)
        begin = to_micros(start)
        number = archive.append(
            text, key, tags, begin, later and to_micros(later.valid_from), to_micros(now), actor, step, stated=stated,
            supersedes=current and current.number, superseded_by=later and later.number,
        )  # fmt: skip
        size = tokens.total(text)
        why = "a new version" if others or later else "a new fact"
        self._ledger.write(
            "archive", f"f{number}", reason=why, actor=actor, tokens=size, step=step, key=key, tags=list(tags)
        )
        for fact in others:
            archive.supersede(fact.number, number, max(begin, to_micros(fact.valid_from)))
            size = tokens.total(fact.text)
            self._ledger.write(
                "supersede",
                fact.id,
                reason=f"f{number} says it anew",
                actor=actor,
                tokens=size,
                by=f"f{number}",
                key=key,
            )
        if current is not None:
            self._pages.follow(current.number, number, f"superseded by f{number}")
        # As it would be read back, which takes as long as storing its words.
        return Fact(
            number, text, key, tuple(tags), valid_from=start.astimezone(self._clock.zone),
            valid_until=later and later.valid_from, at=now, actor=actor, step=step,
            supersedes=current and current.number, superseded_by=later and later.number,
        )  # fmt: skip

    def _timeline(self, key: str, start: datetime) -> tuple[list[Fact], Fact | None]:
        """The versions of a key that a new one takes time from, and the one that it must end before.

        What was stated to begin later still begins then: a fact about an earlier time ends where that one starts.
        """
        lasting = self._store.archive.versions(key, beyond=to_micros(start))
        versions = [(fact, known) for fact, known in lasting if fact.valid_from != fact.valid_until]
        stated = [fact for fact, known in versions if known and fact.forgotten is None]
        later = next((fact for fact in stated if fact.valid_from > start), None)
        end = later.valid_from if later else None
        others = [fact for fact, _ in versions if end is None or fact.valid_from < end]
        return others, later

    def forget(self, page_id: str, reason: str, actor: str) -> Fact:
        text_of_person(reason, "reason")
        fact = self._named(page_id)
        if fact.forgotten is not None:
            raise RejectedError(f"{fact.id} was forgotten already: {fact.forgotten}")
        now = self._clock.now()
        until = max(fact.valid_from, min(now, fact.valid_until or now))
        with self._store.transaction():
            self._store.archive.forget(fact.number, str(clean(reason)), to_micros(until))
            size = tokens.total(fact.text)
            self._ledger.write("forget", fact.id, reason=str(clean(reason)), actor=actor, tokens=size)
            self._pages.follow(fact.number, None, "forgotten")
        return self.fact(fact.number)

    # reading

    def present(self) -> datetime:
        """Now; or, where the clock was set back, the latest time at which a fact was stored: it holds all the same."""
        now = self._clock.now()
        latest = max(self._store.archive.last_at() or 0, int(self._store.journal.get(AHEAD) or 0))
        return max(now, from_micros(latest, self._clock.zone)) if latest > 0 else now

    def _note_ahead(self, now: datetime) -> None:
        """The clock was ahead when the newest fact was stored, of which nothing will tell when there is a newer one."""
        last = self._store.archive.last_at() or 0
        if last > max(to_micros(now), int(self._store.journal.get(AHEAD) or 0)):
            self._store.journal.put(AHEAD, str(last))

    def fact(self, number: int) -> Fact:
        fact = self._store.archive.fact(number)
        if fact is None:
            raise NotFoundError(f"there is no fact f{number}; search_archive finds facts by words and by meaning.")
        return fact

    def _named(self, page_id: str) -> Fact:
        kind, number = read_page_id(page_id)
        if kind != "f":
            raise RejectedError(f"{page_id!r} is not a fact; only facts (f12) can be forgotten.")
        fact = self.fact(number)
        if fact.purged:
            raise NotFoundError(f"the fact {fact.id} was purged; its text is gone for good.")
        return fact

    def search(
        self, query: str, *, limit: int, as_of: Moment | None, tags: Sequence[str], after: Moment | None,
        before: Moment | None, actor: str,
    ) -> list[Hit]:  # fmt: skip
        """What `find` finds, noted: the facts as used, the search in the ledger."""
        more = MISSED if whole_number(limit, "limit") > 0 else 0
        found = self.find(query, limit=limit + more, as_of=as_of, tags=tags, after=after, before=before)
        given = {"as_of": as_of, "after": after, "before": before}
        span = {name: str(value) for name, value in given.items() if value is not None}
        hits, missed = found[:limit], found[limit:]
        why = self.meaning.embedding.missing if self.meaning else None
        with self._store.transaction(durable=False):
            numbers = [int(hit.page_id[1:]) for hit in hits]
            self._store.archive.used(numbers, to_micros(self._clock.now()))
            self._ledger.searched(
                "archive", query, hits, actor, missed=missed, tags=list(tags), without_meaning=why, **span
            )
        return hits

    def find(
        self, query: str, *, limit: int, as_of: Moment | None = None, tags: Sequence[str] = (),
        after: Moment | None = None, before: Moment | None = None,
    ) -> list[Hit]:  # fmt: skip
        """The best facts that hold (`as_of`), carry all the tags and were stored from `after` to `before`."""
        query = str(clean(text_of_person(query, "query")))
        if whole_number(limit, "limit") < 1:
            raise RejectedError(f"limit is {limit}; ask for at least 1.")
        zone = self._clock.zone
        wanted = _Wanted(
            to_micros(self._moment(as_of)), _checked_tags(tags),
            (to_micros(span_start(after, zone)) if after is not None else None,
             to_micros(span_end(before, zone)) if before is not None else None),
        )  # fmt: skip
        if not self._store.archive.newest(1):
            return []  # a young agent looks nowhere, and loads no embedder
        asked = words(query)
        by_words, by_meaning = self._candidates(query, asked, wanted, limit)
        found = fused(by_words, by_meaning)[:limit]
        facts = self._store.archive.facts([number for number, _ in found])
        hits: list[Hit] = []
        for number, score in found:
            sides = {"words": by_words.get(number), "meaning": by_meaning.get(number)}
            parts = {name: value for name, value in sides.items() if value is not None}
            hits.append(self._hit(facts[number], score, parts, asked))
        return hits

    def _candidates(
        self, query: str, asked: list[str], wanted: _Wanted, limit: int
    ) -> tuple[dict[int, float], dict[int, float]]:
        """The best by words and the best by meaning, each judged by both."""
        most = max(CANDIDATES, limit)
        matched = self._store.archive.match(asked, max(WORDS_DEEP, most), *wanted) if asked else []
        by_words, first = dict(matched), [number for number, _ in matched[:most]]
        # Where no vector of this embedder is stored yet, there is nothing to compare the question with.
        comparable = self.meaning is not None and query.strip() and self.meaning.embedding.settle_first()
        vector = self.meaning.embedding.embed(query) if self.meaning and comparable else None
        if self.meaning is None or vector is None:
            return {number: by_words[number] for number in first}, {}
        near = [number for number, _ in self._by_meaning(self.meaning, vector, wanted, limit)]
        by_meaning = dict(self.meaning.among([*near, *first], vector))  # all of them to the last digit
        judged = {*first, *by_meaning}
        return {number: score for number, score in by_words.items() if number in judged}, by_meaning

    def _moment(self, as_of: Moment | None) -> datetime:
        """`as_of` a day means its end: what held when the day was over."""
        if as_of is None:
            return self.present()
        start, end = span_start(as_of, self._clock.zone), span_end(as_of, self._clock.zone)
        return start if end == start else min(end - timedelta(microseconds=1), max(start, self.present()))

    def _by_meaning(
        self, meaning: Meaning, vector: Vectors, wanted: _Wanted, limit: int
    ) -> list[tuple[int, float]]:  # fmt: skip
        many = most = max(CANDIDATES, limit)
        newest = self._store.archive.newest_of(wanted.tags, wanted.at, MOST_EXACT, wanted.stored) if wanted.few else []
        exact = meaning.among(newest, vector)
        if wanted.few and len(newest) < MOST_EXACT:
            return exact[:most]
        # That is enough: what fits so many is not rare, so a few times as many of the nearest hold the hits; where
        # they do not, four times as many are asked for, up to all there are. So none that is nearer than the last hit
        # is missed. The newest, scored exactly, make good what an approximate index leaves out.
        while True:
            near = meaning.near(vector, many)
            valid = self._store.archive.true_at([number for number, _ in near], *wanted)
            if len(valid) >= limit or len(near) < many:  # enough, or all there are
                both = {**dict(exact), **{number: score for number, score in near if number in valid}}
                return sorted(both.items(), key=lambda hit: (-hit[1], -hit[0]))[:most]
            many *= 4

    def _neighbours(self, number: int, near: Sequence[tuple[int, float]]) -> tuple[Hit, ...]:
        close = {found: cosine for found, cosine in near if found != number and cosine >= CLOSE}
        if not close:
            return ()
        valid = self._store.archive.true_at(list(close), to_micros(self.present()), ())
        facts = self._store.archive.facts(sorted(valid))
        ordered = sorted(valid, key=lambda found: -close[found])
        return tuple(self._hit(facts[found], close[found], {"meaning": close[found]}, ()) for found in ordered)

    def _hit(self, fact: Fact, score: float, parts: dict[str, float], asked: Sequence[str]) -> Hit:
        return Hit(
            fact.id, excerpt(fact.text, asked, TEXT_SHOWN), fact.at, score, parts, fact.actor, fact.tags,
            fact.valid_from, fact.valid_until, fact.supersedes,
        )  # fmt: skip


def _checked(text: str, key: str | None, tags: Sequence[str] | None) -> tuple[str, str | None, list[str]]:
    if not text_of_person(text, "text").strip():
        raise RejectedError("a fact needs a text; to end one use forget.")
    if text_or_none(key, "key") is not None and not str(key).strip():
        raise RejectedError("the key is empty; leave it out, or name what the fact is about, such as 'seat'.")
    return str(clean(text)), None if key is None else one_form(key), _checked_tags(tags)


def _checked_tags(tags: Sequence[str] | None) -> list[str]:
    if tags is None:
        return []
    if isinstance(tags, str):
        raise RejectedError(f"tags is the text {tags!r}; give a list, such as [{tags!r}].")
    if not isinstance(tags, list | tuple | set | frozenset):  # pyright: ignore[reportUnnecessaryIsInstance] -- from JSON
        raise RejectedError(f"tags is {tags!r:.100}; give a list of texts.")
    if any(not text_of_person(tag, "a tag").strip() for tag in tags):
        raise RejectedError("a tag is empty; leave it out.")
    return [one_form(tag) for tag in tags]
