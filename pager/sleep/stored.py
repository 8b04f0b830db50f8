"""Edits as they are stored, and new facts in them."""

from collections.abc import Sequence
from datetime import datetime

from pager.blocks import dump
from pager.clock import Clock, to_micros
from pager.errors import RejectedError
from pager.sleep import tidying
from pager.sleep.edits import Edit, NewFact
from pager.store import Store
from pager.store.rows import EditRow, Origin
from pager.types import Json, number_of, read_step_id


class StoredEdits:
    """Appends edits to an unfinished sleep. Whoever calls it has the lock."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def check_unfinished(self, number: int) -> None:
        """Raise RejectedError unless a sleep was begun and is not finished."""
        if number != self._store.sleeps.unfinished():
            raise RejectedError(f"sleep {number} is finished, or there is none: call begin first.")

    def append(self, number: int, edit: Edit) -> None:
        """Store an edit with its sources."""
        origins = [origin for page in edit.pages for origin in self._store.archive.origins(number_of(page))]
        quotes = [(read_step_id(quote.step), quote.begin, quote.end) for quote in edit.quotes]
        row = EditRow(
            edit.kind, edit.reason, edit.asks, edit.pages, edit.keeps, [stored_fact(fact) for fact in edit.after],
            edit.block, edit.version, edit.value, quotes,
        )  # fmt: skip
        self._store.sleeps.append(number, row, self._origins(edit, origins))

    def _origins(self, edit: Edit, origins: Sequence[Origin]) -> list[Origin]:
        if not edit.quotes:
            return tidying.merged_origins(origins, edit.sources)
        at = max((fact.valid_from for fact in edit.after if fact.valid_from), default=self._clock.now())
        return tidying.merged_origins([Origin(source, to_micros(at)) for source in edit.sources], edit.sources)

    def is_known(self, edit: Edit) -> bool:
        """Return True if the same is open, or was refused or undone."""
        return signature(edit) in self._store.sleeps.signatures()


def stored_fact(fact: NewFact) -> Json:
    """Return a new fact as it is stored."""
    start = {"valid_from": fact.valid_from.isoformat()} if fact.valid_from else {}
    return {"text": fact.text, "key": fact.key, "tags": list(fact.tags), **start}


def new_fact(stored: Json) -> NewFact:
    """Return a new fact from what is stored of it."""
    start = stored.get("valid_from")
    begins = None if start is None else datetime.fromisoformat(start)
    return NewFact(stored["text"], stored.get("key"), tuple(stored.get("tags", ())), begins)


def signature(edit: Edit) -> tuple[str, str, str | None, int | None]:
    """Return what makes two edits the same proposal."""
    return edit.kind, dump(list(edit.pages)), edit.block, edit.version
