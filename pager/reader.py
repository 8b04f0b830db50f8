"""Everything about an agent that can be read: for any number of readers, also while another process writes.

A reader sees what is committed. It never opens Chroma (which shows a second process stale results): meaning is scored
from the vectors in SQLite.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import Any

from pager.arguments import one_form, path_of, whole_number
from pager.call_lock import CallLock, locked
from pager.clock import Clock, Moment, SystemClock, from_micros, span_end, span_start, to_micros
from pager.errors import NotFoundError, RejectedError
from pager.inspect.lists import Inspection
from pager.limits import Limits, read_noted
from pager.prompt.prompt import LIMITS_NOTE, rebuild
from pager.prompt.state import PromptState
from pager.store import Store
from pager.store.ledger import Ledger
from pager.tiers.archive import Archival
from pager.tiers.core import Core
from pager.tiers.pages import Pages
from pager.tiers.recall import Recall
from pager.tokens.counter import Counter
from pager.types import Block, Call, Fact, FactCounts, FactUse, Hit, Json, Movement, Residency, SaidStep, read_page_id


class MemoryReader:
    """The tiers, the ledger and every earlier request, read-only."""

    def __init__(
        self, store: Store, clock: Clock, ledger: Ledger, core: Core, archival: Archival, recall: Recall,
        pages: Pages, waiting: Callable[[], Mapping[str, str]],
    ) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self._core = core
        self._archival = archival
        self._recall = recall
        self._pages = pages
        self._waiting = waiting
        self._turns = CallLock(self._undo)
        self.inspect = Inspection(store, self._turns)

    @classmethod
    def open(cls, directory: str | Path, *, embedder: Any = None, clock: Clock | None = None) -> MemoryReader:
        """A reader, for as many processes as like; the writer goes on meanwhile."""
        from pager.opening import open_for_reading, open_meaning, open_recall
        from pager.prompt.prompt import Prompt
        from pager.upkeep import inbox

        clock = clock or SystemClock()
        opened = open_for_reading(path_of(directory, "the directory"), clock)
        store, ledger, limits = opened.store, Ledger(opened.store, clock), Limits.for_window()
        prompt = Prompt(store, ledger, limits, None)
        pages = Pages(store, clock, ledger, lambda: limits, lambda: prompt.counter)
        core = Core(store, clock, ledger, limits.core_tokens)
        meaning = open_meaning(opened, clock, ledger, embedder, None)
        archival, recall = Archival(store, clock, ledger, pages, meaning), open_recall(store, clock, ledger, meaning)
        return MemoryReader(
            store, clock, ledger, core, archival, recall, pages, lambda: inbox.packed(opened.files.directory)
        )

    def _undo(self) -> None:
        """An interrupt cut a call off, perhaps in the middle of what it held in memory."""
        self._store.undo()
        self._recall.forget()
        if self._archival.meaning:
            self._archival.meaning.forget()

    @property
    def zone(self) -> tzinfo:
        """Where its moments are told."""
        return self._clock.zone

    @locked
    def load_value(self, key: str) -> str | None:
        """A value that a program keeps beside the memory."""
        return self._store.journal.get(f"note:{key}")

    @contextmanager
    def at_one_moment(self) -> Generator[None]:
        """Everything read inside is of one moment, whatever another process commits meanwhile. Keep it short."""
        with self._turns.lock, self._store.transaction():
            yield

    @locked
    def revision(self) -> int:
        """Another number when another process has committed something."""
        return self._store.revision()

    # core

    @locked
    def core(self, at: str | None = None) -> list[Block]:
        """The core blocks as they read now, or when step `at` was written."""
        return self._store.core.blocks(_moment(at))

    @locked
    def core_version_number(self, block: Block) -> int:
        """The how manieth version of its block this is, from 1."""
        if not isinstance(block, Block):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"{block!r:.100} is no block; give one that `core` or `core_versions` gave.")
        return self._store.core.count_versions(block.name, block.version)

    @locked
    def core_versions(self, block: str) -> list[Block]:
        """Every version of a block, oldest first."""
        versions = self._store.core.versions(block)
        if not versions:
            raise NotFoundError(f"there never was a core block {block!r}.")
        return versions

    # archive

    @locked
    def fact(self, page_id: str) -> Fact:
        kind, number = read_page_id(page_id)
        if kind != "f":
            raise NotFoundError(f"{page_id!r} is not a fact; facts are f12.")
        return self._archival.fact(number)

    @locked
    def fact_versions(self, key: str) -> list[Fact]:
        """All facts of a key, by the time from which they were true."""
        return [fact for fact, _ in self._store.archive.versions(one_form(key))]

    @locked
    def newest_facts(self, limit: int = 20, before: int | None = None) -> list[Fact]:
        return self._store.archive.newest(whole_number(limit, "limit"), before)

    @locked
    def last_fact(self, at: str) -> int:
        """The number of the newest fact that was stored before step `at` was written; 0 for none."""
        return self._store.archive.last_before(_step(at))

    @locked
    def fact_counts(self) -> FactCounts:
        return self._store.archive.counts(to_micros(self._archival.present()))

    @locked
    def most_used_facts(self, limit: int = 20) -> list[FactUse]:
        """What searches and page_in brought back most often."""
        return self._store.archive.most_used(whole_number(limit, "limit"))

    @locked
    def never_used_facts(self, limit: int = 20) -> list[Fact]:
        """The oldest facts without an end that nothing ever brought back."""
        return self._store.archive.never_used(whole_number(limit, "limit"))

    @locked
    def current_fact(self, key: str) -> Fact | None:
        """The fact of a key that is true now, if there is one."""
        now = to_micros(self._archival.present())
        lasting = [fact for fact, _ in self._store.archive.versions(one_form(key), beyond=now)]
        return next((fact for fact in lasting if to_micros(fact.valid_from) <= now), None)

    @locked
    def is_true(self, fact: Fact) -> bool:
        """Whether a fact holds now."""
        return bool(self._store.archive.true_at([fact.number], to_micros(self._archival.present()), ()))

    @locked
    def facts_by_key(self, prefix: str = "") -> list[tuple[int, str, int]]:
        """The facts that are true now and whose key begins like this, by key: number, key and bytes."""
        return self._store.archive.filed(to_micros(self._archival.present()), prefix)

    @locked
    def facts_without_key(self) -> list[tuple[int, int]]:
        """The facts without a key that are true now, newest first: number and bytes."""
        return self._store.archive.without_key(to_micros(self._archival.present()))

    @locked
    def search_archive(
        self, query: str, *, limit: int = 5, as_of: Moment | None = None, tags: Sequence[str] | None = None,
        after: Moment | None = None, before: Moment | None = None,
    ) -> list[Hit]:  # fmt: skip
        """Facts by meaning and by words, best first; with `as_of` what was true then, with `after` and `before` what
        was stored in that time."""
        return self._archival.find(query, limit=limit, as_of=as_of, tags=tags or (), after=after, before=before)

    # recall

    @locked
    def search_recall(
        self, query: str, *, limit: int = 10, after: Moment | None = None, before: Moment | None = None
    ) -> list[Hit]:
        """Steps by words, meaning, people, dates, and by what was said around them, resident and evicted, best first.
        A date alone means that whole day."""
        return self._recall.find(query, limit=limit, after=after, before=before)

    @locked
    def days(self, *, without: Collection[str] = ()) -> dict[str, int]:
        """The days on which something was said, oldest first, with the bytes of it; some steps may be left out."""
        days: dict[str, int] = {}
        for step, at, count in self._store.conversation.moments():
            if f"s{step}" not in without:
                day = from_micros(at, self.zone).date().isoformat()
                days[day] = days.get(day, 0) + count
        return days

    @locked
    def steps_on(self, day: Moment) -> list[SaidStep]:
        """The steps that were said that day, in their order."""
        span = to_micros(span_start(day, self.zone)), to_micros(span_end(day, self.zone))
        rows = self._store.conversation.said_between(*span)
        return [
            SaidStep(f"s{row['id']}", from_micros(row["at"], self.zone), row["name"] or row["role"]) for row in rows
        ]

    @locked
    def page(self, page_id: str) -> str:
        """The whole text of a fact, a step or a spilled part."""
        return self._pages.text(page_id)

    @locked
    def blocks_of(self, step: str) -> list[Json]:
        """The content blocks of a step exactly as they came."""
        kind, number = read_page_id(step)
        if kind != "s" or self._store.conversation.step(number) is None:
            raise NotFoundError(f"there is no step {step!r}.")
        return self._store.conversation.originals(number)

    @property
    @locked
    def open_calls(self) -> list[Call]:
        """Tool calls without a result, in order; `begun` ones may have run."""
        return self._store.conversation.open_calls()

    # explanations

    @locked
    def ledger(
        self, *, page: str | None = None, events: Sequence[str] = (), after: int = 0, limit: int | None = None,
        at: str | None = None,
    ) -> list[Movement]:  # fmt: skip
        """Movements in order, of one page or of some events; with `limit` the newest, with `at` before that step."""
        if not isinstance(events, list | tuple | set | frozenset):
            raise RejectedError(f"events is {events!r:.100}; give a list of texts.")
        for name, value in (("after", after), ("limit", limit)):
            if value is not None:
                whole_number(value, name)
        return self._store.journal.movements(
            page=page, events=events, after=after, limit=limit, before_step=_moment(at)
        )

    @locked
    def resident(self, at: str | None = None) -> list[Residency]:
        """What was in the prompt when step `at` was written; what is in it now without."""
        return self._store.prompt.resident(_moment(at))

    @locked
    def residencies(self, page_id: str) -> list[Residency]:
        """When a page was in the prompt, how, and why it left."""
        return self._store.prompt.stays(str(read_page_id(page_id)))

    @locked
    def prompt(self, at: str | None = None) -> PromptState:
        """What stands in the prompt now, or stood in the request that the reply `at` answered: a copy, with sizes."""
        return PromptState.load(self._store) if at is None else PromptState.load_at(self._store, _step(at))

    @locked
    def counter(self, model: str) -> Counter:
        """How tokens of a model are estimated by now."""
        return Counter(self._store.journal.tokenizer(model))

    @locked
    def limits_at(self, at: str | None = None) -> Limits | None:
        """The limits of the newest request, or of the one that the reply `at` answered; None before the first."""
        return read_noted(self._store.journal.get(LIMITS_NOTE), _moment(at))

    @locked
    def rebuild(self, step: str) -> Json:
        """The request that the reply `step` answered, byte for byte."""
        return rebuild(self._store, _step(step))

    @locked
    def export(self, file: str | Path) -> None:
        """A consistent copy of the database, also while it is in use, with what others have left for its owner."""
        path = path_of(file, "the file to export to")
        waiting = self._waiting()  # looked at first: what is taken meanwhile is in both, and takes effect once
        self._store.upkeep.copy_to(path, waiting)

    @locked  # closed while another thread reads, SQLite's connection would take the process along
    def close(self) -> None:
        self._store.close()

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _step(page_id: str) -> int:
    kind, number = read_page_id(page_id)
    if kind != "s":
        raise NotFoundError(f"{page_id!r} is not a step; steps are s45.")
    return number


def _moment(at: str | None) -> int | None:
    """The number of a step, or None for now."""
    return None if at is None else _step(at)
