"""Long lists in sections, requests taken apart, and the places that hold a text.

>>> with Memory.open(directory) as memory:
...     fact = memory.archive("prefers window seats")
...     memory.inspect.facts("current", offset=0, limit=50).total
...     [found.id for found in memory.inspect.find_text("WINDOW seats").facts]
1
['f1']

Lists are newest first and found by an index. Looking for a text reads every text once. A request is named by the step
that answered it; None names the next request.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import groupby

from pager.arguments import normalized
from pager.call_lock import CallLock, locked_class
from pager.clock import Clock, Moment, to_micros
from pager.errors import NotFoundError, RejectedError
from pager.inspect.pieces import MOST_MOVEMENTS, MOVEMENTS, Change, PromptPiece, change_between, pieces_of
from pager.inspect.places import Places, find_places, like_pattern, normalize_text
from pager.inspect.window import MOST_COLUMNS, Column, ResidentStep, WindowUse, columns_of, steps_of, window_of
from pager.prompt.prompt import stored_limits
from pager.prompt.state import PromptState
from pager.safety.sources import read_source
from pager.search.words import folded, telling_words
from pager.store import Store
from pager.store.lists import FACTS, STEPS
from pager.store.rows import AnsweredRequest, Epoch, FactFilter, FactSize, Pin, RequestSpan, Rows, SaidPart, StepRow
from pager.tiers.archive import Archive
from pager.tiers.trust import plan
from pager.tokens.counter import Counter
from pager.types import (
    Fact,
    FactCounts,
    FactUse,
    Movement,
    Record,
    SessionUse,
    Skill,
    SourceForgotten,
    Usage,
    number_of,
    read_page_id,
    read_step_id,
)

MOST_PLACES = 25  # of each kind in which a text is found, newest first
LONGEST_LIST = 1_000
MOST_SPANS = 240
LONGEST_ASKED_CHARS = 20_000  # of a text that may be what a query asks for
BATCH = 500  # texts in one statement


@locked_class
class Inspection:
    """Lists, requests and places of one memory. A facade has one as `inspect`, and its calls take the facade's lock."""

    def __init__(self, store: Store, call_lock: CallLock, archive: Archive, clock: Clock) -> None:
        self._store = store
        self._call_lock = call_lock
        self._archive = archive
        self._clock = clock
        self._zone = clock.zone

    def requests(self, offset: int, limit: int, through: str | None = None) -> Rows[AnsweredRequest]:
        """Return requests, newest first; with `through` from the one that this step answered."""
        return self._store.lists.requests(*_span(offset, limit), _step_number(through))

    def reply_for(self, step: str) -> str:
        """Return `step` if it answered a request, else the next step that did. Raises NotFoundError if none did."""
        number = read_step_id(step)
        if self._store.prompt.request(number):
            return f"s{number}"
        last, following = self.neighbouring_requests(step)
        if following is None:
            state = f"the last one was answered by {last}" if last else "nothing was sent yet"
            raise NotFoundError(f"no request was answered after {step}; {state}.")
        return following

    def neighbouring_requests(self, step: str) -> tuple[str | None, str | None]:
        """Return the nearest steps before and after a step that answered a request."""
        before, after = self._store.prompt.answered_around(read_step_id(step))
        return f"s{before}" if before else None, f"s{after}" if after else None

    def epoch(self, number: int) -> Epoch | None:
        """Return an epoch by its number."""
        return self._store.prompt.epoch(number)

    def usage(self, through: str | None = None) -> Usage:
        """Return the sum of the usage of all requests; with `through` up to the one that this step answered."""
        return self._store.lists.usage(_step_number(through))

    def request_spans(self, most: int = MOST_SPANS) -> list[RequestSpan]:
        """Return the whole life in at most `most` spans of requests, oldest first."""
        return self._store.lists.request_spans(max(1, _span(0, most)[1]))

    def window(self, at: str | None = None) -> WindowUse:
        """Return how full the window is, or was in the request that the step `at` answered."""
        with self._store.transaction():
            return self._window(*self._prompt(at), at)

    def window_and_steps(self, at: str | None = None) -> tuple[WindowUse, tuple[ResidentStep, ...]]:
        """Return `window`, and the steps that it holds."""
        with self._store.transaction():
            state, counter = self._prompt(at)
            window = self._window(state, counter, at)
        return window, steps_of(state, counter, self._zone)

    def _window(self, state: PromptState, counter: Counter, at: str | None) -> WindowUse:
        before = _step_number(at)
        limits = stored_limits(self._store, before)
        movements = self._store.ledger.movements(events=["epoch", "notice"], limit=1, before_step=before)
        reason, noticed = self._epoch_reason(before), [row.event for row in movements] == ["notice"]
        ended = at is None and not state.epoch_lives
        return window_of(state, counter, limits, epoch_reason=reason, noticed=noticed, ended=ended)

    def pieces(self, at: str | None = None) -> tuple[PromptPiece, ...]:
        """Return the blocks of a request in their order, with titles, tokens and pages."""
        with self._store.transaction():
            state, counter = self._prompt(at)
        return pieces_of(state, counter)

    def change(self, before: str | None, after: str | None) -> Change:
        """Return what entered and left from one request to a later one, and why. `before` None is an empty prompt."""
        with self._store.transaction():
            old, old_counter = (PromptState(), Counter()) if before is None else self._prompt(before)
            new, new_counter = self._prompt(after)
            movements = self._store.ledger.movements(
                events=MOVEMENTS, limit=MOST_MOVEMENTS, before_step=_step_number(after)
            )
        old_epoch, new_epoch = (state.epoch.id if state.epoch else 0 for state in (old, new))
        pieces = pieces_of(old, old_counter), pieces_of(new, new_counter)
        return change_between(before, after, *pieces, movements, epoch_changed=old_epoch != new_epoch)

    def columns(self, limit: int = MOST_COLUMNS, through: str | None = None) -> tuple[Column, ...]:
        """Return the sizes of the newest requests, oldest first; with `through` up to the one it answered."""
        columns: list[Column] = []
        with self._store.transaction():
            requests = self._store.lists.requests(0, _span(0, limit)[1] + 1, _step_number(through)).rows[::-1]
            epoch = requests[0].epoch if len(requests) > limit else 0
            for number, group in groupby(requests[-limit:] if limit else (), key=lambda request: request.epoch):
                with_limits = [(request, stored_limits(self._store, read_step_id(request.step))) for request in group]
                first, last = with_limits[0][0].step, with_limits[-1][0].step
                opened = "" if number == epoch else self._epoch_reason(read_step_id(first))
                columns += columns_of(*self._prompt(last), with_limits, opened)
                epoch = number
        return tuple(columns)

    def _prompt(self, at: str | None) -> tuple[PromptState, Counter]:
        store = self._store
        state = PromptState.load(store) if at is None else PromptState.load_at(store, read_step_id(at))
        return state, Counter(store.prompt.tokenizer(state.model))

    def _epoch_reason(self, before_step: int | None) -> str:
        rows = self._store.ledger.movements(events=["epoch"], limit=1, before_step=before_step)
        return rows[0].reason if rows else ""

    def steps(
        self, offset: int, limit: int, *, kind: str = "all", text: str = "", at: str | None = None
    ) -> Rows[StepRow]:
        """Return steps, newest first: all, or resident or evicted ones; of a text; with `at` as they were then."""
        _check_kind(kind, STEPS, "steps")
        like = like_pattern(text) if normalize_text(text) else ""
        return self._store.lists.steps(kind, like, *_span(offset, limit), _step_number(at))

    def step(self, page_id: str) -> StepRow:
        """Return one step as `steps` has it."""
        row = self._store.lists.step(read_step_id(page_id))
        if row is None:
            raise NotFoundError(f"there is no step {page_id!r}.")
        return row

    def said_parts(self, page_id: str) -> list[SaidPart]:
        """Return the said parts of a step, or the one part with this id. Returns [] if there is no such page."""
        return self._store.lists.pieces_of(read_page_id(page_id))

    def of_source(self, source: str, *, since: Moment | None = None) -> SourceForgotten:
        """Return what `Memory.forget_source` would do."""
        return plan(self._store, self._archive, self._clock, source, since).outcome

    def sources(self) -> dict[str, int]:
        """Return the sources of the facts that are true now, untrusted ones behind them too, and how many have each."""
        return self._store.lists.sources(self._now())

    def facts(
        self, kind: str = "all", *, text: str = "", source: str = "", offset: int = 0, limit: int = 50,
        at: str | None = None, prefix: str = "",
    ) -> Rows[FactUse]:  # fmt: skip
        """Return facts, newest first: all, or current, ended, used or unused ones; of a text or a source; with `prefix`
        those whose key begins with it; with `at` as they were in the request that this step answered, but for their
        uses."""
        _check_kind(kind, FACTS, "facts")
        origin = read_source(source).origin if source else ""
        return self._store.lists.facts(
            kind, text, origin, self._now(), *_span(offset, limit), _step_number(at), prefix=prefix
        )

    def records(self, session: str, *, limit: int | None = None, before: str | None = None) -> list[Record]:
        """Return the messages from elsewhere of a session, oldest first; with `limit` the newest of them, with
        `before` those older than a step."""
        if limit is not None and limit < 1:
            raise RejectedError(f"limit is {limit}; ask for at least 1, or leave it out.")
        return self._store.records.of_session(session, limit, _step_number(before))

    def sessions(self, prefix: str = "") -> list[SessionUse]:
        """Return the sessions of messages from elsewhere, by name; with `prefix` those whose name begins with it."""
        return self._store.records.sessions(prefix)

    def movements(
        self, events: Sequence[str] = (), *, offset: int = 0, limit: int = 50, at: str | None = None
    ) -> Rows[Movement]:
        """Return rows of the ledger, newest first: all, or those of some events; with `at` those before this step."""
        return self._store.lists.movements(events, *_span(offset, limit), _step_number(at))

    def events(self, at: str | None = None) -> dict[str, int]:
        """Return the number of rows in the ledger for each event; with `at` of those before this step."""
        return self._store.lists.events(_step_number(at))

    def skills(self) -> list[Skill]:
        """Return the skills that the agent has, oldest first."""
        return self._store.skills.active()

    def pins(self) -> list[Pin]:
        """Return all pins, also those that the prompt has not shown yet."""
        return self._store.prompt.pins()

    def command(self, command_id: str) -> str | None:
        """Return the outcome of a command from the inbox; None while it is pending."""
        return self._store.settings.command(command_id)

    def use(self, page_id: str) -> FactUse:
        """Return how often and when last a fact was used. Raises NotFoundError if there is none."""
        return self._store.lists.use(number_of(self._archive.fact(page_id).id))

    def newest_facts(self, limit: int = 20, at: str | None = None) -> list[Fact]:
        """Return the newest facts, or those that were the newest when step `at` was written."""
        return self._store.archive.newest(limit, _step_number(at))

    def fact_counts(self) -> FactCounts:
        """Return the number of facts, of current ones, and of those that nothing ever returned."""
        return self._store.archive.counts(self._now())

    def most_used_facts(self, limit: int = 20) -> list[FactUse]:
        """Return the facts that searches and page_in returned most often."""
        return self._store.archive.most_used(limit)

    def never_used_facts(self, limit: int = 20) -> list[Fact]:
        """Return the oldest facts that nothing ever returned and that have not ended."""
        return self._store.archive.never_used(limit, self._now())

    def current_fact(self, key: str) -> Fact | None:
        """Return the fact of a key that is true now, if there is one."""
        now = self.present()
        versions = [fact for fact, _ in self._store.archive.versions(normalized(key), beyond=to_micros(now))]
        lasting = [fact for fact in versions if fact.valid_until is None or fact.valid_until > now]
        return next((fact for fact in lasting if fact.valid_from <= now), None)

    def present(self) -> datetime:
        """Return the moment at which facts are true now."""
        return self._archive.present()

    def is_true(self, fact: Fact) -> bool:
        """Return True if a fact is true now."""
        return bool(self._store.archive.true_at([number_of(fact.id)], FactFilter(self._now())))

    def facts_by_key(self, prefix: str = "") -> list[FactSize]:
        """Return the facts that are true now, by key; with `prefix` those whose key begins with it."""
        return self._store.archive.current_by_key(self._now(), prefix)

    def _now(self) -> int:
        return to_micros(self._archive.present())

    def find_text(self, text: str, most: int = MOST_PLACES) -> Places:
        """Return the places that hold a text, newest first, but for what our own tools repeat, in any case."""
        return find_places(self._store, text, _span(0, most)[1])

    def searches(self, pages: Sequence[str], words: Sequence[str], limit: int) -> list[Movement]:
        """Return the newest searches that found or just missed one of the pages, or asked for a word, oldest first."""
        patterns = [f'%["{read_page_id(page)}",%' for page in pages] + [like_pattern(word) for word in words]
        return self._store.lists.searches(patterns, _span(0, limit)[1])

    def asked_for(self, queries: Sequence[str], texts: Sequence[str]) -> list[list[bool]]:
        """Return for each query whether it asks for each of the texts: whether they hold half of its telling words."""
        told = [" ".join(telling_words(query)) for query in queries]
        held = [folded(text[:LONGEST_ASKED_CHARS]) for text in texts]
        terms: list[set[str]] = []
        for start in range(0, len(told) + len(held), BATCH):
            terms += map(set, self._store.conversation.terms([*told, *held][start : start + BATCH]))
        asked, words = terms[: len(told)], terms[len(told) :]
        return [[bool(query) and 2 * len(query & text) >= len(query) for text in words] for query in asked]


def _check_kind(kind: str, kinds: Collection[str], of: str) -> None:
    if kind not in kinds:
        raise RejectedError(f"{kind!r} is no kind of {of}; there are {', '.join(kinds)}.")


def _step_number(step: str | None) -> int | None:
    return None if step is None else read_step_id(step)


def _span(offset: int, limit: int) -> tuple[int, int]:
    if offset < 0:
        raise RejectedError(f"offset is {offset}; give 0 or more.")
    if not 0 <= limit <= LONGEST_LIST:
        raise RejectedError(f"limit is {limit}; ask for at most {LONGEST_LIST} at a time.")
    return offset, limit
