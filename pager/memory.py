"""The memory of one agent, open for writing: what a program or an agent's loop calls.

Every call waits for other threads' calls, commits before it returns, and leaves nothing half done. Errors say the
value, the limit and the way out.

    >>> with Memory.open(directory) as memory:
    ...     memory.append_user("my seat, please: window")
    ...     request = memory.request()              # -> client.messages.create(model=..., **request.params)
    ...     memory.append_assistant("Noted.")
    's1'
    's2'
"""

import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

from pager import blocks, markup
from pager.arguments import optional_text, require_path, require_text
from pager.call_lock import CallLock, explain, locked
from pager.clock import Clock, Moment, SystemClock, moment_of, read_duration, to_micros
from pager.conversation import replies
from pager.conversation.content import check_tools, check_user
from pager.conversation.conversation import Content
from pager.errors import InUseError, RejectedError, StorageError, brief
from pager.inspect.history import History
from pager.inspect.inspection import Inspection
from pager.limits import Limits
from pager.mounts import Edit, Mount, Mounts
from pager.options import check_options
from pager.prompt.prompt import INTERRUPTED, Prompt
from pager.prompt.setup import Setup
from pager.prompt.state import CountTokens
from pager.prompt.summary import Summarize
from pager.safety.sources import Source, read_source, union, untrusted_among
from pager.sleep import Sleeps
from pager.store.rows import Step
from pager.store.settings import PROGRAM_VALUE
from pager.tiers import EmbedderChoice, Tiers, joint
from pager.tiers import retention as retention_of_tags
from pager.tiers.prefetch import PageChooser, Prefetch, Recalled, sources_of, texts_of
from pager.tiers.skills import store_skills
from pager.tokens.counter import Counter, Window
from pager.types import (
    Block,
    BlockSpec,
    Call,
    Fact,
    Hit,
    Json,
    Movement,
    PageId,
    PageText,
    Problem,
    Request,
    SkillSpec,
    SourceForgotten,
    Usage,
    Withdrawn,
    is_shared,
    read_page_id,
    read_step_id,
)
from pager.upkeep import check, inbox, purge, withdrawal
from pager.upkeep.eraser import Eraser
from pager.upkeep.export import export
from pager.upkeep.place import Directory, Opened, Place
from pager.vectors.backlog import Backlog
from pager.vectors.embedding import AT_ONCE
from pager.vectors.index import ChromaServer, IndexUnavailableError, Stop, never

__all__ = ["INTERRUPTED", "Memory"]

PREFETCHED = 6  # pages for a program that asks, where the memory was opened without a Prefetch
PREFETCH_PART = 4  # of the window: what is put in front of a message is at most a quarter of it
AGENT, PERSON = "agent", "person"
WITHDRAWN_CALL = "The turn was withdrawn before this call was run."
Shown = TypeVar("Shown", Fact, Hit, PageText)
_PLACE_IN_ERROR = re.compile(r"messages\.(\d{1,9})\.content\.(\d{1,9})")
_TOKENS_IN_ERROR = re.compile(r"(?<!\d)(\d{1,15})\s++tokens")  # linear, whatever a server sends


class Memory:
    """Three tiers on disk under a budget that holds. Made by `Memory.open`; one process at a time has it open."""

    def __init__(
        self, place: Place, opened: Opened, clock: Clock, window: Window, tiers: Tiers, prompt: Prompt,
        prefetch: Prefetch, shared: Mounts | None,
    ) -> None:  # fmt: skip
        self._place = place
        self._opened = opened
        self._store = store = opened.store
        self._clock = clock
        self._tiers = tiers
        self._call_lock = CallLock(self._roll_back)
        self.inspect = Inspection(store, self._call_lock, tiers.archive, clock)
        self.history = History(store, self._call_lock, clock.zone)
        self.sleeps = Sleeps(store, self._call_lock, tiers, clock)
        self._window = window
        self._prompt = prompt
        self._shared = shared
        self._chooser = self._make_chooser(prefetch) if prefetch.k > 0 else None
        self._backlog = Backlog(store, self._call_lock, tiers.archive.vectors, tiers.recall.vectors)
        self._inbox = inbox.Inbox(opened.commands, store, clock)
        self._shown: dict[str, frozenset[str]] = {}  # who reads outside of a turn -> untrusted sources of what
        self._idle_at: int | None = None  # the changes of vectors after which nothing was left to do

    @classmethod
    def open(
        cls, directory: str | Path | Place, *, limits: Limits | None = None, instructions: str = "",
        tools: Sequence[Json] = (), memory_tools: Literal["pager", "few", "anthropic", "none"] = "pager",
        core: Mapping[str, BlockSpec] | None = None, skills: Sequence[SkillSpec] | None = None, model: str = "",
        thinking: str = "", cache_ttl: str | None = None, embedder: EmbedderChoice = "default",
        index: ChromaServer | None = None, count_tokens: CountTokens | None = None, prefetch: Prefetch | None = None,
        retention: Mapping[str, str] | None = None, mounts: Sequence[Mount] = (), summarize: Summarize | None = None,
        clock: Clock | None = None,
    ) -> Self:  # fmt: skip
        """Open the memory in `directory`, or at a place of `Home`, for writing; create it if it is missing.

        Without `core` its blocks stay, and without `skills` those of the last time: the prompt names them, and the text
        of each is a page. The vector index is in the directory, or with `index` on a Chroma server. `memory_tools` says
        which tools for this memory are among `tools`: the prompt speaks of no other, and with "none" it asks for
        nothing to be saved. `retention` says how long facts of a tag are true that are stored without an end
        (`{"note": "90d"}`); without it that of the last time holds. `mounts` are memories that it shares with others.
        `count_tokens` is the provider's count of a
        request, `summarize` may write the digest at an eviction. Raises InUseError if another process has it open.
        """
        check_options(locals())
        clock = clock or SystemClock()
        place = directory if isinstance(directory, Place) else Directory(require_path(directory, "the directory"))
        with _closed_if_it_fails(place.open(clock)) as opened:
            store = opened.store
            with store.transaction():
                changed = store_skills(store, skills) if skills is not None else []
                if retention is not None:
                    retention_of_tags.save(store, retention)
                about = (model, thinking, cache_ttl, memory_tools)
                setup = Setup(instructions, blocks.clean(list(tools)), *about, store.skills.active())
                counter = Counter(store.prompt.tokenizer(model))
                fixed = counter.tokens(setup.fixed_counts(calls=store.conversation.has_calls()))
                window = Window((limits or Limits.for_window()).fitted(fixed), counter)
                tiers = Tiers.open(store, clock, window, embedder, directory=opened.vectors, server=index)
                tiers.pages.renew_pins(changed)
            prompt = Prompt(
                store, clock, window, setup, tiers.core, tiers.pages, count_tokens=count_tokens, summarize=summarize
            )
            shared = Mounts(mounts, place, store, tiers, clock, cls.open) if mounts else None
            memory = cls(place, opened, clock, window, tiers, prompt, prefetch or Prefetch(), shared)
            memory._begin(core)
        return memory

    def _begin(self, core: Mapping[str, BlockSpec] | None) -> None:
        """Finish what an earlier process has left, and make the core blocks what is configured."""
        self._finish_purge(may_wait=True)
        self._inbox.unpack()
        if core is not None:
            self._tiers.core.configure(core, self._shared.core if self._shared else ())
        if self._shared:
            self._shared.create(core or ())
            self._shared.follow()
        self._tiers.pages.fit_pins()

    # the conversation

    @locked
    def append_user(
        self, content: Content, *, name: str | None = None, at: Moment | None = None,
        source: str | Collection[str] | None = None, recall: bool = True,
    ) -> str:  # fmt: skip
        """Append a user message, on disk when this returns. Return its id. In an open turn it belongs to that turn.

        An untrusted `source`, or several, label what the agent writes after it has read it. With `recall` the memory
        puts in front of it what may help; one that was answered already needs none.
        """
        if not isinstance(content, str):
            check_user(content)
        name = None if name is None else blocks.clean(require_text(name, "name"))
        moment = moment_of(at, self._clock)
        self._prompt.refuse_if_open()
        self._process_inbox()
        return self._append_user(content, name, moment, untrusted_among(source) if source else (), recall=recall)

    def _append_user(
        self, content: Content, name: str | None, moment: int, own: Sequence[str] = (), *, recall: bool = True
    ) -> str:
        """Append a user message, with its own untrusted sources, and what is recalled for it. Return its id."""
        text = content if isinstance(content, str) else _text_of(blocks.as_blocks(content))
        recalled = self._choose(text) if recall else []
        lines, sources = (texts_of(recalled), sources_of(recalled)) if recalled else ((), frozenset[str]())
        sources = frozenset(union(sources, own)) if own else sources
        with self._store.transaction():
            step = self._prompt.append_user(content, name=name, at=moment, recalled=lines, sources=sources)
            self._enter_recalled(recalled, step.id)
        return f"s{step.id}"

    def _choose(self, text: str, instead_of: Sequence[str] = ()) -> list[Recalled]:
        """Return what is recalled for a message, in place of other pages if it was done already."""
        if self._chooser is None:
            return []
        return self._chooser.choose(text, [step.id for step in self._prompt.state.steps], instead_of)

    def _enter_recalled(self, recalled: Sequence[Recalled], step: int) -> None:
        if recalled:
            self._store.prompt.enter_recalled([each.hit.page_id for each in recalled], step)
            moved = [(each.hit.page_id, each.tokens, each.why) for each in recalled]
            self._store.ledger.write_recalled(step, moved)

    def _recall_again(self, step: Step) -> None:
        """Choose anew what is recalled for a message that was not sent yet: steps have left to make room for it."""
        before = [stay.page_id for stay in self._store.prompt.resident() if stay.how == "recalled"]
        recalled = self._choose(_text_of(self._store.conversation.originals(step.id)), before)
        fresh = [each for each in recalled if each.hit.page_id not in before]
        if not fresh or not self._prompt.has_room(sum(each.tokens for each in recalled)):
            return
        with self._store.transaction():
            self._prompt.replace_recalled(step, texts_of(recalled), sources_of(recalled))
            for page in set(before).difference(each.hit.page_id for each in recalled):
                self._store.prompt.end_residency(page, "recalled", step.id, "what has left the window helps more")
            self._enter_recalled(fresh, step.id)

    @locked
    def recall(self, text: str) -> list[str] | None:
        """Put what the memory has for a text behind the newest step, as behind a message. Return the ids of the pages.

        Returns None if nothing can be put there now: the model has seen that step, or a call of it is open.
        """
        require_text(text, "the text")
        if not self._prompt.takes_aside:
            return None
        if self._chooser is None:
            return []
        recalled = self._choose(text)
        if recalled:
            with self._store.transaction():
                step = self._prompt.append_recalled(texts_of(recalled), sources_of(recalled))
                self._enter_recalled(recalled, step.id)
        return [each.hit.page_id for each in recalled]

    @locked
    def prefetch(self, text: str, *, without: Collection[str] = (), actor: str = "person") -> str:
        """Return what the memory has for a text, as the element that stands behind a message; "" if it has nothing.

        For a program with a prompt of its own: `without` names the pages that are in it. The ledger notes the search.
        """
        require_text(text, "the text")
        chooser = self._chooser or self._make_chooser(Prefetch(k=PREFETCHED))
        recalled = chooser.choose(text, [read_step_id(page) for page in without if page.startswith("s")])
        recalled = [each for each in recalled if each.hit.page_id not in without]
        hits = [each.hit for each in recalled]
        with self._store.transaction(durable=False):
            self._tiers.archive.mark_used(hit.page_id for hit in hits)
            self._store.ledger.write_search("memory", text, hits, actor)
        self._show(actor, *hits)
        return markup.recalled(texts_of(recalled)) if recalled else ""

    def _make_chooser(self, prefetch: Prefetch) -> PageChooser:
        most = self._window.limits.usable_tokens // PREFETCH_PART
        prefetch = replace(prefetch, budget_tokens=min(prefetch.budget_tokens, most))
        return PageChooser(prefetch, self._tiers.archive, self._tiers.recall, self._store, self._shared)

    @locked
    def request(self, *, may_call: bool = True) -> Request:
        """Return the next request, within the window. At most one eviction happens here. If not `may_call`, the model
        has to answer without tools."""
        self._process_inbox()
        return self._prompt.request(self._recall_again, may_call=bool(may_call))

    @locked
    def end_turn(self) -> bool:
        """End the turn behind its last results: the model is not asked again. Return False if a message of the user is
        still to be answered. Raises OpenCallsError while a call has no result."""
        return self._prompt.end_turn()

    @locked
    def leave_turn(self, why: str) -> None:
        """End the turn as it stands. Open calls are answered with `why` and are never run; no answer is owed."""
        self._prompt.leave_turn(require_text(why, "why"))

    @locked
    def offer(self, *, instructions: str = "", tools: Sequence[Json] = (), options: Json | None = None) -> None:
        """Put what a client of the program brings behind its own instructions and tools, from the next request on, in
        the place of what was put there before. `options` are parameters that each request gets, such as a temperature.

        Raises WindowTooSmallError if they leave no room for a conversation.
        """
        require_text(instructions, "instructions")
        check_tools(tools)
        self._prompt.offer(instructions, blocks.clean(list(tools)), options or {})

    @locked
    def branch(self, after: str | None, reason: str) -> None:
        """Go back: what is said next follows the step `after`, the end of a turn, or nothing.

        What was said since leaves the prompt and stays findable; a turn that is open is left. Of an earlier branch the
        newest turns come back into the prompt. Raises RejectedError if `after` does not end a turn.
        """
        from pager.prompt import branches

        step = 0 if after is None else read_step_id(after)
        branches.check(self._store, step)
        with self._prompt.transaction():
            if self.turn_is_open:
                self._prompt.leave_turn(require_text(reason, "reason"))
            branches.go_back(self._store, self._window, step, reason)
            self._prompt.start_anew()

    @locked
    def undo(self, *, actor: str = PERSON) -> Withdrawn:
        """Withdraw the last turn, answered or not: for the prompt, the current facts and core it was never said.

        Facts that the agent stored in it end, what they superseded is true again, and core blocks have their texts
        from before. Nothing is deleted, but no search finds its steps. What its tools did elsewhere stays done.
        Raises RejectedError if there is no turn.
        """
        turn = withdrawal.newest_turn(self._store)
        with self._prompt.transaction():
            last = self._prompt.last_step()
            if last and last.turn == turn and (last.open_calls or not last.ends_turn):
                self._prompt.answer_interrupted(self._store.conversation.open_calls(), set())
                self._prompt.leave_turn(WITHDRAWN_CALL)
            made = withdrawal.plan(self._store, self._tiers, turn)
            outcome = withdrawal.withdraw(self._store, self._tiers, made, actor)
            self._prompt.start_anew()
        return outcome

    @locked
    def append_assistant(self, reply: Any, usage: Mapping[str, Any] | Usage | None = None) -> str:
        """Append a finished reply (a text, a response as a dict, or the SDK's message object). Return its id."""
        return f"s{self._prompt.append_reply(replies.read(reply, usage)).id}"

    @locked
    def begin_call(self, call_id: str) -> None:
        """Commit the intent to run a call: from here on it may have run, even if the process dies."""
        self._prompt.begin_call(require_text(call_id, "the call's id"))

    @locked
    def hold_call(self, call_id: str) -> None:
        """Record that a call waits for a person's approval and was not run."""
        self._prompt.hold_call(require_text(call_id, "the call's id"))

    @locked
    def append_result(
        self, call_id: str, content: Content, *, is_error: bool = False, memory_tool: bool = False,
        source: str | Collection[str] | None = None,
    ) -> None:  # fmt: skip
        """Append the result of a tool call. That of a `memory_tool` is not indexed for search and never spilled.

        An untrusted `source` such as `web:example.org`, or several, label what the agent writes after it has read it.
        """
        require_text(call_id, "the call's id")
        sources = untrusted_among(source) if source else ()
        self._prompt.append_result(call_id, content, is_error=is_error, memory_tool=memory_tool, sources=sources)

    @locked
    def answer_interrupted(self, *, rerun: Iterable[str] = ()) -> list[str]:
        """After a crash, answer the calls that had begun as interrupted, but for tools in `rerun`. Return their ids."""
        if not isinstance(rerun, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"rerun is {brief(rerun)}; give the names of tools.")
        names = {name for name in cast("Iterable[Any]", rerun) if isinstance(name, str)}
        return self._prompt.answer_interrupted(self.open_calls, names)

    @locked
    def mark_done(self, page_id: str) -> None:
        """Mark what a user step asked for as done: after an eviction it is not carried on as a request."""
        self._prompt.mark_done(page_id)

    @locked
    def report_too_long(self, error_text: str = "") -> None:
        """Learn from the provider's answer "prompt is too long"; the next request is smaller."""
        found = _TOKENS_IN_ERROR.search(require_text(error_text, "the error's text"))
        self._prompt.report_too_long(int(found.group(1)) if found else None)

    @locked
    def report_refused_media(self, error_text: str = "") -> str | None:
        """Learn that the provider refused the last request because of an image or a document. The one that the error
        names, else the newest, is replaced by its page id. Return the id; None if there is nothing to replace."""
        found = _PLACE_IN_ERROR.search(require_text(error_text, "the error's text"))
        return self._prompt.drop_refused_media((int(found[1]), int(found[2])) if found else None)

    @property
    @locked
    def open_calls(self) -> list[Call]:
        """Return the tool calls without a result, in order; `begun` ones may have run. All are of the newest step."""
        last = self._prompt.last_step()
        return self._store.conversation.open_calls() if last and last.open_calls else []

    @property
    @locked
    def turn_is_open(self) -> bool:
        """Return True if the model owes an answer, or tool calls wait for their results."""
        last = self._prompt.last_step()
        return last is not None and (not last.ends_turn or bool(last.open_calls))

    @property
    @locked
    def accepts_message(self) -> bool:
        """Return True if a user message may come next: no call waits for its result, and no reply has paused."""
        return self._prompt.state.accepts_message

    @property
    @locked
    def has_message(self) -> bool:
        """Return True if another process has left a message, which `process_inbox` would append."""
        return self._inbox.has_message()

    @property
    def is_sure(self) -> bool:
        """Return False if another process may own this memory by now: what is read here may be old."""
        return self._store.is_sure

    @contextmanager
    def transaction(self, *, approved: bool = False) -> Generator[None]:
        """Make several calls one: a memory tool's effect and its result, for example. All or nothing.

        With `approved` a person has approved what raised NeedsApprovalError before.
        """
        with self._call_lock.lock:
            self._call_lock.begin()  # or the first call in here would undo this transaction
            core, before = self._tiers.core, self._tiers.core.approved
            core.approved = before or approved
            try:
                with self._prompt.transaction():
                    yield
            except BaseException as error:
                self._call_lock.record_interrupt(error)
                raise
            finally:
                core.approved = before
        if self._backlog.recorded:
            self._backlog.embed_recorded()

    # messages from elsewhere

    def record(
        self, role: str, text: str, *, at: Moment | None = None, name: str | None = None, session: str | None = None,
        source: str | Collection[str] | None = None, data: Json | None = None,
    ) -> str:  # fmt: skip
        """Store a message from elsewhere and return its id. It can be found, and is never in the prompt by itself.

        An untrusted `source`, or several, label it wherever it is recalled. `data` is the form in which its program
        stores it: JSON, returned by `inspect.records` and never searched.
        """
        with self._call_lock.lock, self._call_lock:
            number = self._tiers.recall.record(role, text, at=at, name=name, session=session, source=source, data=data)
            self._backlog.add_recorded(1)
        self._backlog.embed_recorded()
        return f"s{number}"

    def record_many(self, messages: Iterable[Mapping[str, Any]], *, embed: bool = True) -> list[str]:
        """Store many messages (role, text; at, name, session, source, data), or none; without `embed` vectors wait."""
        with self._call_lock.lock, self._call_lock:
            numbers = self._tiers.recall.record_many(messages)
            if embed:
                self._backlog.add_recorded(len(numbers))
        self._backlog.embed_recorded()
        return [f"s{number}" for number in numbers]

    @locked
    def forget_records(self, page_ids: Iterable[str], reason: str, *, actor: str = "person") -> None:
        """Take messages from elsewhere out of their sessions and of every search. Only `purge` destroys them."""
        self._tiers.recall.forget_records(page_ids, reason, actor)

    # facts

    @locked
    def archive(
        self, text: str, *, key: str | None = None, tags: Sequence[str] = (), valid_from: Moment | None = None,
        valid_until: Moment | None = None, actor: str = "person", source: str | None = None,
        via: Collection[str] = (),
    ) -> Fact:  # fmt: skip
        """Store a fact; one with the same key supersedes the current one.

        It is true until `valid_until`, a day until its end; without it until the retention of its tags ends it, or for
        good. What has expired is found with `as_of` alone.

        `source` is where it comes from, such as `web:example.org`. Without it that is this program, or the agent.
        `via` names the untrusted sources of a text that it was made from.
        """
        origin = self._source(actor, source, via)
        fact = self._tiers.archive.archive(
            text, key=key, tags=tags, valid_from=valid_from, valid_until=valid_until, actor=actor, source=origin
        )
        if actor == AGENT and fact.supersedes:
            self._show(actor, self._tiers.archive.fact(fact.supersedes))
        return fact

    @locked
    def take_over(self, facts: Iterable[Fact], *, source: str, actor: str = "agent") -> list[Fact]:
        """Store facts of another memory, such as `helper:reader`, each with the untrusted sources that it has there."""
        origin = replace(read_source(source), step=f"s{self._store.conversation.last_step()}")
        with self._store.transaction():
            return [
                self._tiers.archive.archive(
                    fact.text, key=fact.key, tags=fact.tags, actor=actor, source=replace(origin, via=fact.via),
                    valid_from=None if fact.valid_from == fact.at else fact.valid_from, valid_until=fact.expires,
                )
                for fact in facts if fact.expires is None or fact.expires > max(fact.valid_from, self._clock.now())
            ]  # fmt: skip

    @locked
    def similar_facts(self, page_id: str, *, limit: int = 3, actor: str = "person") -> list[Hit]:
        """Return the current facts that are closest in meaning to a fact, best first."""
        return self._show(actor, *self._tiers.archive.similar(page_id, limit))

    @locked
    def mark_used(self, page_ids: Iterable[str]) -> None:
        """Count a use of each of these facts, as a search does for its hits."""
        self._tiers.archive.mark_used(page_ids)

    @locked
    def forget(
        self, page_id: str, reason: str, *, actor: str = "person", source: str | None = None, via: Collection[str] = ()
    ) -> Fact:
        """End a fact's validity. It stays findable with `as_of`; only `purge` destroys."""
        if self._shared and is_shared(page_id):
            name, _, page = page_id.partition("/")
            self.write_shared(name, "forget", {"page_id": page, "reason": reason}, actor=actor)
            return self._show(actor, self._shared.fact(page_id))[0]
        origin = self._source(actor, source, via)
        [fact] = self._show(actor, self._tiers.archive.forget(page_id, reason, actor, origin))
        return fact

    @locked
    def forget_source(
        self, source: str, *, since: Moment | None = None, dry_run: bool = False, actor: str = "person"
    ) -> SourceForgotten:
        """Take back what came from a source: facts end, what they superseded is restored, and so are core blocks.

        A fact that has another source stays. With `since` only what was stored from then on. With `dry_run` nothing
        changes: see what would. Steps leave the prompt before the next request and stay on disk; `purge` removes them.
        """
        outcome = self._tiers.trust.forget_source(source, since=since, actor=actor, dry_run=dry_run)
        if not dry_run:
            self._prompt.invalidate()
        return outcome

    @locked
    def show_sources(self, sources: Collection[str], *, actor: str) -> None:
        """Note what somebody is about to read: the agent in the result of its open call. A model without one (an SDK's
        tool runner, a client) is not known by turns: what it writes has these sources until this memory is closed."""
        if sources and actor != PERSON and not (actor == AGENT and self._prompt.add_shown(sources)):
            self._shown[actor] = self._shown.get(actor, frozenset()).union(sources)

    def _source(self, actor: str, source: str | None, via: Collection[str] = ()) -> Source:
        """Return from where somebody writes now: all that the agent writes is known by what it had read."""
        if source is None:
            source = AGENT if actor == AGENT else "program"
        origin = read_source(source)
        via = union(*(read_source(name).untrusted for name in via))
        self.show_sources(via, actor=actor)
        given = self._prompt.given_sources if actor == AGENT else None
        via = union(via, self._shown.get(actor, ()) if given is None else given)
        return replace(origin, step=f"s{self._store.conversation.last_step()}", via=via)

    def _show(self, actor: str, *shown: Shown) -> list[Shown]:
        """Return what the agent is about to read in the result of its call, which has its sources from now on."""
        self.show_sources({name for each in shown for name in each.via}, actor=actor)
        return list(shown)

    # core

    @locked
    def core_append(
        self, block: str, text: str, *, actor: str = "person", source: str | None = None, via: Collection[str] = ()
    ) -> Block:
        """Add a line to a core block. Raises NeedsApprovalError if the block asks a person about untrusted sources."""
        if shared := self._shared and self._shared.of_block(block):
            self.write_shared(shared, "core_append", {"block": block, "text": text}, actor=actor)
            return self._tiers.core.block(block)
        return self._tiers.core.append(block, text, actor, self._source(actor, source, via))

    @locked
    def core_replace(
        self, block: str, old_text: str, new_text: str, *, actor: str = "person", source: str | None = None,
        via: Collection[str] = (),
    ) -> Block:  # fmt: skip
        """Replace an exact and unique piece of a core block; an empty `new_text` deletes it."""
        if shared := self._shared and self._shared.of_block(block):
            given = {"block": block, "old_text": old_text, "new_text": new_text}
            self.write_shared(shared, "core_replace", given, actor=actor)
            return self._tiers.core.block(block)
        return self._tiers.core.replace(block, old_text, new_text, actor, self._source(actor, source, via))

    @locked
    def core_write(
        self, block: str, text: str, *, actor: str = "person", source: str | None = None, via: Collection[str] = ()
    ) -> Block:
        """Give a whole core block another text; an empty one empties it. `via` is as in `archive`."""
        if shared := self._shared and self._shared.of_block(block):
            raise RejectedError(f"{block} is shared with others, in {shared}: use core_append or core_replace.")
        return self._tiers.core.rewrite(block, text, actor, self._source(actor, source, via))

    @locked
    def add_blocks(self, blocks: Mapping[str, BlockSpec]) -> None:
        """Make the core blocks that are not there; the others stay as they are."""
        self._tiers.core.add(blocks)

    # pages

    @locked
    def page_in(self, page_id: str, *, pin: bool = False, offset: int = 0, actor: str = "person") -> PageText:
        """Read a page verbatim, at most a part's worth from `offset`. `pin` keeps it in the prompt across evictions."""
        if self._shared and is_shared(page_id):
            if pin:
                raise RejectedError(
                    f"{page_id} is of a shared memory and cannot be pinned. Archive what you need of it."
                )
            return self._show(actor, self._shared.read(page_id, offset))[0]
        last = self._prompt.last_step()
        holder = last.id if actor == "agent" and last and last.open_calls else None
        page = self._tiers.pages.page_in(page_id, pin=bool(pin), offset=offset, actor=actor, holder=holder)
        return self._show(actor, page)[0]

    @locked
    def page_out(self, page_id: str, *, actor: str = "person") -> None:
        """Unpin a page: it leaves the prompt at the next eviction."""
        self._tiers.pages.unpin(page_id, actor)

    @locked
    def move_to_archive(
        self, block: str, text: str, *, key: str | None = None, tags: Sequence[str] = (), actor: str = "person",
        source: str | None = None,
    ) -> Fact:  # fmt: skip
        """Move a text from a core block to the archive, in one transaction. It keeps the block's untrusted sources."""
        origin = self._source(actor, source)
        with self._store.transaction():
            origin = replace(origin, via=union(origin.via, self._tiers.core.block(block).via))
            self._tiers.core.replace(block, text, "", actor, origin)
            return self._tiers.core.move_to_archive(block, text, key, tags, actor, origin)

    # vectors

    @locked
    def count_unembedded(self) -> int:
        """Return how many facts and parts have no vector of this embedder yet. They are found by words only."""
        return self._backlog.count()

    @property
    def has_background_work(self) -> bool:
        """Return True if `embed_pending` has anything to do. Costs nothing while nothing has changed."""
        changes = self._store.vector_changes
        if changes == self._idle_at:
            return False
        with self._call_lock.lock, self._call_lock:
            has_work = self._backlog.count() > 0 or self._backlog.index_is_behind()
        self._idle_at = None if has_work or self._backlog.is_waiting else changes
        return has_work

    def embed_pending(self, limit: int = AT_ONCE, *, stop: Stop = never) -> int:
        """Embed what has no vector, oldest first; with none left, update the index until `stop`. Return how many."""
        return self._backlog.embed(limit, stop)

    @property
    @locked
    def index_is_behind(self) -> bool:
        """Return True if the vector index should be opened or built, which `embed_pending` does."""
        return self._backlog.index_is_behind()

    def compact(self) -> None:
        """Put every vector into the index."""
        with self._call_lock.lock:
            is_open = self._store.in_transaction
        if is_open:
            raise RejectedError("compact works on what is committed: call it after the transaction.")
        self._backlog.update_index(never, whole=True)

    # commands of other processes

    @locked
    def process_inbox(self, *, messages: bool = True) -> int:
        """Carry out the commands of other processes, messages only where one may come. Return how many took effect."""
        return self._process_inbox(messages=messages)

    def _process_inbox(self, *, messages: bool = True) -> int:
        if self._shared:
            self._shared.follow()
        return self._inbox.process(self._carry_out, lambda: messages and self._prompt.state.accepts_message)

    def _carry_out(self, kind: str, arguments: dict[str, Any]) -> None:
        if kind == "message":
            name, moment = blocks.clean(arguments.get("name")), moment_of(None, self._clock)
            self._append_user(arguments["text"], name, moment)
        elif kind == "pin":
            self.page_in(arguments["page_id"], pin=True, offset=arguments.get("offset", 0))
        else:
            edits: dict[str, Callable[..., object]] = {
                "core_append": self.core_append,
                "core_replace": self.core_replace,
                "archive": self.archive,
                "forget": self.forget,
                "forget_source": self.forget_source,
                "page_out": self.page_out,
            }
            if kind.startswith("sleep_"):
                self.sleeps.carry_out(kind, arguments)
                return
            origin = {} if kind in ("page_out", "forget_source") else {"source": "person"}
            who = arguments.get("source")  # the agent that wrote into this shared memory
            self._shown.pop(str(who), None)  # what it had read then says nothing of what it writes now
            edits[kind](**{**origin, **arguments, **({"actor": who} if who else {})})

    # shared memories

    @locked
    def write_shared(self, name: str, kind: Edit, arguments: Mapping[str, Any], *, actor: str = "person") -> str:
        """Write into a shared memory, and return what came of it. It is done there now, or by who has it open."""
        if self._shared is None:
            raise RejectedError("this agent shares no memory with others.")
        step = self._prompt.last_step() if actor == AGENT else None
        return self._shared.write(name, kind, arguments, self._source(actor, None).via, step)

    # purging and upkeep

    @locked
    def purge(self, page_id: str, *, actor: str = "person") -> int:
        """Destroy a fact or a step in all files, those of helpers too. Return how many places had it; 0 if this
        finishes an earlier purge. Raise InUseError while a helper works."""
        if self._store.in_transaction:
            raise RejectedError(f"{page_id} cannot be purged within a transaction, which it outlives. Purge after it.")
        if self._finish_purge() == require_text(page_id, "page_id").strip():
            return 0
        eraser = purge.eraser_of(self._store, self._tiers.pages, page_id)
        return self._purge(eraser, [read_page_id(page_id)], actor, "asked for")

    @locked
    def purge_expired(
        self, older_than: str, *, dry_run: bool = False, actor: str = "person"
    ) -> tuple[list[Fact], list[Fact]]:
        """Destroy the facts whose given end passed longer ago than `older_than`, such as 400d. Return them, and those
        that stay because another fact, which is kept, has their words. With `dry_run` nothing changes."""
        now = self._clock.now()
        span = read_duration(older_than)
        gone, held = purge.due(self._store, to_micros(now - span))
        if gone and not dry_run:
            if self._store.in_transaction:
                raise RejectedError("expired facts cannot be purged within a transaction. Purge after it.")
            self._finish_purge()
            why = f"it expired more than {older_than.strip()} ago"
            self._purge(Eraser([fact.text for fact in gone]), [read_page_id(fact.id) for fact in gone], actor, why)
        return gone, held

    def _purge(self, eraser: Eraser, pages: Sequence[PageId], actor: str, reason: str) -> int:
        in_helpers = 0
        for place in self._place.helpers():  # first: as long as the page is here, its purge can be asked for again
            with Memory.open(place, embedder=None, clock=self._clock) as memory:
                in_helpers += memory._purge(eraser, (), actor, f"it is a text of {purge.OF_ANOTHER}")
        places = purge.purge(self._store, eraser, pages, actor, self._clock.zone, self._opened.commands, reason)
        if places:
            self._prompt.invalidate()
            self._finish_purge()
        return places + in_helpers

    def _finish_purge(self, *, may_wait: bool = False) -> str | None:
        """Finish a purge that is under way, also one of an earlier process. Return its page.

        With `may_wait` one that waits for a Chroma server goes on waiting.
        """
        page = self._store.settings.get("purging")
        if page is not None:
            try:
                purge.finish(self._store, self._tiers.archive.vectors, self._tiers.index)
            except IndexUnavailableError as error:
                if not may_wait:
                    raise StorageError(str(error)) from None
                self._store.ledger.write("index", reason=f"the purge of {page} has not ended: {error}")
            except StorageError as error:
                if error.__cause__ is None:
                    raise  # a reader is in the way: the text says that it goes on
                what = f"the purge of {page} has begun, but not ended ({error.__cause__})"
                way = "Check the disk and its free space: the next purge, or the next opening, finishes it"
                raise StorageError(f"{what}. {way}.") from error
            self._tiers.recall.invalidate()
        return page

    @locked
    def check(self, *, fix: bool = False) -> list[Problem]:
        """Check the laws and the files, those of helpers too; with `fix` repair what can be rebuilt."""
        if self._store.in_transaction:
            raise RejectedError("check looks at what is committed: call it after the transaction.")
        problems = check.check(self._store, self._tiers.archive.vectors, self._tiers.recall.vectors, fix=fix)
        if fix and problems:
            self._prompt.invalidate()
            self._tiers.recall.invalidate()
        for place in self._place.helpers():
            name = place.name.removeprefix(self._place.name).strip("/")
            # One that works now is checked the next time. Vectors are its own: it makes them when it goes on.
            with suppress(InUseError), Memory.open(place, embedder=None, clock=self._clock) as memory:
                problems += [replace(each, where=f"{name}: {each.where}") for each in memory.check(fix=fix)]
        return problems

    @locked
    def save_value(self, key: str, value: str | None, *, durable: bool = True) -> None:
        """Store a value for the program that uses this memory; None deletes it. Without `durable` the disk has it with
        the next change at the latest: until then a power cut takes it back."""
        optional_text(value, f"the value {key!r}")
        with self._store.transaction(durable=durable):
            self._store.settings.put(f"{PROGRAM_VALUE}{key}", value)

    # explanations

    @property
    def limits(self) -> Limits:
        """Return the limits in force, with `max_part_tokens` as it was lowered for a small window."""
        return self._window.limits

    @property
    def ledger_version(self) -> int:
        """Return a number that changes when this process writes to the ledger: cheaper than reading that each time."""
        return self._store.ledger.version

    def close(self) -> None:
        """Release the directory. Everything is on disk already. In a forked child nothing is released."""
        if self._call_lock.is_inherited:
            return
        with self._call_lock.lock, self._call_lock, ExitStack() as closing:
            closing.callback(self._opened.release)
            closing.callback(self._store.close)
            closing.callback(self._tiers.close)
            if self._shared:
                closing.callback(self._shared.close)

    # reading, as `MemoryReader` does it

    def now(self) -> datetime:
        """Return the present time by its clock."""
        return self._clock.now()

    @property
    def zone(self) -> tzinfo:
        """Return the time zone of its moments."""
        return self._clock.zone

    @contextmanager
    def read_snapshot(self) -> Generator[None]:
        """Read everything inside as of one moment, whatever another process commits meanwhile. Keep it short."""
        with self._call_lock.lock, self._store.transaction():
            yield

    @locked
    def revision(self) -> int:
        """Return a number that changes when another process commits."""
        return self._store.revision()

    @locked
    def core(self, at: str | None = None) -> list[Block]:
        """Return the core blocks as they read now, or when step `at` was written."""
        return self._store.core.blocks(None if at is None else read_step_id(at))

    @locked
    def fact(self, page_id: str) -> Fact:
        """Return a fact by its id. Raises NotFoundError if there is none."""
        if self._shared and is_shared(page_id):
            return self._shared.fact(page_id)
        return self._tiers.archive.fact(page_id)

    @locked
    def page_text(self, page_id: str) -> str:
        """Return the whole text of a fact, a step or a spilled part."""
        return self._tiers.pages.text(page_id)

    @locked
    def read_page(self, page_id: str, offset: int = 0) -> PageText:
        """Return a piece of a page from a character on, at most a part's worth. Writes nothing."""
        if self._shared and is_shared(page_id):
            return self._shared.read(page_id, offset)
        return self._tiers.pages.read(page_id, offset)

    @locked
    def search(self, query: str, *, limit: int = 10, actor: str = "person") -> list[Hit]:
        """Find facts and steps like `MemoryReader.search`; the ledger notes the search and its `actor`."""
        tiers = self._tiers
        hits = joint.search(self._store, tiers.archive, tiers.recall, query, limit=limit, actor=actor)
        if self._shared:
            hits = self._shared.add_hits(hits, query, limit, actor, {})
        return self._show(actor, *hits)

    @locked
    def search_archive(
        self, query: str, *, limit: int = 5, as_of: Moment | None = None, tags: Sequence[str] | None = None,
        after: Moment | None = None, before: Moment | None = None, source: str | None = None, actor: str = "person",
    ) -> list[Hit]:  # fmt: skip
        """Find facts like `MemoryReader.search_archive`; the ledger notes the search and its `actor`."""
        options: dict[str, Any] = {"as_of": as_of, "tags": tags, "after": after, "before": before, "source": source}
        hits = self._tiers.archive.search(query, limit=limit, actor=actor, **options)
        if self._shared:
            hits = self._shared.add_hits(hits, query, limit, actor, options)
        return self._show(actor, *hits)

    @locked
    def search_recall(
        self, query: str, *, limit: int = 10, after: Moment | None = None, before: Moment | None = None,
        actor: str = "person",
    ) -> list[Hit]:  # fmt: skip
        """Find steps like `MemoryReader.search_recall`; the ledger notes the search and its `actor`."""
        return self._show(
            actor, *self._tiers.recall.search(query, limit=limit, after=after, before=before, actor=actor)
        )

    @locked
    def ledger(
        self, *, page: str | None = None, events: Sequence[str] = (), after: int = 0, limit: int | None = None,
        at: str | None = None,
    ) -> list[Movement]:  # fmt: skip
        """Return movements in order, of one page or of some events; with `limit` the newest, with `at` before it."""
        step = None if at is None else read_step_id(at)
        return self._store.ledger.movements(page=page, events=events, after=after, limit=limit, before_step=step)

    @locked
    def load_value(self, key: str) -> str | None:
        """Return a value that a program stored with `Memory.save_value`."""
        return self._store.settings.get(f"{PROGRAM_VALUE}{key}")

    @locked
    def export(self, file: str | Path) -> None:
        """Write a consistent copy of the database, with the commands that others have sent to the agent."""
        export(self._store, self._place, require_path(file, "the file to export to"))

    def _roll_back(self) -> None:
        self._store.undo()
        self._tiers.invalidate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _text_of(said: Iterable[Json]) -> str:
    return "\n".join(map(blocks.text_of, said))


@contextmanager
def _closed_if_it_fails(opened: Opened) -> Generator[Opened]:
    try:
        yield opened
    except BaseException as error:
        try:
            opened.store.close()
        finally:
            opened.release()
        if isinstance(error, Exception):
            explain(error)
        raise
