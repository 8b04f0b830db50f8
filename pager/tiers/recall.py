"""The recall tier: every step that was ever said, and messages recorded from elsewhere.

Steps are found by their words and their neighbours' words, by meaning, by speaker and by time. Words alone find well;
an embedder adds to it. What a search needs beside the word index (`PartTable`, vectors) is loaded once and then grows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pager.arguments import optional_text, require_limit, require_text, require_texts
from pager.blocks import clean, text_block, text_of
from pager.clock import FIRST, LAST, Clock, Moment, from_micros, moment_of, span_micros, span_start, to_micros
from pager.errors import RejectedError, brief
from pager.safety.sources import Source, untrusted_among
from pager.search import dates
from pager.search.neighbours import PartTable
from pager.search.words import excerpt, index_text, words
from pager.store import Store
from pager.store.rows import Said
from pager.tiers.archive import RAISING, Archive
from pager.types import Hit, Json, read_step_id
from pager.vectors.said import SaidVectors

if TYPE_CHECKING:
    from pager.search.ranking import Ranking

RECORD_FIELDS = frozenset({"role", "text", "at", "name", "session", "source", "data"})
PARTS_PER_STEP = 4  # parts looked at for each step wanted: a step with many results may match with several
MISSED = 3  # hits below the limit that the ledger names
MAX_YEARS = 30  # "in May" means any May of that many years


class Recall:
    """Stores messages from elsewhere, and finds steps."""

    def __init__(self, store: Store, clock: Clock, vectors: SaidVectors | None, archive: Archive) -> None:
        self._store = store
        self._archive = archive
        self._clock = clock
        self.vectors = vectors
        self._table: PartTable | None = None
        self._purges: str | None = None
        self._is_uncommitted = False  # self._table was extended within a transaction that is still open
        store.when_rolled_back(self._invalidate_uncommitted)

    def invalidate(self) -> None:
        """Load parts and vectors again at the next search: after an interrupt, a purge, a repair."""
        self._table, self._is_uncommitted = None, False
        if self.vectors:
            self.vectors.reset()

    def _invalidate_uncommitted(self) -> None:
        if self._is_uncommitted:
            self.invalidate()

    def record(
        self, role: str, text: str, *, at: Moment | None, name: str | None, session: str | None,
        source: str | Collection[str] | None = None, data: Json | None = None,
    ) -> int:  # fmt: skip
        """Store a message from elsewhere, with its untrusted sources. Return its number. Without a text it is never
        found."""
        moment = moment_of(at, self._clock)
        require_text(text, "text")
        role = clean(require_text(role, "role"))
        name, session = clean(optional_text(name, "name")), clean(optional_text(session, "session"))
        if not role.strip():
            raise RejectedError("the role is empty; say who spoke, such as 'user' or 'assistant'.")
        with self._store.transaction():
            number = self._store.conversation.append_step(
                "record", role, moment, name=name, session=session, sources=untrusted_among(source)
            )
            block = cast(Json, clean(text_block(text) if data is None else {**text_block(text), "data": data}))
            words = index_text(block["text"], name) if text.strip() else None
            self._store.conversation.append_part(number, "said", "user", block, moment, words, None)
            if words is not None:
                self._store.said.enqueue([number])
        return number

    def forget_records(self, page_ids: Iterable[str], reason: str, actor: str) -> None:
        """Take records out of their sessions and of every search. Only a purge destroys them."""
        if not require_text(reason, "reason").strip():
            raise RejectedError("the reason is empty; say why these messages are not to be found any more.")
        with self._store.transaction():
            for page_id in require_texts(list(page_ids), "page_ids"):
                number = read_step_id(page_id)
                step = self._store.conversation.step(number)
                if step is None or step["kind"] != "record":
                    raise RejectedError(f"{page_id} is no message that was recorded; only those can be forgotten.")
                said = self._store.said.said(list(self._store.said.parts_of([number])))
                words = {part: index_text(text_of(each.block), each.name) for part, each in said.items()}
                self._store.records.forget(number, words)
                about = {"session": step["session"]}
                self._store.ledger.write("forget", page_id, reason=str(clean(reason)), actor=actor, **about)
            # A reader loads what it searches anew when this number changes.
            self._store.settings.put("purges", str(int(self._store.settings.get("purges") or 0) + 1))
        self.invalidate()

    def record_many(self, messages: Iterable[Mapping[str, Any]]) -> list[int]:
        """Store all messages or, if one is wrong, none; the error says which."""
        if not isinstance(messages, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"the messages are {brief(messages)}; give dicts with role and text.")
        numbers: list[int] = []
        with self._store.transaction():
            for index, message in enumerate(messages):
                try:
                    numbers.append(self.record(**_record_fields(message)))
                except RejectedError as error:
                    raise RejectedError(f"message {index}: {error}") from None
        return numbers

    def search(
        self, query: str, *, limit: int, after: Moment | None, before: Moment | None, actor: str | None
    ) -> list[Hit]:
        """Find steps, best first. With an `actor` the ledger logs the search."""
        query = str(clean(require_text(query, "query")))
        span = span_micros(after, before, self._clock.zone)
        found = self.find(query, require_limit(limit) + (MISSED if actor else 0), *span)
        hits, missed = found[:limit], found[limit:]
        if actor is not None:
            detail = {"after": after, "before": before}
            detail["without_meaning"] = self.vectors.embedding.failure if self.vectors else None
            with self._store.transaction(durable=False):
                self._store.ledger.write_search("recall", query, hits, actor, missed=missed, **detail)
        return hits

    def find(
        self, query: str, limit: int, start: int | None = None, end: int | None = None, *,
        without: Sequence[int] = (), facts: Sequence[Hit] | None = None,
    ) -> list[Hit]:  # fmt: skip
        """Return the best steps but some, best first; without words in the query the newest ones of the span. Those of
        withdrawn turns are never found.

        `facts` are the best for the query, `RAISING` and one more, if the caller has them at hand.
        """
        if not query.strip():
            newest: dict[int, Said] = {}
            for said in self._store.said.newest(limit * PARTS_PER_STEP, start, end):
                newest.setdefault(said.step, said)
            return [self._hit(said, (), 0.0, {}) for said in list(newest.values())[:limit]]
        ranking = self.rank_words(query, start, end, without=without)
        if ranking is None:
            return []
        return self.rank(ranking, query, limit, self._archive.recall(query, RAISING + 1) if facts is None else facts)

    def rank_words(
        self, query: str, start: int | None = None, end: int | None = None, *,
        without: Sequence[int] = (), with_facts: bool = False,
    ) -> Ranking | None:  # fmt: skip
        """Return a ranking by words for `rank`; None if there is nothing to rank, or by nothing.

        `with_facts`: facts will be ranked with the steps, so a word is as rare as it is among both.
        """
        terms, table = words(query), self._load_table()
        if not terms or not len(table):
            return None
        ranking = self._ranking(table, terms, start, end, with_facts=with_facts)
        ranking.leave_out([*without, *self._store.ledger.withdrawn()])
        return ranking

    def rank(self, ranking: Ranking, query: str, limit: int, facts: Sequence[Hit]) -> list[Hit]:
        """Return the best steps by words and all other evidence. `facts` raise what they were stored from."""
        table = ranking.table
        ranking.add_speakers(query)
        ranking.add_spans(self._named_times(query, table), self._around_event(query, table))
        near = self.vectors and self.vectors.nearness(query, table)
        if near:
            ranking.add_meaning(*near)
        self._add_facts(ranking, facts)
        if self.vectors and near:
            self._add_late(self.vectors, ranking, query)
        best, terms = _best_steps(ranking, limit), words(query)
        parts = self._store.said.said([int(table.part[place]) for place, _ in best])
        return [self._hit(parts[int(table.part[place])], terms, score, ranking.explain(place)) for place, score in best]

    def _add_facts(self, ranking: Ranking, facts: Sequence[Hit]) -> None:
        """Raise what the best facts were stored from."""
        if scores := self._archive.stored_from(facts):
            parts = self._store.said.parts_of(list(scores))
            ranking.add_facts(list(parts), [scores[step] for step in parts.values()])

    def _add_late(self, vectors: SaidVectors, ranking: Ranking, query: str) -> None:
        reranked = ranking.to_rerank()
        if len(reranked) and (found := vectors.best_cosines(query, ranking.rarities, ranking.table, reranked)):
            ranking.add_late(reranked, *found)

    def _load_table(self) -> PartTable:
        # Another process may purge what a reader has loaded; the writer calls `invalidate`.
        purges = self._store.settings.get("purges") if self._store.read_only else None
        if self._table is None or purges != self._purges:
            self.invalidate()
            self._table, self._purges = PartTable(), purges
        if self._store.in_transaction:
            self._is_uncommitted = True
            self._store.after_commit(partial(setattr, self, "_is_uncommitted", False))
        self._table.extend(self._store.said.metadata(self._table.newest_part))
        return self._table

    def _ranking(
        self, table: PartTable, asked: list[str], start: int | None = None, end: int | None = None, *,
        with_facts: bool = False,
    ) -> Ranking:  # fmt: skip
        from pager.search.ranking import Ranking  # loads numpy

        ranking = Ranking(table, start, end, self._store.archive.count_searchable() if with_facts else 0)
        asked_terms = self._store.conversation.terms(asked)
        terms = list(dict.fromkeys(term for each in asked_terms for term in each))
        places = self._store.said.places(terms)
        beside = self._store.archive.count_holding(terms) if with_facts else dict.fromkeys(terms, 0)
        found = {term: ranking.add_word(at, beside[term]) for term, at in zip(terms, places, strict=True)}
        ranking.rarity_of = found
        ranking.rarities = {word: found[each[0]] for word, each in zip(asked, asked_terms, strict=True) if each}
        return ranking

    def _named_times(self, query: str, table: PartTable) -> list[tuple[int, int]]:
        zone, today = self._clock.zone, self._clock.now().date()
        first = from_micros(table.first_at, zone).year
        newest = from_micros(table.last_at, zone).date()
        last = max(today.year, newest.year)
        people = {word for _, name in table.speakers for word in (name or "").lower().split()}
        spans = dates.spans(query, today, range(max(first, last - MAX_YEARS), last + 1), newest, people)
        within = [(max(start, FIRST), min(end, LAST)) for start, end in spans]
        return [(to_micros(span_start(a, zone)), to_micros(span_start(b, zone))) for a, b in within if a < b]

    def _around_event(self, query: str, table: PartTable) -> list[tuple[int, int]]:
        """Return the time before or after an event: "before the move" is before what speaks most clearly of a move."""
        named = dates.event(query)
        if named is None:
            return []
        side, what = named
        best = self._ranking(table, words(what)).best(1)
        moments = [int(table.at[place]) for place, _ in best]
        return [(table.first_at, at) if side == "before" else (at, table.last_at + 1) for at in moments]

    def _hit(self, said: Said, asked: Sequence[str], score: float, parts: dict[str, float]) -> Hit:
        text = excerpt(text_of(said.block), asked)
        who, step = said.name or said.role, f"s{said.step}"
        via = tuple(sorted(said.sources))
        parted = (name.partition(":") for name in via)
        sources = tuple(Source(kind, name, step) for kind, _, name in parted)
        return Hit(step, text, from_micros(said.at, self._clock.zone), score, parts, who, sources=sources, via=via)


def _best_steps(ranking: Ranking, limit: int) -> list[tuple[int, float]]:
    wanted = limit * PARTS_PER_STEP
    while True:
        found = ranking.best(wanted)
        best: dict[int, tuple[int, float]] = {}
        for place, score in found:
            best.setdefault(int(ranking.table.step[place]), (place, score))
        if len(best) >= limit or len(found) < wanted:
            return list(best.values())[:limit]
        wanted *= 4


def _record_fields(message: Any) -> dict[str, Any]:
    given = dict(cast("Mapping[str, Any]", message)) if isinstance(message, Mapping) else {"text": message}
    unknown = given.keys() - RECORD_FIELDS
    texts = all(isinstance(given.get(name), str) for name in ("role", "text"))
    named = all(isinstance(given.get(name), str | None) for name in ("name", "session"))
    if unknown or not texts or not named or not isinstance(given.get("data"), dict | None):
        wrong = (
            f"unknown: {', '.join(sorted(map(str, unknown)))}"
            if unknown
            else f"it is {brief(cast(object, message), 200)}"
        )
        raise RejectedError(
            f"it needs the texts role and text, and may have at, source, name and session (texts, too), "
            f"and data (a dict); {wrong}."
        )
    return {"at": None, "name": None, "session": None, "source": None, "data": None, **given}
