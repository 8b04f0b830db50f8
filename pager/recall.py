"""The recall tier's reading side: every step that was ever said, resident or evicted, by words and by date."""

from __future__ import annotations

from collections.abc import Sequence

from pager.blocks import clean, text_of
from pager.clock import Clock, Moment, from_micros, span_end, span_start, to_micros
from pager.content import text_of_person, whole_number
from pager.errors import Refused
from pager.ledger import Ledger
from pager.search import excerpt, words
from pager.store import Said, Store
from pager.types import Hit

PARTS_PER_STEP = 4  # parts fetched for each step wanted: a step with many results may match with several


class Recall:
    def __init__(self, store: Store, clock: Clock, ledger: Ledger) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger

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
