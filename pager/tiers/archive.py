"""The archival tier: facts with key, tags and the time in which they were true; found by words and by meaning.

Nothing is overwritten. A fact with the same key supersedes the current one; the old one keeps its interval and is found
with `as_of`. A fact that was true only before the current one began joins the past instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from pager import tokens
from pager.arguments import normalized, optional_text, require_limit, require_text, require_texts
from pager.blocks import clean
from pager.clock import Clock, Moment, from_micros, span_end, span_micros, span_start, to_micros
from pager.errors import NotFoundError, RejectedError
from pager.search.words import excerpt, index_text, words
from pager.store import Store
from pager.store.rows import ALWAYS, Span
from pager.tiers.pages import Pages
from pager.types import Fact, Hit, number_of, read_page_id
from pager.vectors.embedding import mark_unembedded
from pager.vectors.facts import FactVectors

if TYPE_CHECKING:
    from pager.vectors.index import Vectors

LATEST_FACT = "latest_fact"  # the setting with the time of the latest fact, once the clock was set back behind it
SIMILAR = 0.6  # cosine from which on a fact is reported as similar to another
CANDIDATES = 64  # of each side, for the other one to score
WORD_CANDIDATES = 256  # places down to which the word score of the candidates by meaning is looked up
MISSED = 3  # hits below the limit that the ledger names
MAX_EXACT = 5000  # facts with a tag or of a span that are all compared; of more, the newest and the nearest
MAX_HIT_CHARS = 2000  # of a fact in a hit; page_in reads it whole
NEGLIGIBLE = 1e-4  # a smaller spread is rounding, or of words that half of the facts hold: BM25 gives those a millionth
SMALLEST_SPREAD = 1e-100  # below it a division overflows


Scores = dict[int, float]


class _Filter(NamedTuple):
    at: int  # true at this moment
    tags: list[str]  # with all of these
    stored: Span  # stored in this span


class Archive:
    """Stores facts, ends them, and finds them."""

    def __init__(self, store: Store, clock: Clock, pages: Pages, vectors: FactVectors | None) -> None:
        self._store = store
        self._clock = clock
        self._pages = pages
        self.vectors = vectors
        self._latest: int | None = None  # the setting LATEST_FACT; None: not read yet
        store.when_rolled_back(self.invalidate)

    def invalidate(self) -> None:
        """Read again at the next use: a change was rolled back."""
        self._latest = None

    def archive(
        self, text: str, *, key: str | None, tags: Sequence[str], valid_from: Moment | None, actor: str
    ) -> Fact:
        """Store a fact, which supersedes the current one of its key, or return the true one that says just the same."""
        if not require_text(text, "text").strip():
            raise RejectedError("a fact needs a text; to end one use forget.")
        if optional_text(key, "key") is not None and not str(key).strip():
            raise RejectedError("the key is empty; leave it out, or name what the fact is about, such as 'seat'.")
        text, key, tags = str(clean(text)), None if key is None else normalized(key), _check_tags(tags)
        # Before the transaction: embedding takes longer than everything else.
        vector = self.vectors.embedding.embed(text) if self.vectors else None
        now = self._clock.now()
        start = span_start(valid_from, self._clock.zone) if valid_from is not None else now
        stated = None if valid_from is None else to_micros(start)
        with self._store.transaction():
            present = self.present()  # with the clock set back, what was stored last is true
            number = self._store.archive.repeat(text, key, tags, stated, to_micros(max(start, present)))
            if number is not None:
                step, reason = self._store.conversation.last_step(), "it is there already"
                self._store.ledger.write("repeat", f"f{number}", reason=reason, actor=actor, step=step)
                return self.fact(f"f{number}")
            self._save_latest(now)
            fact = self._append_version(text, key, tags, start, now, actor, stated=valid_from is not None)
            number = number_of(fact.id)
            if self.vectors and vector is not None:
                self.vectors.store(number, vector)
            else:
                mark_unembedded(self._store)
            # Last: before a statement that SQLite may have to undo alone, it writes out the words that wait.
            self._store.archive.index_words(number, index_text(text))
        return fact

    def _append_version(
        self, text: str, key: str | None, tags: Sequence[str], start: datetime, now: datetime, actor: str, *,
        stated: bool,
    ) -> Fact:  # fmt: skip
        """Append a fact, and end the other versions of its key: at any moment at most one of them is true."""
        table, ledger, step = self._store.archive, self._store.ledger, self._store.conversation.last_step()
        others, later = self._timeline(key, start) if key is not None else ([], None)
        current = next((fact for fact in others if fact.superseded_by is None and fact.forgotten is None), None)
        if current is not None:
            table.release_key(number_of(current.id))
        begin, until = to_micros(start), later and later.valid_from
        old, new = current and current.id, later and later.id
        number = table.append(
            text, key, tags, begin, until and to_micros(until), to_micros(now), actor, step, stated=stated,
            supersedes=number_of(old) if old else None, superseded_by=number_of(new) if new else None,
        )  # fmt: skip
        fact_id = f"f{number}"
        reason, size = "a new version" if others or later else "a new fact", tokens.total(text)
        ledger.write("archive", fact_id, reason=reason, actor=actor, tokens=size, step=step, key=key, tags=list(tags))
        for fact in others:
            table.supersede(number_of(fact.id), number, max(begin, to_micros(fact.valid_from)))
            reason, size = f"{fact_id} says it anew", tokens.total(fact.text)
            ledger.write("supersede", fact.id, reason=reason, actor=actor, tokens=size, step=step, by=fact_id, key=key)
        if current is not None:
            self._pages.move_pin(current.id, fact_id, f"superseded by {fact_id}")
        # As it would be read back, which takes as long as storing its words.
        valid_from = start.astimezone(self._clock.zone)
        return Fact(fact_id, text, key, tuple(tags), valid_from, until, now, actor, f"s{step}", old, new)

    def _timeline(self, key: str, start: datetime) -> tuple[list[Fact], Fact | None]:
        """Return the versions that a new one takes time from, and the stated later one before which it must end."""
        lasting = self._store.archive.versions(key, beyond=to_micros(start))
        versions = [(fact, stated) for fact, stated in lasting if fact.valid_from != fact.valid_until]
        stated = [fact for fact, was_stated in versions if was_stated and fact.forgotten is None]
        later = next((fact for fact in stated if fact.valid_from > start), None)
        end = later.valid_from if later else None
        return [fact for fact, _ in versions if end is None or fact.valid_from < end], later

    def forget(self, page_id: str, reason: str, actor: str) -> Fact:
        """End a fact's validity now. It stays findable with `as_of`."""
        require_text(reason, "reason")
        if read_page_id(page_id).kind != "f":
            raise RejectedError(f"{page_id!r} is not a fact; only facts (f12) can be forgotten.")
        fact = self.fact(page_id)
        if fact.purged:
            raise NotFoundError(f"the fact {fact.id} was purged; its text is gone for good.")
        if fact.forgotten is not None:
            raise RejectedError(f"{fact.id} was forgotten already: {fact.forgotten}")
        now, reason = self._clock.now(), str(clean(reason))
        until = max(fact.valid_from, min(now, fact.valid_until or now))
        with self._store.transaction():
            self._store.archive.forget(number_of(fact.id), reason, to_micros(until))
            self._store.ledger.write("forget", fact.id, reason=reason, actor=actor, tokens=tokens.total(fact.text))
            self._pages.move_pin(fact.id, None, "forgotten")
        return self.fact(page_id)

    def present(self, last_at: int | None = None) -> datetime:
        """Return the present time; if the clock was set back, the latest time at which a fact was stored."""
        now = self._clock.now()
        if self._latest is None or self._store.read_only:
            self._latest = int(self._store.settings.get(LATEST_FACT) or 0)
        last_at = last_at or self._store.archive.last_at() or 0
        latest = max(last_at, self._latest)
        return max(now, from_micros(latest, self._clock.zone)) if latest > 0 else now

    def _save_latest(self, now: datetime) -> None:
        """Store the time of the newest fact if the clock was ahead then: the next fact hides it."""
        last = self._store.archive.last_at() or 0
        if last > max(to_micros(now), int(self._store.settings.get(LATEST_FACT) or 0)):
            self._store.settings.put(LATEST_FACT, str(last))
            self._latest = None

    def _moment(self, as_of: Moment | None) -> datetime:
        """Return the moment that a search asks for. A day means its end: what was true when it was over."""
        if as_of is None:
            return self.present()
        start, end = span_start(as_of, self._clock.zone), span_end(as_of, self._clock.zone)
        return start if end == start else min(end - timedelta(microseconds=1), max(start, self.present()))

    def fact(self, page_id: str) -> Fact:
        """Return a fact. Raises NotFoundError if there is none."""
        kind, number = read_page_id(page_id)
        if kind != "f":
            raise NotFoundError(f"{page_id!r} is not a fact; facts are f12.")
        fact = self._store.archive.fact(number)
        if fact is None:
            raise NotFoundError(f"there is no fact f{number}; search_archive finds facts by words and meaning.")
        return fact

    def search(
        self, query: str, *, limit: int, as_of: Moment | None, tags: Sequence[str] | None, after: Moment | None,
        before: Moment | None, actor: str | None,
    ) -> list[Hit]:  # fmt: skip
        """Find the best facts that are true and stored in that time. An `actor` marks them as used; it is logged."""
        query = str(clean(require_text(query, "query")))
        wanted_hits = require_limit(limit) + (MISSED if actor else 0)
        stored = span_micros(after, before, self._clock.zone)
        wanted = _Filter(to_micros(self._moment(as_of)), _check_tags(tags), stored)
        found = self._best(query, wanted_hits, wanted) if self._store.archive.last_at() is not None else []
        hits, missed = found[:limit], found[limit:]
        if actor is not None:
            detail = {"as_of": as_of, "after": after, "before": before, "tags": wanted.tags}
            detail["without_meaning"] = self.vectors.embedding.failure if self.vectors else None
            with self._store.transaction(durable=False):
                self._store.archive.used([number_of(hit.page_id) for hit in hits], to_micros(self._clock.now()))
                self._store.ledger.write_search("archive", query, hits, actor, missed=missed, **detail)
        return hits

    def recall(self, message: str, limit: int) -> list[Hit]:
        """Return the best facts for a message that are true now."""
        last_at = self._store.archive.last_at()
        if last_at is None:
            return []  # an empty archive loads no embedder
        return self._best(message, limit, _Filter(to_micros(self.present(last_at)), [], ALWAYS))

    def _best(self, query: str, limit: int, wanted: _Filter) -> list[Hit]:
        terms = words(query)
        by_words, by_meaning = self._candidates(query, terms, wanted, limit)
        best = fuse(by_words, by_meaning)[:limit]
        facts = self._store.archive.facts([number for number, _ in best])
        hits: list[Hit] = []
        for number, score in best:
            sides = {"words": by_words.get(number), "meaning": by_meaning.get(number)}
            parts = {name: value for name, value in sides.items() if value is not None}
            hits.append(_hit(facts[number], score, parts, terms))
        return hits

    def _candidates(self, query: str, terms: list[str], wanted: _Filter, limit: int) -> tuple[Scores, Scores]:
        most, vector = max(CANDIDATES, limit), None
        if self.vectors is not None and query.strip() and self.vectors.embedding.prepare_search():
            vector = self.vectors.embedding.embed(query)
        looked_up = 0 if vector is None else WORD_CANDIDATES
        first, scores = self._store.archive.match(terms, most, looked_up, *wanted) if terms else ([], {})
        if self.vectors is None or vector is None:
            return {number: scores[number] for number in first}, {}
        by_meaning = self._by_meaning(self.vectors, vector, wanted, limit)
        by_meaning |= dict(self.vectors.cosines_of([number for number in first if number not in by_meaning], vector))
        scored = {*first, *by_meaning}
        return {number: scores[number] for number in scores if number in scored}, by_meaning

    def _by_meaning(self, vectors: FactVectors, vector: Vectors, wanted: _Filter, limit: int) -> Scores:
        count = most = max(CANDIDATES, limit)
        narrow = bool(wanted.tags) or wanted.stored != ALWAYS
        newest = self._store.archive.newest_of(wanted.tags, wanted.at, MAX_EXACT, wanted.stored) if narrow else []
        exact = vectors.cosines_of(newest, vector)
        if narrow and len(newest) < MAX_EXACT:
            return dict(exact[:most])
        # What so many facts fit is not rare, so a few times as many of the nearest hold the hits. Where they do not,
        # four times as many are fetched, up to all there are: none that is nearer than the last hit is missed.
        opened = vectors.indexing.open(wanted.at)
        while True:
            near = vectors.nearest(vector, count, opened)
            valid = self._store.archive.true_at([number for number, _ in near], *wanted)
            if len(valid) >= limit or len(near) < count:  # enough, or all there are
                found = {number: score for number, score in near if number in valid}
                if opened is None:
                    found = dict(vectors.cosines_of(list(found), vector))
                return dict(sorted((found | dict(exact)).items(), key=lambda hit: (-hit[1], -hit[0]))[:most])
            count = 4 * len(near)

    def similar(self, page_id: str, limit: int) -> list[Hit]:
        """Return the current facts that are closest in meaning to a fact, best first; none without an embedder."""
        number = read_page_id(page_id).number
        ids, vectors = self._store.archive.vectors([number])
        if self.vectors is None or not ids or limit < 1:
            return []
        now = to_micros(self.present())
        near = dict(self.vectors.nearest(vectors[0], 2 * limit + 1, self.vectors.indexing.open(now)))
        close = {found: cosine for found, cosine in near.items() if found != number and cosine >= SIMILAR}
        valid = self._store.archive.true_at(list(close), now, ())
        facts = self._store.archive.facts(sorted(valid))
        ordered = sorted(valid, key=lambda found: -close[found])[:limit]
        return [_hit(facts[found], close[found], {"meaning": close[found]}, ()) for found in ordered]


def fuse(by_words: Mapping[int, float], by_meaning: Mapping[int, float]) -> list[tuple[int, float]]:
    """Add two scores, each in units of its spread, best first. A side that does not know an id gives it its least."""
    found = sorted({*by_words, *by_meaning}, reverse=True)
    totals = dict.fromkeys(found, 0.0)
    # A word that half of them hold has no rarity left; it counts by the share of those that do not hold it.
    without = max(1 - len(by_words) / max(len(found), 1), NEGLIGIBLE)
    farthest = min(by_meaning.values(), default=0.0)
    for scores, least, worth in ((by_words, 0.0, without), (by_meaning, farthest, NEGLIGIBLE)):
        if not scores:
            continue
        values = [scores.get(each, least) for each in found]
        mean = math.fsum(values) / len(values)
        spread = math.dist(values, [mean] * len(values)) / math.sqrt(len(values))
        spread = spread if spread > SMALLEST_SPREAD else 0.0
        weight = worth / spread if 0 < spread <= NEGLIGIBLE else 1 / (spread or 1.0)
        for each, value in zip(found, values, strict=True):
            totals[each] += (value - least) * weight
    return sorted(totals.items(), key=lambda each: -each[1])


def _hit(fact: Fact, score: float, parts: dict[str, float], terms: Sequence[str]) -> Hit:
    text = excerpt(fact.text, terms, MAX_HIT_CHARS)
    validity = fact.valid_from, fact.valid_until
    return Hit(fact.id, text, fact.at, score, parts, fact.actor, fact.tags, *validity, fact.supersedes)


def _check_tags(tags: Sequence[str] | None) -> list[str]:
    if tags is None:
        return []
    if isinstance(tags, str):
        raise RejectedError(f"tags is the text {tags!r}; give a list, such as [{tags!r}].")
    if any(not tag.strip() for tag in require_texts(tags, "tags")):
        raise RejectedError("a tag is empty; leave it out.")
    return [normalized(tag) for tag in tags]
