"""The memory of one agent, as one object: what a program or an agent's loop calls.

Every call takes its turn (threads wait for each other), commits before it returns, and leaves nothing half done.
Errors say the value, the limit and the way out.

    >>> with Memory.open(directory) as memory:
    ...     memory.append_user("my seat, please: window")
    ...     request = memory.request()              # -> client.messages.create(model=..., **request.params)
    ...     memory.append_assistant("Noted.")
    's1'
    's2'
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, cast

from pager import blocks, tokens
from pager.arguments import path_of, text_of_person, text_or_none
from pager.call_lock import locked, tell
from pager.clock import Clock, Moment, SystemClock
from pager.conversation import replies
from pager.conversation.content import check_user
from pager.conversation.conversation import Content, Conversation
from pager.errors import RejectedError
from pager.limits import Limits
from pager.memory_tiers import Tiers
from pager.opening import (
    EmbedderChoice,
    Opened,
    check_opening,
    open_directory,
    open_meaning,
    open_recall,
)
from pager.prompt.epochs import Epochs, Setup
from pager.prompt.measure import CountTokens
from pager.prompt.prompt import Prompt
from pager.prompt.summary import Summarize, Summary
from pager.store.ledger import Ledger
from pager.tiers.archive import Archival
from pager.tiers.core import Core
from pager.tiers.pages import Pages
from pager.tiers.prefetch import Prefetch
from pager.types import BlockSpec, Call, Json, Problem, Request, Usage
from pager.upkeep import check, inbox
from pager.upkeep import purge as purging
from pager.vectors.index import VectorIndex

INTERRUPTED = (
    "interrupted, may have run: the program stopped while this tool was at work. Check before you call it again."
)
_TOKENS_SAID = re.compile(r"(\d+)\s+tokens")


class Memory(Tiers):
    """Three tiers on disk under a budget that holds. Made by `Memory.open`."""

    def __init__(
        self, opened: Opened, clock: Clock, *, limits: Limits, setup: Setup, embedder: EmbedderChoice,
        index: VectorIndex | None, count_tokens: CountTokens | None, prefetch: Prefetch,
    ) -> None:  # fmt: skip
        self._opened = opened
        store = opened.store
        ledger = Ledger(store, clock)
        core = Core(store, clock, ledger, limits.core_tokens)
        self._prompt = prompt = Prompt(store, ledger, limits, count_tokens)
        pages = Pages(store, clock, ledger, lambda: prompt.limits, lambda: prompt.counter)
        meaning = open_meaning(opened, clock, ledger, embedder, index)
        archival, recall = Archival(store, clock, ledger, pages, meaning), open_recall(store, clock, ledger, meaning)
        super().__init__(
            store, clock, ledger, core, archival, recall, pages, lambda: inbox.packed(opened.files.directory)
        )
        archival.in_turn = self._in_turn
        self._conversation = Conversation(store, clock, ledger, prompt)
        prompt.wire(self._conversation, Epochs(store, clock, ledger, core, pages, setup), pages)
        self._inbox = inbox.Inbox(opened.files.directory, store, clock, ledger)
        self._prefetch = prefetch
        store.when_rolled_back(self._forget_undone)

    @classmethod
    def open(
        cls, directory: str | Path, *, limits: Limits | None = None, instructions: str = "", tools: Sequence[Json] = (),
        core: Mapping[str, BlockSpec] | None = None, model: str = "", thinking: str = "", cache_ttl: str | None = None,
        embedder: EmbedderChoice = "default", index: VectorIndex | None = None, count_tokens: CountTokens | None = None,
        prefetch: Prefetch | None = None, summarize: Summarize | None = None, clock: Clock | None = None,
    ) -> Self:  # fmt: skip
        """The memory in `directory`, made if missing. `core` configures the blocks; without it they stay. `summarize`
        may write the digest at an eviction."""
        check_opening(
            instructions, tools, core, model, thinking, cache_ttl, embedder, limits=(limits, Limits, "Limits"),
            prefetch=(prefetch, Prefetch, "a Prefetch"), count_tokens=(count_tokens, callable, "a function"),
            summarize=(summarize, callable, "a function"), index=(index, VectorIndex, "a VectorIndex"),
            clock=(clock, Clock, "a Clock"),
        )  # fmt: skip
        clock = clock or SystemClock()
        opened = open_directory(path_of(directory, "the directory"), clock)
        try:
            setup = Setup(instructions, list(blocks.clean(list(tools))), model, thinking, cache_ttl)
            memory = cls(
                opened, clock, limits=limits or Limits.for_window(), setup=setup, embedder=embedder, index=index,
                count_tokens=count_tokens, prefetch=prefetch or Prefetch(),
            )  # fmt: skip
            if summarize:
                memory._prompt.summary = Summary(summarize, memory._ledger, clock.zone)
            memory._start(core)
        except BaseException as error:
            opened.store.close()
            if opened.lock:
                opened.lock.release()
            if isinstance(error, Exception):
                tell(error)
            raise
        return memory

    def _forget_undone(self) -> None:
        self._prompt.forget_view()
        self._recall.forget_undone()

    def _start(self, core: Mapping[str, BlockSpec] | None) -> None:
        self._prompt.start()
        self._finish_purge()
        self._inbox.unpack()
        if core is not None:
            self._core.configure(core)
        self._core.reread_files()
        self._pages.keep_within_limit()

    # the loop's own calls

    @locked
    def append_user(self, content: Content, *, name: str | None = None, at: Moment | None = None) -> str:
        """A user message, on disk when this returns; its page id. In an open turn it is told to that turn."""
        check_user(content)
        self._conversation.refuse_if_open()
        self.process_inbox()
        text = content if isinstance(content, str) else "\n".join(map(blocks.text_of, blocks.as_blocks(content)))
        hits = self._prefetch.choose(text, self._archival, self._store)
        with self._store.transaction():
            step = self._conversation.append_user(
                content, name=name, at=at, recalled=[self._prefetch.line(hit) for hit in hits]
            )
            for hit in hits:
                self._store.prompt.enter(hit.page_id, "recalled", step, step)
                size = tokens.total(self._prefetch.line(hit))
                self._ledger.write("recall", hit.page_id, reason=f"for s{step}", tokens=size, score=hit.score)
        return f"s{step}"

    @locked
    def request(self) -> Request:
        """The next request, within the window; at most one eviction happens here."""
        self.process_inbox()
        return self._prompt.request()

    @locked
    def append_assistant(self, reply: Any, usage: Mapping[str, Any] | Usage | None = None) -> str:
        """A finished reply (text, a response as a dict, the SDK's message), on disk when this returns; its page id."""
        step, _ = self._prompt.append_reply(replies.read(reply, usage))
        return f"s{step}"

    @locked
    def begin_call(self, call_id: str) -> None:
        """The intent: from here on the call may have run, also if the process dies."""
        self._conversation.begin_call(call_id)

    @locked
    def hold_call(self, call_id: str) -> None:
        """The call waits for a person's approval; it was not run."""
        self._conversation.hold_call(call_id)

    @locked
    def append_result(
        self, call_id: str, content: Content, *, is_error: bool = False, memory_tool: bool = False
    ) -> None:
        """The result of a tool call. With `memory_tool` it is not indexed for search and never spilled."""
        self._conversation.append_result(call_id, content, is_error=is_error, memory_tool=memory_tool)

    @locked
    def answer_interrupted(self, *, rerun: Iterable[str] = ()) -> list[str]:
        """After a crash: calls that had begun are answered as interrupted, but for tools that may run again."""
        if not isinstance(rerun, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"rerun is {rerun!r:.100}; give the names of tools.")
        again, answered = {name for name in cast("Iterable[Any]", rerun) if isinstance(name, str)}, list[str]()
        for call in self.open_calls:
            if call.begun and call.name not in again:
                with self._store.transaction():
                    self._conversation.append_result(call.id, INTERRUPTED, is_error=True, memory_tool=True)
                    self._ledger.write("interrupted", f"s{call.step}", reason=call.name, call=call.id)
                answered.append(call.id)
        return answered

    @locked
    def mark_done(self, page_id: str) -> None:
        """What this user step asked for is done: after an eviction it is not carried on as a request."""
        self._conversation.mark_done(page_id)

    @locked
    def report_too_long(self, error_text: str = "") -> None:
        """The provider answered "prompt is too long": learn from it; the next request is smaller."""
        said = _TOKENS_SAID.search(text_of_person(error_text, "the error's text"))
        self._prompt.report_too_long(int(said.group(1)) if said else None)

    @property
    @locked
    def open_calls(self) -> list[Call]:
        """Tool calls without a result, in order; `begun` ones may have run. Only the newest step can have some."""
        last = self._prompt.view.last
        return super().open_calls if last is not None and last.open_calls else []

    @property
    @locked
    def turn_is_open(self) -> bool:
        """Whether the model owes an answer, or tool calls wait for their results."""
        last = self._prompt.view.last
        return last is not None and (not last.ends_turn or bool(last.open_calls))

    @property
    @locked
    def accepts_message(self) -> bool:
        """Whether a user message may come next: no call waits for its result, and no reply has paused."""
        last = self._prompt.view.last
        return last is None or last.closed

    @property
    def ledger_version(self) -> int:
        """Another number when the ledger has grown since, here: cheaper to ask at every step than the ledger itself."""
        return self._ledger.written

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Several calls as one: a memory tool's effect and its result, for example. All or nothing."""
        with self._turns.lock:
            self._turns.begin()  # or the first call in here would undo this transaction
            sent = self._prompt.sent
            try:
                with self._store.transaction():
                    yield
            except BaseException as error:
                self._prompt.sent = sent  # a request that was made in here was never made
                self._turns.left_by(error)
                raise
        self._embed_recorded()

    # purging, others, and upkeep

    @locked
    def purge(self, page_id: str, *, actor: str = "person") -> int:
        """Destroy a fact or a step: afterwards no file of the agent holds its text. How many places were cleaned.

        After an error (a full disk, a reader in the way) call it again: it finishes what it had begun, and answers 0.
        """
        if self._store.in_transaction:
            raise RejectedError(
                f"{page_id} cannot be purged within a transaction: it erases files for good. Purge after it."
            )
        if self._finish_purge() == text_of_person(page_id, "page_id").strip():
            return 0
        folder, since = self._opened.files.inbox, self._opened.files.lock.stat().st_mtime
        places = purging.purge(self._store, self._ledger, self._pages, page_id, actor, inbox=folder, since=since)
        self._prompt.forget_view()
        self._finish_purge()
        return places

    def _finish_purge(self) -> str | None:
        """Whatever purge is under way, an earlier one too; its page."""
        page = self._store.journal.get("purging")
        if page is not None:
            purging.finish(self._store, self._archival.meaning, self._opened.files.index)
            self._recall.forget()
        return page

    @property
    def limits(self) -> Limits:
        """The limits that hold, with `max_part_tokens` as it was lowered for a small window."""
        return self._prompt.limits

    @locked
    def save_value(self, key: str, value: str | None) -> None:
        """Keep a value for the program that uses this memory, with the same durability; None takes it away."""
        text_or_none(value, f"the note {key!r}")
        with self._store.transaction():
            self._store.journal.put(f"note:{key}", value)

    @locked
    def process_inbox(self, *, messages: bool = True) -> int:
        """Carry out commands that other processes left; how many. Messages wait while tool calls are open, or for
        whoever will answer them."""
        last = self._prompt.view.last
        return self._inbox.take(self._apply, may_speak=messages and (last is None or last.closed))

    def _apply(self, kind: str, arguments: dict[str, Any]) -> None:
        if kind == "message":
            self._conversation.append_user(arguments["text"], name=arguments.get("name"), at=None, recalled=())
        elif kind == "pin":
            self.page_in(arguments["page_id"], pin=True, offset=arguments.get("offset", 0))
        else:
            getattr(self, kind)(**arguments)

    @locked
    def check(self, *, fix: bool = False) -> list[Problem]:
        """Look over the laws and both stores; with `fix` mend what can be mended."""
        if self._store.in_transaction:
            raise RejectedError("check looks at what is committed: call it after the transaction.")
        problems = check.check(self._store, self._archival.meaning, self._recall.meaning, fix=fix)
        if fix and problems:
            self._prompt.forget_view()
            self._recall.forget()
        return problems

    @locked
    def close(self) -> None:
        try:
            if self._archival.meaning:
                self._archival.meaning.close()
        finally:
            self._store.close()
            if self._opened.lock:
                self._opened.lock.release()
