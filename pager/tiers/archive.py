"""The archival tier: facts with key, tags and the time in which they were true; found by words and by meaning.

Nothing is overwritten. A fact with the same key supersedes the current one; the old one keeps its interval and is found
with `as_of`. A fact that was true only before the current one began joins the past instead.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from pager import tokens
from pager.arguments import normalized, optional_text, require_limit, require_text, require_texts
from pager.blocks import clean
from pager.clock import Clock, Moment, from_micros, span_end, span_micros, span_start, to_micros
from pager.errors import NotFoundError, RejectedError, brief
from pager.safety.sources import Source, read_source, untrusted_of
from pager.search.words import certainty, excerpt, focus, index_text, words
from pager.store import Store
from pager.store.archive import origin_rows
from pager.store.rows import ALWAYS, FactFilter, Origin
from pager.tiers import retention
from pager.tiers.pages import Pages
from pager.types import Fact, Hit, number_of, read_page_id
from pager.vectors.embedding import mark_unembedded
from pager.vectors.facts import FactVectors

if TYPE_CHECKING:
    from pager.vectors.embedder import Meaning
    from pager.vectors.index import Vectors

LATEST_FACT = "latest_fact"  # the setting with the time of the latest fact, once the clock was set back behind it
SIMILAR = 0.6  # cosine from which on a fact is reported as similar to another
CANDIDATES = 64  # of each side, for the other one to score
WORD_CANDIDATES = 256  # places down to which the word score of the candidates by meaning is looked up
RAISING = 20  # facts that raise what they were stored from
LATE = 1.0  # the match of word pieces, where words and cosine count 1 each
PER_STEP = 5  # as many of those from one step are an import, which says nothing of the step
MISSED = 3  # hits below the limit that the ledger names
MAX_EXACT = 5000  # facts with a tag or of a span that are all compared; of more, the newest and the nearest
MAX_HIT_CHARS = 2000  # of a fact in a hit; page_in reads it whole
NEGLIGIBLE = 1e-4  # a smaller spread is rounding, or of words that half of the facts hold: BM25 gives those a millionth
SMALLEST_SPREAD = 1e-100  # below it a division overflows


Scores = dict[int, float]


class Candidates(NamedTuple):
    """Facts that come into question, and what words, cosines and the match of word pieces say of each."""

    terms: list[str]  # of the question
    by_words: Scores
    by_meaning: Scores
    by_late: Scores


class Archive:
    """Stores facts, ends them, and finds them."""

    def __init__(self, store: Store, clock: Clock, pages: Pages, vectors: FactVectors | None) -> None:
        self._store = store
        self._clock = clock
        self._pages = pages
        self.vectors = vectors
        self._latest: int | None = None  # the setting LATEST_FACT; None: not read yet
        self._kept: Mapping[str, timedelta] | None = None  # how long facts of a tag are true; None: not read yet
        store.when_rolled_back(self.invalidate)

    def invalidate(self) -> None:
        """Read again at the next use: a change was rolled back."""
        self._latest = self._kept = None

    def archive(
        self, text: str, *, key: str | None, tags: Sequence[str], valid_from: Moment | None,
        valid_until: Moment | None = None, actor: str, source: Source,
    ) -> Fact:  # fmt: skip
        """Store a fact, which supersedes the current one of its key, or return the true one that says just the same.

        That one gets a further source then, and the end that is given now.
        """
        if not require_text(text, "text").strip():
            raise RejectedError("a fact needs a text; to end one use forget.")
        if optional_text(key, "key") is not None and not str(key).strip():
            raise RejectedError("the key is empty; leave it out, or name what the fact is about, such as 'seat'.")
        text, key, tags = str(clean(text)), None if key is None else normalized(key), _check_tags(tags)
        # Before the transaction: embedding takes longer than everything else.
        meaning = self.vectors.embedding.embed(text) if self.vectors else None
        now = self._clock.now()
        start = span_start(valid_from, self._clock.zone) if valid_from is not None else now
        stated = None if valid_from is None else to_micros(start)
        with self._store.transaction():
            present = self.present(now=now)  # with the clock set back, what was stored last is true
            end = self._end(valid_until, tags, start, present)
            is_over = end is not None and end <= present
            at = start if is_over else max(start, present)
            number = self._store.archive.repeat(text, key, tags, stated, to_micros(at))
            if number is not None:
                struck = origin_rows(self._add_source(number, source, now))
                about = _about(source) if end is None else {**self._renew_end(number, end), **_about(source)}
                reason = "it is there already"
                self._store.ledger.write("repeat", f"f{number}", reason=reason, actor=actor, struck=struck, **about)
                return self.fact(f"f{number}")
            is_stated = valid_from is not None
            sources = [Origin(source, to_micros(now))]
            return self.write(
                text, key, tags, start if is_stated else None, now, actor, sources, meaning=meaning, expires=end
            )

    def write(
        self, text: str, key: str | None, tags: Sequence[str], start: datetime | None, now: datetime, actor: str,
        sources: Sequence[Origin], *, meaning: Meaning | None, reason: str = "", expires: datetime | None = None,
    ) -> Fact:  # fmt: skip
        """Store a fact that is true from now or a stated beginning on, in a transaction of the caller."""
        self._save_latest(now)
        stated = start is not None
        fact = self._append_version(
            text, key, tags, start or now, now, actor, sources, stated=stated, reason=reason, expires=expires
        )
        if self.vectors and meaning is not None:
            self.vectors.store(number_of(fact.id), meaning)
        else:
            mark_unembedded(self._store)
        # Last: before a statement that SQLite may have to undo alone, it writes out the words that wait.
        self._store.archive.index_words(number_of(fact.id), index_text(text))
        return fact

    def _end(
        self, valid_until: Moment | None, tags: Sequence[str], start: datetime, present: datetime
    ) -> datetime | None:
        """Return when a fact ends by itself: as it was given, or by its tags. A day means its end."""
        if valid_until is None:
            return self.end_by_tags(tags, max(start, present))
        end = span_end(valid_until, self._clock.zone)
        if end <= start:
            begins = f"{start:%Y-%m-%d %H:%M}, when the fact begins to be true"
            way = "Give a later one, or valid_from as well for what is over already"
            raise RejectedError(f"valid_until is {brief(str(valid_until))}, which is not after {begins}. {way}.")
        return end

    def end_by_tags(self, tags: Sequence[str], begin: datetime) -> datetime | None:
        """Return when a fact ends by its tags that begins to be true, or is stored, at a moment; None: never."""
        return retention.end_of(self._retention(), tags, begin) if tags else None

    def _retention(self) -> Mapping[str, timedelta]:
        if self._kept is None:
            self._kept = retention.load(self._store)
        return self._kept

    def _renew_end(self, number: int, end: datetime) -> dict[str, Any]:
        """Give a fact another end. Return what the ledger says of it: `undo` reads the earlier one there."""
        before = self.fact(f"f{number}").expires
        self._store.archive.renew_end(number, to_micros(end))
        return {"until": str(end), "until_before": before and str(before)}

    def give_end_back(self, fact: Fact, before: datetime | None, reason: str, actor: str) -> None:
        """Let a fact end again when it did before it was repeated with another end, in the caller's transaction."""
        self._store.archive.renew_end(number_of(fact.id), None if before is None else to_micros(before))
        self._store.ledger.write("end", fact.id, reason=reason, actor=actor, until=before and str(before))

    def _add_source(self, fact: int, source: Source, now: datetime) -> list[Origin]:
        """Add a source to a fact, unless one of its sources explains it already with as little or less behind it.
        Return those that it makes needless, which are struck."""
        origins = self._store.archive.origins(fact)
        alike = [origin for origin in origins if origin.source.origin == source.origin]
        if any(set(source.via) >= set(origin.source.via) for origin in alike):
            return []
        needless = [origin for origin in alike if set(origin.source.via) > set(source.via)]
        kept = [origin for origin in origins if origin not in needless]
        self._store.archive.put_sources(fact, [*kept, Origin(source, to_micros(now))])
        return needless

    def _append_version(
        self, text: str, key: str | None, tags: Sequence[str], start: datetime, now: datetime, actor: str,
        sources: Sequence[Origin], *, stated: bool, reason: str = "", event: str = "archive",
        of: str | None = None, expires: datetime | None = None,
    ) -> Fact:  # fmt: skip
        """Append a fact, and end the other versions of its key: at any moment at most one of them is true."""
        table, ledger, step = self._store.archive, self._store.ledger, self._store.conversation.last_step()
        others, later, expired = self._timeline(key, start, expires) if key is not None else ([], None, None)
        newest = next((fact for fact in others if fact.superseded_by is None and fact.forgotten is None), None)
        current = newest or (expired if later is None else None)
        if current is not None:
            table.release_key(number_of(current.id))
        begin, until = to_micros(start), min(filter(None, (expires, later and later.valid_from)), default=None)
        old, new = current and current.id, later and later.id
        number = table.append(
            text, key, tags, begin, until and to_micros(until), to_micros(now), actor, step, stated=stated,
            sources=sources, supersedes=number_of(old) if old else None, superseded_by=number_of(new) if new else None,
            expires=expires and to_micros(expires),
        )  # fmt: skip
        fact_id = f"f{number}"
        reason, size = reason or ("a new version" if others or later else "a new fact"), tokens.total(text)
        about = {
            "key": key,
            "tags": list(tags),
            "of": of,
            "until": expires and str(expires),
            **_about(*(origin.source for origin in sources)),
        }
        ledger.write(event, fact_id, reason=reason, actor=actor, tokens=size, step=step, **about)
        for fact in others:
            table.supersede(number_of(fact.id), number, max(begin, to_micros(fact.valid_from)))
            reason, size = f"{fact_id} says it anew", tokens.total(fact.text)
            ledger.write("supersede", fact.id, reason=reason, actor=actor, tokens=size, step=step, by=fact_id, key=key)
        if current is not None and current is not newest and current.valid_until:  # it has expired: its end stays
            table.supersede(number_of(current.id), number, to_micros(current.valid_until))
        if current is not None:
            self._pages.move_pin(current.id, fact_id, f"superseded by {fact_id}")
        # As it would be read back, which takes as long as storing its words.
        valid_from = start.astimezone(self._clock.zone)
        whence = tuple(origin.source for origin in sources)
        return Fact(
            fact_id, text, key, tuple(tags), valid_from, until, now, actor, f"s{step}", old, new, sources=whence,
            via=untrusted_of(whence), expires=expires,
        )  # fmt: skip

    def _timeline(self, key: str, start: datetime, end: datetime | None) -> tuple[list[Fact], Fact | None, Fact | None]:
        """Return the versions that a new one takes time from, the later one before which it must end, and the newest
        one if that has expired before."""
        found = self._store.archive.versions(key, beyond=to_micros(start))
        expired = next((fact for fact, _ in found if fact.valid_until and fact.valid_until <= start), None)
        versions = [each for each in found if each[0] is not expired and each[0].valid_from != each[0].valid_until]
        later = next(
            (
                fact
                for fact, stated in versions
                if fact.forgotten is None and ((stated and fact.valid_from > start) or (end and fact.valid_from >= end))
            ),
            None,
        )
        limits = [each for each in (end, later and later.valid_from) if each is not None]
        return [fact for fact, _ in versions if not limits or fact.valid_from < min(limits)], later, expired

    def forget(self, page_id: str, reason: str, actor: str, source: Source) -> Fact:
        """End a fact's validity now. It stays findable with `as_of`. The ledger notes from where this was asked."""
        require_text(reason, "reason")
        if read_page_id(page_id).kind != "f":
            raise RejectedError(f"{page_id!r} is not a fact; only facts, whose ids begin with f, can be forgotten.")
        fact = self.fact(page_id)
        if fact.purged:
            raise NotFoundError(f"the fact {fact.id} was purged; its text is gone for good.")
        if fact.forgotten is not None:
            raise RejectedError(f"{fact.id} was forgotten already; there is nothing to do.")  # the reason may be a trap
        with self._store.transaction():
            self.end(fact, str(clean(reason)), actor, **_about(source))
            self._pages.move_pin(fact.id, None, "forgotten")
        return self.fact(page_id)

    def end(self, fact: Fact, reason: str, actor: str, **about: Any) -> None:
        """End a fact for a reason, in a transaction of the caller. One that is over already ended when it did."""
        now = self._clock.now()
        until, size = max(fact.valid_from, min(now, fact.valid_until or now)), tokens.total(fact.text)
        self._store.archive.forget(number_of(fact.id), reason, to_micros(until))
        self._store.ledger.write("forget", fact.id, reason=reason, actor=actor, tokens=size, **about)

    def restore(self, fact: Fact, reason: str, actor: str) -> Fact:
        """Store a fact that has ended once more, from now or its later beginning on, in the caller's transaction."""
        number, now = number_of(fact.id), self._clock.now()
        self._save_latest(now)
        origins, start = self._store.archive.origins(number), max(now, fact.valid_from)
        new = self._append_version(
            fact.text, fact.key, fact.tags, start, now, actor, origins, stated=start > now, reason=reason,
            event="restore", of=fact.id, expires=fact.expires,
        )  # fmt: skip
        if self.vectors:
            self.vectors.copy(number, number_of(new.id))
        else:
            mark_unembedded(self._store)
        self._store.archive.index_words(number_of(new.id), index_text(new.text))
        return new

    def present(self, last_at: int | None = None, now: datetime | None = None) -> datetime:
        """Return the present time; if the clock was set back, the latest time at which a fact was stored."""
        now = now or self._clock.now()
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
            raise NotFoundError(f"{page_id!r} is not a fact: the id of a fact is f and a number.")
        fact = self._store.archive.fact(number)
        if fact is None:
            raise NotFoundError(f"there is no fact f{number}; search_archive finds facts by words and meaning.")
        return fact

    def search(
        self, query: str, *, limit: int, as_of: Moment | None, tags: Sequence[str] | None, after: Moment | None,
        before: Moment | None, source: str | None, actor: str | None,
    ) -> list[Hit]:  # fmt: skip
        """Find the best facts that are true and stored in that time. An `actor` marks them as used; it is logged."""
        query = str(clean(require_text(query, "query")))
        wanted_hits = require_limit(limit) + (MISSED if actor else 0)
        stored = span_micros(after, before, self._clock.zone)
        source = "" if source is None else read_source(source).origin
        wanted = FactFilter(to_micros(self._moment(as_of)), _check_tags(tags), stored, source)
        found = self._best(query, wanted_hits, wanted) if self._store.archive.last_at() is not None else []
        hits, missed = found[:limit], found[limit:]
        if actor is not None:
            detail = {"as_of": as_of, "after": after, "before": before, "tags": wanted.tags, "source": source or None}
            detail["without_meaning"] = self.vectors.embedding.failure if self.vectors else None
            with self._store.transaction(durable=False):
                self.mark_used(hit.page_id for hit in hits)
                self._store.ledger.write_search("archive", query, hits, actor, missed=missed, **detail)
        return hits

    def mark_used(self, page_ids: Iterable[str]) -> None:
        """Count a use of each of these facts."""
        facts = [page.number for page in map(read_page_id, page_ids) if page.kind == "f"]
        self._store.archive.used(facts, to_micros(self._clock.now()))

    def recall(self, message: str, limit: int, *, only_trusted: bool = False) -> list[Hit]:
        """Return the best facts for a message that are true now."""
        return self.rank(self.candidates(message, limit, only_trusted=only_trusted), limit)

    def stored_from(self, hits: Sequence[Hit]) -> dict[int, float]:
        """Return the steps from which the best facts were stored, each with the score of its best fact.

        The score is by how much a fact is better than the last one looked at. A step with many of them is an import.
        """
        least = hits[RAISING].score if len(hits) > RAISING else 0.0
        scores = {number_of(hit.page_id): hit.score - least for hit in hits[:RAISING]}
        found: dict[int, list[float]] = {}
        for fact, steps in (self._store.archive.told_in(list(scores)) if scores else {}).items():
            for step in steps:
                found.setdefault(step, []).append(scores[fact])
        return {step: max(each) for step, each in found.items() if len(each) <= PER_STEP}

    def candidates(self, message: str, limit: int, *, only_trusted: bool = False) -> Candidates:
        """Return the facts that come into question for a message and are true now, for `rank`."""
        last_at = self._store.archive.last_at()
        if last_at is None:
            return Candidates([], {}, {}, {})  # an empty archive loads no embedder
        wanted = FactFilter(to_micros(self.present(last_at)), only_trusted=only_trusted)
        return self._candidates(message, wanted, limit)

    def word_scores(self, candidates: Candidates, rarity_of: Mapping[str, float]) -> Scores:
        """Return what words say of the candidates by how rare each is elsewhere: few facts do not say how rare it is.

        How often a fact holds a word is left out: mostly once.
        """
        holding = self._store.archive.holding(list(rarity_of), list(candidates.by_words))
        return {fact: math.fsum(rarity_of[term] for term in terms) for fact, terms in holding.items()}

    def rank(self, candidates: Candidates, limit: int, unit: float | None = None) -> list[Hit]:
        """Return the best of the candidates. Evidence beside words counts in the `unit`, if there is one."""
        terms, by_words, by_meaning, by_late = candidates
        best = fuse(by_words, by_meaning, by_late, LATE * focus(len(terms)), unit)[:limit]
        facts = self._store.archive.facts([number for number, _ in best])
        return [_hit(facts[number], parts, terms, by_meaning.get(number)) for number, parts in best]

    def _best(self, query: str, limit: int, wanted: FactFilter) -> list[Hit]:
        return self.rank(self._candidates(query, wanted, limit), limit)

    def _candidates(self, query: str, wanted: FactFilter, limit: int) -> Candidates:
        terms = words(query)
        most, meaning = max(CANDIDATES, limit), None
        if self.vectors is not None and query.strip() and self.vectors.embedding.prepare_search():
            meaning = self.vectors.embedding.embed(query)
        looked_up = 0 if meaning is None else WORD_CANDIDATES
        first, scores = self._store.archive.match(terms, most, looked_up, wanted) if terms else ([], {})
        if self.vectors is None or meaning is None:
            return Candidates(terms, {number: scores[number] for number in first}, {}, {})
        by_meaning = self._by_meaning(self.vectors, meaning.vector, wanted, limit, first)
        if others := [number for number in first if number not in by_meaning]:
            by_meaning |= dict(self.vectors.cosines_of(others, meaning.vector))
        scored = {*first, *by_meaning}
        by_words = {number: scores[number] for number in scores if number in scored}
        compares_pieces = scored and focus(len(terms)) > 0
        by_late = self._late(self.vectors, query, terms, sorted(scored)) if compares_pieces else {}
        return Candidates(terms, by_words, by_meaning, by_late)

    def _late(self, vectors: FactVectors, query: str, terms: list[str], facts: Sequence[int]) -> Scores:
        """Return how well the word pieces of facts match. Telling words count alike: how rare each is added nothing."""
        load, weights = self._store.archive.token_vectors, dict.fromkeys(terms, 1.0)
        found = vectors.embedding.best_cosines(query, weights, load, facts)
        return dict(zip(found[0], (found[1] @ found[2]).tolist(), strict=True)) if found else {}

    def _by_meaning(
        self, vectors: FactVectors, vector: Vectors, wanted: FactFilter, limit: int, true: Collection[int] = ()
    ) -> Scores:
        """Return the cosines of the nearest facts that fit. Of `true` ones that is known already."""
        count = most = max(CANDIDATES, limit)
        narrow = bool(wanted.tags) or wanted.stored != ALWAYS or bool(wanted.source)
        exact: list[tuple[int, float]] = []
        if narrow:
            newest = self._store.archive.newest_of(wanted, MAX_EXACT)
            exact = vectors.cosines_of(newest, vector)
            if len(newest) < MAX_EXACT:
                return dict(exact[:most])
        # What so many facts fit is not rare, so a few times as many of the nearest hold the hits. Where they do not,
        # four times as many are fetched, up to all there are: none that is nearer than the last hit is missed.
        opened = vectors.indexing.open(wanted.at)
        while True:
            near = vectors.nearest(vector, count, opened)
            numbers = {number for number, _ in near}
            valid = numbers & {*true} | self._store.archive.true_at(sorted(numbers - {*true}), wanted)
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
        valid = self._store.archive.true_at(list(close), FactFilter(now))
        facts = self._store.archive.facts(sorted(valid))
        ordered = sorted(valid, key=lambda found: -close[found])[:limit]
        return [_hit(facts[found], {"meaning": close[found]}, (), close[found]) for found in ordered]


def fuse(
    by_words: Mapping[int, float], by_meaning: Mapping[int, float], by_late: Mapping[int, float], late: float = 1.0,
    given: float | None = None,
) -> list[tuple[int, dict[str, float]]]:  # fmt: skip
    """Add up scores, best first, and return their parts. A side that does not know an id gives it its least.

    Words count what BM25 gives them, the cosine as much in units of the spread of that, word pieces `late` times it.
    Where words were scored elsewhere, the unit is `given`.
    """
    found = sorted({*by_words, *by_meaning}, reverse=True)
    parts: dict[int, dict[str, float]] = {each: {} for each in found}
    # A word that half of them hold has no rarity left; it counts by the share of those that do not hold it.
    without = max(1 - len(by_words) / max(len(found), 1), NEGLIGIBLE)
    sides = (
        ("words", by_words, 0.0, without),
        ("meaning", by_meaning, min(by_meaning.values(), default=0.0), NEGLIGIBLE),
        ("late", by_late, min(by_late.values(), default=0.0), NEGLIGIBLE),
    )
    unit = given or certainty(len(found))
    for name, scores, least, worth in sides:
        if not scores:
            continue
        values = [scores.get(each, least) for each in found]
        mean = math.fsum(values) / len(values)
        spread = math.dist(values, [mean] * len(values)) / math.sqrt(len(values))
        spread = spread if spread > SMALLEST_SPREAD else 0.0
        weight = worth / spread if 0 < spread <= NEGLIGIBLE else 1 / (spread or 1.0)
        if name == "words":
            if given or spread > NEGLIGIBLE:
                scale, unit = 1.0, given or unit * spread
            else:  # a word that most of a handful hold does not tell them apart
                scale, unit = weight, unit if len(scores) == 1 else 1.0
        else:
            scale = weight * unit * (late if name == "late" else 1.0)
        for each in scores:
            parts[each][name] = (scores[each] - least) * scale
    return sorted(parts.items(), key=lambda each: -math.fsum(each[1].values()))


def _hit(fact: Fact, parts: dict[str, float], terms: Sequence[str], cosine: float | None) -> Hit:
    text = fact.text if len(fact.text) <= MAX_HIT_CHARS else excerpt(fact.text, terms, MAX_HIT_CHARS)
    validity = fact.valid_from, fact.valid_until
    return Hit(
        fact.id, text, fact.at, math.fsum(parts.values()), parts, fact.actor, fact.tags, *validity, fact.supersedes,
        fact.sources, fact.via, cosine,
    )  # fmt: skip


def _about(*sources: Source) -> dict[str, Any]:
    """Return what the ledger notes of sources."""
    via = sorted({name for source in sources for name in source.via})
    return {"source": ", ".join(source.origin for source in sources), "via": via}


def _check_tags(tags: Sequence[str] | None) -> list[str]:
    if tags is None:
        return []
    if isinstance(tags, str):
        raise RejectedError(f"tags is the text {tags!r}; give a list, such as [{tags!r}].")
    if any(not tag.strip() for tag in require_texts(tags, "tags")):
        raise RejectedError("a tag is empty; leave it out.")
    return [normalized(tag) for tag in tags]
