"""Carry out what a sleep proposed, and take it back. Each is one transaction of the caller's.

What an edit is about may have changed since it was proposed: then it is stale, and nothing of it is done. Applying
notes what it made and what it ended. Undoing compares that with what is there now: an edit stays as a whole, with what
has changed, if any of its results was changed since. Facts that a sleep made are withdrawn: they were never true. Those
that it ended go on as if they had never ended, under their ids.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from pager import tokens
from pager.clock import Clock, span_start, to_micros
from pager.errors import RejectedError
from pager.safety.sources import untrusted_of
from pager.sleep.tidying import guards
from pager.store import Store
from pager.store.rows import EditRow, End, FactFilter, Origin, Pin
from pager.tiers.archive import Archive
from pager.tiers.core import Core
from pager.tiers.pages import Pages
from pager.types import FOREVER, Block, Fact, Json, number_of
from pager.vectors.embedder import EmbedderUnavailableError, Meaning

WITHDRAWN = "the sleep that made it was undone"


class StaleError(RejectedError):
    """Raised for an edit whose facts or block have changed since it was proposed."""


class Changes:
    """Applies and undoes edits, for one agent."""

    def __init__(self, store: Store, clock: Clock, archive: Archive, core: Core, pages: Pages) -> None:
        self._store = store
        self._clock = clock
        self._archive = archive
        self._core = core
        self._pages = pages

    def embed(self, edits: Sequence[EditRow]) -> dict[str, Meaning]:
        """Return what the new texts mean. Before the transaction: it takes longer than everything else."""
        texts = list(dict.fromkeys(str(fact["text"]) for edit in edits for fact in edit.after))
        if not texts or self._archive.vectors is None or self._archive.vectors.embedding.is_paused:
            return {}
        with suppress(EmbedderUnavailableError):  # then they get their vectors later
            return dict(zip(texts, self._archive.vectors.embedding.embed_all(texts), strict=True))
        return {}

    def apply(self, edit: EditRow, meanings: Mapping[str, Meaning]) -> None:
        """Carry out an edit, or note why it is stale."""
        try:
            with self._store.transaction():
                self._check(edit)
                done = self._rewrite(edit) if edit.kind == "core" else self._change_facts(edit, meanings)
        except RejectedError as error:  # a full block, too
            self._store.sleeps.put_state(edit.number, "stale", str(error))
        else:
            self._store.sleeps.put_state(edit.number, "applied", "", done)

    def _check(self, edit: EditRow) -> None:
        """Raise StaleError unless all that an edit is about is as it was."""
        numbers = [number_of(page) for page in (*edit.pages, *edit.keeps)]
        true = self._store.archive.true_at(numbers, FactFilter(to_micros(self._archive.present())))
        ends = self._store.archive.ends(numbers)
        for number in numbers:
            if number not in true or ends[number].superseded_by or ends[number].forgotten is not None:
                raise StaleError(f"f{number} is not true any more")
        if withdrawn := self._store.ledger.withdrawn() & {step for step, *_ in edit.quotes}:
            raise StaleError(f"s{min(withdrawn)} was withdrawn")
        for fact in edit.after:
            current = self._current(fact.get("key"))
            if current is not None and current.id not in edit.pages and current.actor != actor_of(edit.sleep):
                raise StaleError(f"{current.id} has the key {fact['key']!r} since")
            if edit.kind == "new" and self._repeats(fact):
                raise StaleError("a fact says the same already")

    def _current(self, key: str | None) -> Fact | None:
        versions = [] if key is None else [fact for fact, _ in self._store.archive.versions(key)]
        return next((fact for fact in versions if fact.superseded_by is None and fact.forgotten is None), None)

    def _repeats(self, fact: Json) -> bool:
        at = to_micros(self._archive.present())
        return self._store.archive.repeat(fact["text"], fact.get("key"), fact.get("tags", []), None, at) is not None

    # facts

    def _change_facts(self, edit: EditRow, meanings: Mapping[str, Meaning]) -> Json:
        touched = {number_of(page) for page in edit.pages}
        for fact in edit.after:
            if key := fact.get("key"):
                touched |= {number_of(version.id) for version, _ in self._store.archive.versions(key)}
        before, first = self._store.archive.ends(sorted(touched)), self._store.archive.last_fact()
        pins = [
            (pin.page_id, pin.offset, pin.length) for pin in self._pins(touched)
        ]  # also of another version of its key, which ends by it
        origins = self._store.sleeps.origins(edit.number)
        made = [self._write(edit, fact, origins, meanings) for fact in edit.after]
        via = untrusted_of([origin.source for origin in origins]) if origins else ()
        for page in edit.pages:
            ended = self._archive.fact(page)
            if ended.superseded_by is None:
                what = f"{made[-1].id} says it" if made else edit.reason
                self._archive.end(ended, what, actor_of(edit.sleep), via=sorted(via), sleep=edit.sleep)
                self._pages.move_pin(page, made[-1].id if made else None, what)
        after = self._store.archive.ends(sorted(touched))
        changed = [number for number in sorted(touched) if before[number] != after[number]]
        numbers = list(range(first + 1, self._store.archive.last_fact() + 1))
        ends = self._store.archive.ends(numbers)
        return {
            "made": numbers, "made_ends": [list(ends[number]) for number in numbers],
            "pins": pins, "pinned": [pin.page_id for pin in self._pins(numbers)],
            "ended": [[number, list(before[number]), list(after[number])] for number in changed],
        }  # fmt: skip

    def _pins(self, facts: Collection[int]) -> list[Pin]:
        pages = {f"f{number}" for number in facts}
        return [pin for pin in self._store.prompt.pins() if pin.page_id in pages]

    def _write(self, edit: EditRow, fact: Json, origins: Sequence[Origin], meanings: Mapping[str, Meaning]) -> Fact:
        start = fact.get("valid_from")
        begins = None if start is None else span_start(datetime.fromisoformat(start), self._clock.zone)
        tags, now = fact.get("tags", []), self._clock.now()
        # The ledger names no key of another fact, which may be purged.
        reason = f"the keys of {' and '.join(edit.pages)} mean the same" if edit.kind == "key" else edit.reason
        return self._archive.write(
            fact["text"], fact.get("key"), tags, begins, now, actor_of(edit.sleep), origins,
            meaning=meanings.get(fact["text"]), reason=reason, expires=self._end_by_tags(tags, begins),
        )  # fmt: skip

    def _end_by_tags(self, tags: Sequence[str], begins: datetime | None) -> datetime | None:
        """Return when a fact ends that is stored now, as `archive` has it: counted from what comes last."""
        present = self._archive.present()
        return self._archive.end_by_tags(tags, max(begins or present, present))

    # core

    def _rewrite(self, edit: EditRow) -> Json:
        block = self._newest(edit.block)
        if block is None or block.version != edit.version:
            raise StaleError(f"the block {edit.block} was changed since")
        if edit.value is None or block.read_only or block.file:
            raise StaleError(f"the block {edit.block} cannot be written")
        if tokens.total(edit.value) > block.used_tokens:
            raise StaleError(f"the block {edit.block} would grow")
        via = untrusted_of([origin.source for origin in self._store.sleeps.origins(edit.number)])
        if via and block.untrusted_writes == "refuse":
            raise StaleError(f"{guards(block)} and takes nothing that follows from {', '.join(via)}")
        facts = self._change_facts(edit, {})  # the lines that it drops
        self._core.restore(block, edit.value, block.via, actor_of(edit.sleep), edit.reason)
        written = self._newest(edit.block)
        return {**facts, "version": written.version if written else 0}

    def _newest(self, name: str | None) -> Block | None:
        found = self._store.core.block(name or "")
        return found[0] if found and not found[0].retired else None

    # undo

    def undo(self, edit: EditRow) -> str:
        """Take an applied edit back. Return what has changed since, if that is why it stays; empty if it is undone."""
        done = _Done.read(edit.done)
        if why := self._changed(edit, done):
            self._store.sleeps.put_state(edit.number, "applied", why)
            return why
        actor = actor_of(edit.sleep)
        # One that was paged out since stays out, and so do those whose place it took.
        is_paged_out = bool(set(done.pinned) - {pin.page_id for pin in self._pins(done.made)})
        for number in reversed(done.made):
            fact = self._archive.fact(f"f{number}")
            self._store.archive.put_end(number, End(to_micros(fact.valid_from), None, WITHDRAWN))
            self._store.ledger.write("forget", fact.id, reason=WITHDRAWN, actor=actor, sleep=edit.sleep)
            self._pages.move_pin(fact.id, None, WITHDRAWN)
        for number, before, _ in done.ended:
            self._store.archive.put_end(number, before)
            self._store.archive.renew_vectors(number)
            self._store.ledger.write("reopen", f"f{number}", reason=WITHDRAWN, actor=actor, sleep=edit.sleep)
        for page, offset, length in () if is_paged_out else done.pins:
            self._pages.restore_pin(page, offset, length, WITHDRAWN)
        if edit.kind == "core" and (block := self._newest(edit.block)):
            earlier = [each.block for each in self._store.lists.core_versions(block.name)]
            before = next(each for each in earlier if each.version == edit.version)
            self._core.restore(block, before.value, before.via, actor, WITHDRAWN)
        if self._archive.vectors:
            self._store.after_commit(self._archive.vectors.reset)
        self._store.sleeps.put_state(edit.number, "undone", "")
        return ""

    def _changed(self, edit: EditRow, done: "_Done") -> str:
        """Return what is not as applying an edit has left it; empty if all is."""
        ends = self._store.archive.ends([*done.made, *(number for number, *_ in done.ended)])
        facts = self._store.archive.facts(list(ends))
        for number, left in (*zip(done.made, done.made_ends, strict=True), *((n, after) for n, _, after in done.ended)):
            if number not in ends or ends[number] != left or facts[number].purged:
                return f"f{number} has changed since"
        for number, before, _ in done.ended:
            if other := self._in_the_place_of(facts[number], before, done.made):
                return f"{other.id} has the key {other.key!r} since"
        if kept := self._store.sleeps.kept([f"f{number}" for number in done.made], but=edit.number):
            return f"sleep {kept[0]} builds on {kept[1]}: undo that first"
        if edit.kind == "core":
            block = self._newest(edit.block)
            if block is None or block.version != done.version:
                return f"the block {edit.block} was changed since"
        return ""

    def _in_the_place_of(self, fact: Fact, end: End, made: Collection[int]) -> Fact | None:
        """Return another version of a fact's key that is true, or was, when this one would be with another end."""
        if fact.key is None:
            return None
        own, until = number_of(fact.id), FOREVER if end.valid_until is None else end.valid_until
        for other, _ in self._store.archive.versions(fact.key):
            begin, over = to_micros(other.valid_from), other.valid_until and to_micros(other.valid_until)
            is_newest = other.superseded_by is None and other.forgotten is None
            overlaps = begin < until and (over is None or max(begin, to_micros(fact.valid_from)) < over)
            both_newest = is_newest and end.superseded_by is None and end.forgotten is None
            if number_of(other.id) not in (own, *made) and (overlaps or both_newest):
                return other
        return None


class _Done(NamedTuple):
    """The changes that applying an edit made."""

    made: list[int]
    made_ends: list[End]
    ended: list[tuple[int, End, End]]
    pins: list[tuple[str, int, int]]  # that were there before: page, offset and length
    pinned: list[str]  # of those that it made
    version: int

    @classmethod
    def read(cls, stored: Json) -> "_Done":
        ended: list[Any] = stored.get("ended", [])
        return cls(
            stored.get("made", []), [End(*each) for each in stored.get("made_ends", [])],
            [(number, End(*before), End(*after)) for number, before, after in ended], stored.get("pins", []),
            stored.get("pinned", []), stored.get("version", 0),
        )  # fmt: skip


def actor_of(sleep: int) -> str:
    """Return how the ledger names a sleep."""
    return f"sleep {sleep}"
