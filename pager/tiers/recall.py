"""The recall tier beside the prompt: turns recorded from elsewhere, and every step that was ever said, found by its
words and its neighbours' words, by what it means, by who said it and when.

Words alone find well; an embedder adds to it. The index of words holds every part, and what a search needs beside it
(`TurnTable`, the vectors) is read from the store once and then grows with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pager.arguments import text_of_person, text_or_none, whole_number
from pager.blocks import clean, text_block, text_of
from pager.clock import FIRST, LAST, Clock, Moment, from_micros, moment_of, span_end, span_start, to_micros
from pager.errors import RejectedError
from pager.search import dates
from pager.search.neighbours import TurnTable
from pager.search.ranking import Ranking
from pager.search.words import excerpt, index_text, words
from pager.store import Store
from pager.store.rows import Said
from pager.types import Hit, Json
from pager.vectors.turns import TurnVectors

RECORD_FIELDS = frozenset({"role", "text", "at", "name", "session"})
PARTS_PER_STEP = 4  # parts looked at for each step wanted: a step with many results may match with several
MISSED = 3  # of the steps behind the last hit the ledger names so many
OLDEST_YEARS = 30  # "in May" means any May of the last so many years


class Recall:
    def __init__(self, store: Store, clock: Clock, meaning: TurnVectors | None) -> None:
        self._store = store
        self._clock = clock
        self.meaning = meaning
        self._turns: TurnTable | None = None
        self._purges: str | None = None
        self._is_undoable = False  # what is known of the turns was read within a transaction that goes on
        store.when_rolled_back(self.forget_undone)

    def forget(self) -> None:
        """Something was cut off, purged or made anew: what is known of the turns is read again."""
        self._turns, self._is_undoable = None, False
        if self.meaning:
            self.meaning.reset()

    def forget_undone(self) -> None:
        """A transaction was undone. What was read before it stands."""
        if self._is_undoable:
            self.forget()

    def _know(self) -> None:
        self._is_undoable = False

    # turns from elsewhere

    def record(self, role: str, text: str, *, at: Moment | None, name: str | None, session: str | None) -> int:
        moment = moment_of(at, self._clock)
        text_of_person(text, "text")
        role = clean(text_of_person(role, "role"))
        name, session = clean(text_or_none(name, "name")), clean(text_or_none(session, "session"))
        if not role.strip():
            raise RejectedError("the role is empty; say who spoke, such as 'user' or 'assistant'.")
        with self._store.transaction():
            number = self._store.conversation.append_step("record", role, moment, name=name, session=session)
            block = cast(Json, clean(text_block(text)))
            words = index_text(block["text"], name) if text.strip() else None
            self._store.conversation.append_part(number, "said", "user", block, moment, words=words)
            if words is not None:
                self._store.said.owe([number])
        return number

    def record_many(self, turns: Iterable[Mapping[str, Any]]) -> list[int]:
        """All of them or, when one is wrong, none; the error says which."""
        if not isinstance(turns, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"the turns are {turns!r:.100}; give dicts with role and text, one for each turn.")
        numbers: list[int] = []
        with self._store.transaction():
            for index, turn in enumerate(turns):
                try:
                    numbers.append(self.record(**_record_fields(turn)))
                except RejectedError as error:
                    raise RejectedError(f"turn {index}: {error}") from None
        return numbers

    # searching

    def search(self, query: str, *, limit: int, after: Moment | None, before: Moment | None, actor: str) -> list[Hit]:
        """What `find` finds, noted with what it only just did not."""
        more = MISSED if whole_number(limit, "limit") > 0 else 0
        found = self.find(query, limit=limit + more, after=after, before=before)
        hits, missed = found[:limit], found[limit:]
        span = {name: str(value) for name, value in (("after", after), ("before", before)) if value is not None}
        if self.meaning and (why := self.meaning.embedding.failure):
            span["without_meaning"] = why
        with self._store.transaction(durable=False):
            self._store.ledger.write_search("recall", str(clean(query)), hits, actor, missed=missed, **span)
        return hits

    def find(self, query: str, *, limit: int, after: Moment | None, before: Moment | None) -> list[Hit]:
        """The best steps, best first; without words in the query the newest ones of the span."""
        if whole_number(limit, "limit") < 1:
            raise RejectedError(f"limit is {limit}; ask for at least 1.")
        query, zone = str(clean(text_of_person(query, "query"))), self._clock.zone
        start = to_micros(span_start(after, zone)) if after is not None else None
        end = to_micros(span_end(before, zone)) if before is not None else None
        if not query.strip():
            return [self._hit(said, (), 0.0, {}) for said in self._newest_steps(limit, start, end)]
        asked, turns = words(query), self._known_turns()
        if not asked or not len(turns):
            return []
        ranking = self._ranked(query, asked, Ranking(turns, start, end))
        best = _best_steps(ranking, limit)
        said = self._store.said.said([int(turns.part[place]) for place, _ in best])
        return [self._hit(said[int(turns.part[place])], asked, score, ranking.parts(place)) for place, score in best]

    def _newest_steps(self, limit: int, start: int | None, end: int | None) -> list[Said]:
        newest: dict[int, Said] = {}
        for said in self._store.said.newest(limit * PARTS_PER_STEP, start, end):
            newest.setdefault(said.step, said)
        return list(newest.values())[:limit]

    def _known_turns(self) -> TurnTable:
        """All turns, up to the newest."""
        purges = self._store.settings.get("purges")
        if self._turns is None or purges != self._purges:
            self.forget()
            self._turns, self._purges = TurnTable(), purges
        if self._store.in_transaction:
            self._is_undoable = True
            self._store.after_commit(self._know)
        self._turns.extend(self._store.said.told(self._turns.newest_part))
        return self._turns

    def _ranked(self, query: str, asked: list[str], ranking: Ranking) -> Ranking:
        """All that speaks for any turn."""
        self._add_words(ranking, asked)
        ranking.add_speakers(query)
        ranking.add_spans(self._named_times(query, ranking.turns), self._around_event(query, ranking.turns))
        if self.meaning and (near := self.meaning.nearness(query, ranking.turns)):
            ranking.add_meaning(*near)
        return ranking

    def _add_words(self, ranking: Ranking, asked: list[str]) -> None:
        for term in self._store.conversation.terms([" ".join(asked)])[0]:
            ranking.add_word(self._store.said.places(term))

    def _named_times(self, query: str, turns: TurnTable) -> list[tuple[int, int]]:
        zone, today = self._clock.zone, self._clock.now().date()
        first = from_micros(turns.first_at, zone).year
        newest = from_micros(turns.last_at, zone).date()
        last = max(today.year, newest.year)
        people = {word for _, name in turns.speakers for word in (name or "").lower().split()}
        spans = dates.spans(query, today, range(max(first, last - OLDEST_YEARS), last + 1), newest, people)
        told = [(max(start, FIRST), min(end, LAST)) for start, end in spans]
        return [(to_micros(span_start(a, zone)), to_micros(span_start(b, zone))) for a, b in told if a < b]

    def _around_event(self, query: str, turns: TurnTable) -> list[tuple[int, int]]:
        """Before the move: before what speaks most clearly of a move."""
        asked = dates.event(query)
        if asked is None:
            return []
        side, what = asked
        event = Ranking(turns)
        self._add_words(event, words(what))
        found = event.best(1)
        if not found:
            return []
        at = int(turns.at[found[0][0]])
        return [(turns.first_at, at) if side == "before" else (at, turns.last_at + 1)]

    def _hit(self, said: Said, asked: Sequence[str], score: float, parts: dict[str, float]) -> Hit:
        text = excerpt(text_of(said.block), asked)
        who = said.name or said.role
        return Hit(f"s{said.step}", text, from_micros(said.at, self._clock.zone), score, parts, who)


def _best_steps(ranking: Ranking, limit: int) -> list[tuple[int, float]]:
    """Of each step its best part."""
    wanted = limit * PARTS_PER_STEP
    while True:
        found = ranking.best(wanted)
        best: dict[int, tuple[int, float]] = {}
        for place, score in found:
            best.setdefault(int(ranking.turns.step[place]), (place, score))
        if len(best) >= limit or len(found) < wanted:
            return list(best.values())[:limit]
        wanted *= 4


def _record_fields(turn: Any) -> dict[str, Any]:
    """The arguments of `record` out of a turn as it came, perhaps from a file."""
    given = dict(cast("Mapping[str, Any]", turn)) if isinstance(turn, Mapping) else {"text": turn}
    unknown = given.keys() - RECORD_FIELDS
    texts = all(isinstance(given.get(name), str) for name in ("role", "text"))
    if unknown or not texts or not all(isinstance(given.get(name), str | None) for name in ("name", "session")):
        raise RejectedError(
            "it needs the texts role and text, and may have at, name and session (texts, too)"
            + (f"; unknown: {', '.join(sorted(map(str, unknown)))}." if unknown else f"; it is {turn!r:.200}.")
        )
    return {"at": None, "name": None, "session": None, **given}
