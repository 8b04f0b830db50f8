"""The recall tier beside the prompt: turns recorded from elsewhere, and every step that was ever said, by words and
date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pager import words as word_index
from pager.blocks import clean, text_block, text_of
from pager.clock import Clock, Moment, from_micros, moment_of, span_end, span_start, to_micros
from pager.content import text_of_person, text_or_none, whole_number
from pager.errors import Refused
from pager.ledger import Ledger
from pager.search import excerpt, words
from pager.store import Said, Store
from pager.types import Hit, Json

RECORD_FIELDS = frozenset({"role", "text", "at", "name", "session"})
PARTS_PER_STEP = 4  # parts fetched for each step wanted: a step with many results may match with several


class Recall:
    def __init__(self, store: Store, clock: Clock, ledger: Ledger) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger

    # turns from elsewhere

    def record(self, role: str, text: str, *, at: Moment | None, name: str | None, session: str | None) -> int:
        moment = moment_of(at, self._clock)
        text_of_person(text, "text")
        role = clean(text_of_person(role, "role"))
        name, session = clean(text_or_none(name, "name")), clean(text_or_none(session, "session"))
        if not role.strip():
            raise Refused("the role is empty; say who spoke, such as 'user' or 'assistant'.")
        with self._store.transaction():
            number = self._store.conversation.append_step("record", role, moment, name=name, session=session)
            block = cast(Json, clean(text_block(text)))
            part = self._store.conversation.append_part(
                number, "said", "user", block, moment, searchable=bool(text.strip())
            )
            if text.strip():
                self._store.conversation.index_words(part, word_index.indexed(block["text"], name))
        return number

    def record_many(self, turns: Iterable[Mapping[str, Any]]) -> list[int]:
        """All of them or, when one is wrong, none; the error says which."""
        if not isinstance(turns, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise Refused(f"the turns are {turns!r:.100}; give dicts with role and text, one for each turn.")
        numbers: list[int] = []
        with self._store.transaction():
            for index, turn in enumerate(turns):
                try:
                    numbers.append(self.record(**_record_fields(turn)))
                except Refused as error:
                    raise Refused(f"turn {index}: {error}") from None
        return numbers

    # searching

    def search(self, query: str, *, limit: int, after: Moment | None, before: Moment | None, actor: str) -> list[Hit]:
        hits = self.find(query, limit=limit, after=after, before=before)
        span = {name: str(value) for name, value in (("after", after), ("before", before)) if value is not None}
        with self._store.transaction():
            self._ledger.searched("recall", str(clean(query)), hits, actor, **span)
        return hits

    def find(self, query: str, *, limit: int, after: Moment | None, before: Moment | None) -> list[Hit]:
        """The best steps, best first; without words in the query the newest ones of the span."""
        if whole_number(limit, "limit") < 1:
            raise Refused(f"limit is {limit}; ask for at least 1.")
        query, zone = str(clean(text_of_person(query, "query"))), self._clock.zone
        start = to_micros(span_start(after, zone)) if after is not None else None
        end = to_micros(span_end(before, zone)) if before is not None else None
        asked = words(query)
        wanted = limit * PARTS_PER_STEP
        if asked:
            found = self._store.conversation.match(asked, wanted, start, end)
        elif not query.strip():
            found = self._store.conversation.newest(wanted, start, end)
        else:
            found = []
        return [self._hit(said, query) for said in _best_of_each_step(found)[:limit]]

    def _hit(self, said: Said, query: str) -> Hit:
        text = excerpt(text_of(said.block), query)
        who = said.name or said.role
        return Hit(
            f"s{said.step}", text, from_micros(said.at, self._clock.zone), said.score, {"words": said.score}, who
        )


def _best_of_each_step(found: Sequence[Said]) -> list[Said]:
    best: dict[int, Said] = {}
    for said in found:
        best.setdefault(said.step, said)
    return list(best.values())


def _record_fields(turn: Any) -> dict[str, Any]:
    """The arguments of `record` out of a turn as it came, perhaps from a file."""
    given = dict(cast("Mapping[str, Any]", turn)) if isinstance(turn, Mapping) else {"text": turn}
    unknown = given.keys() - RECORD_FIELDS
    texts = all(isinstance(given.get(name), str) for name in ("role", "text"))
    if unknown or not texts or not all(isinstance(given.get(name), str | None) for name in ("name", "session")):
        raise Refused(
            "it needs the texts role and text, and may have at, name and session (texts, too)"
            + (f"; unknown: {', '.join(sorted(unknown))}." if unknown else f"; it is {turn!r:.200}.")
        )
    return {"at": None, "name": None, "session": None, **given}
