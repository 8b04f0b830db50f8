"""The prompt of a running agent: what is appended to it, the next request, and any earlier request byte for byte.

`request()` appends what the agent does not know yet, lets the budget decide, carries the plan out (at most one new
epoch), and makes sure that the request fits the window. Every append is committed when it returns; the state in memory
follows the commit.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pager import blocks, markup
from pager import limits as limits_log
from pager.clock import Clock, to_micros
from pager.conversation import replies
from pager.conversation.conversation import Content, Conversation
from pager.errors import NotFoundError, OpenCallsError, RejectedError, WindowTooSmallError
from pager.limits import Limits
from pager.prompt import budget
from pager.prompt.drops import Drops
from pager.prompt.epochs import Epochs
from pager.prompt.render import preamble_messages, render, step_messages
from pager.prompt.renewal import Renewal
from pager.prompt.setup import Setup
from pager.prompt.state import CountTokens, PromptState, Scale, load_request
from pager.prompt.summary import Summarize, Summary
from pager.safety.sources import union
from pager.store import Store
from pager.store.rows import NO_NAMES, Answered, Step
from pager.tiers.core import Core
from pager.tiers.pages import Pages
from pager.tokens.counter import Window
from pager.types import Call, Json, Request, read_page_id

LIMITS_LOG = "limits"  # the setting under which changes of the limits are logged
INTERRUPTED = (
    "interrupted, may have run: the program stopped while this tool was at work. Check before you call it again."
)


class Prompt:
    """Holds the state of the present prompt, and changes it."""

    def __init__(
        self, store: Store, clock: Clock, window: Window, setup: Setup, core: Core, pages: Pages, *,
        count_tokens: CountTokens | None, summarize: Summarize | None,
    ) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._window = window
        self._setup = setup
        self._settings = setup.settings(window.limits)
        self._pages = pages
        self._conversation = Conversation(store, clock, window)
        self._drops = Drops(store, window)
        self._scale = Scale(store, window, count_tokens)
        self._epochs = Epochs(store, clock, core, pages, setup, window)
        summary = Summary(summarize, store, window, clock.zone) if summarize else None
        self._renewal = Renewal(window, self._scale, self._epochs, summary)
        self._state: PromptState | None = None
        self._logged_limits: Limits | None = None
        self._sent: Answered | None = None  # the request that waits for its reply
        self._too_long = 0.0  # how much larger the prompt is than estimated, after the provider refused it; else 0
        last = store.conversation.last_live()
        if last and last["stop_reason"] == replies.WINDOW_END and not last["ends_turn"]:
            self._too_long = 1.0  # the reply before the process ended reached the end of the window
        store.when_rolled_back(self.invalidate)

    @property
    def state(self) -> PromptState:
        """Return the present prompt, loaded at the first use."""
        if self._state is None:
            self._state = PromptState.load(self._store)
            if self._sent and self._state.epoch_id == self._sent.epoch:
                self._state.sent_part = max(self._state.sent_part, self._sent.through_part)
        return self._state

    def last_step(self) -> Step | None:
        """Return the newest step in the prompt."""
        steps = self.state.steps
        return steps[-1] if steps else None

    def invalidate(self) -> None:
        """Load the state again at its next use: after a rollback it may hold more than the disk."""
        self._state = self._logged_limits = None

    def start_anew(self) -> None:
        """Load the state again after the newest turn was withdrawn: what was sent, and how large it was, is no more."""
        self._sent, self._too_long = None, 0.0
        self.invalidate()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Commit what is done inside, or nothing: then a request that was made inside was never made."""
        sent = self._sent
        try:
            with self._store.transaction():
                yield
        except BaseException:
            self._sent = sent
            raise

    def append_user(
        self, content: Content, *, name: str | None, at: int, recalled: Sequence[str] = (),
        sources: frozenset[str] = NO_NAMES,
    ) -> Step:  # fmt: skip
        """Append a user message, in a transaction of the caller. In an open turn it belongs to that turn."""
        state, last = self.state, self.last_step()
        turn, epoch = last.turn if last and not last.ends_turn else None, state.epoch_id
        step = self._conversation.append_user(
            content, name=name, at=at, turn=turn, epoch=epoch, recalled=recalled, sources=sources
        )
        state.steps.append(step)
        return step

    @property
    def takes_aside(self) -> bool:
        """Return True if something may be put behind the newest step: the model has not seen it, and it is whole."""
        state = self.state
        return state.last_is_unsent and state.accepts_message

    def append_recalled(self, lines: Sequence[str], sources: Collection[str]) -> Step:
        """Append recalled lines behind the newest step, in a transaction of the caller."""
        step = self.state.steps[-1]
        self._conversation.append_aside(step, "recalled", markup.recalled(lines), self.state.epoch_id)
        self._add_sources(step, sources)
        return step

    def refuse_if_open(self) -> None:
        """Raise OpenCallsError if a user message may not come now: between a call and its result, or after a pause."""
        state = self.state
        if state.accepts_message:
            return
        if calls := ", ".join(state.steps[-1].open_calls):
            raise OpenCallsError(f"the tool calls {calls} wait for their results; give them first, with append_result.")
        raise OpenCallsError("the last reply paused; send request() again and append the reply that goes on first.")

    def mark_done(self, page_id: str) -> None:
        """Mark what a user message asked for as done."""
        kind, number = read_page_id(page_id)
        row = self._store.conversation.step(number) if kind == "s" else None
        if row is None or row["kind"] != "user":
            raise NotFoundError(f"{page_id} is no user message; give the id of the one that asked for what is done.")
        with self._store.transaction():
            self._store.conversation.mark_done(number)
            self._store.ledger.write("done", page_id, reason="what it asked for is done", actor="agent")

    def begin_call(self, call_id: str) -> None:
        """Store that a call has begun."""
        self._step_of_call(call_id)
        with self._store.transaction():
            self._store.conversation.begin_call(call_id, to_micros(self._clock.now()))

    def hold_call(self, call_id: str) -> None:
        """Store that a call waits for approval."""
        self._step_of_call(call_id)
        with self._store.transaction():
            self._store.conversation.hold_call(call_id)

    @property
    def given_sources(self) -> tuple[str, ...] | None:
        """Return the untrusted sources of the request that the step with open calls answered; None without such."""
        last, answered = self.state.last, self.state.answered
        if last is None or not last.open_calls:
            return None
        return union(answered.sources if answered and answered.step == last.id else last.sources)

    def add_shown(self, sources: Collection[str]) -> bool:
        """Add the untrusted sources of what a call's result is about to show. Return False if no call is open."""
        last = self.state.last
        if last is None or not last.open_calls:
            return False
        with self._store.transaction():
            self._add_sources(last, sources)
        return True

    def _add_sources(self, step: Step, sources: Collection[str]) -> None:
        """Add untrusted sources to the last step, in a transaction."""
        if not step.sources.issuperset(sources):
            step.sources = frozenset(union(step.sources, sources))
            self._store.conversation.put_sources(step.id, step.sources)

    def append_result(
        self, call_id: str, content: Content, *, is_error: bool, memory_tool: bool, sources: Sequence[str] = ()
    ) -> None:
        """Store the result of a call, with its untrusted sources."""
        step, state = self._step_of_call(call_id), self.state
        with self._store.transaction():
            self._add_sources(step, sources)
            self._conversation.append_result(
                step, call_id, content, epoch=state.epoch_id, is_error=is_error, searchable=not memory_tool
            )

    def answer_interrupted(self, calls: Iterable[Call], rerun: set[str]) -> list[str]:
        """Answer calls that had begun before a crash as interrupted, but for tools that may run again."""
        answered: list[str] = []
        for call in calls:
            if call.begun and call.name not in rerun:
                with self._store.transaction():
                    self.append_result(call.id, INTERRUPTED, is_error=True, memory_tool=True)
                    self._store.ledger.write("interrupted", call.step, reason=call.name, call=call.id)
                answered.append(call.id)
        return answered

    def _step_of_call(self, call_id: str) -> Step:
        """Return the step in which a call is open: only the last one can have open calls."""
        last = self.state.last
        if last is not None and call_id in last.open_calls:
            return last
        open_calls = ", ".join(last.open_calls) if last else ""
        state = "was answered already" if self._store.conversation.call_exists(call_id) else "was never made"
        which = f"open are {open_calls}." if open_calls else "no call is open."
        raise NotFoundError(f"the call {call_id!r} {state}; {which}")

    def request(self, recall: Callable[[Step], None] | None = None, *, may_call: bool = True) -> Request:
        """Return the next request, within the window. If not `may_call`, the model has to answer without tools.

        Where steps leave to make room for a message, `recall` may replace what was recalled for it.
        """
        state = self.state
        last = self.last_step()
        if last is None or last.ends_turn:
            raise RejectedError("there is nothing to send: the last turn is answered. Append a user message first.")
        if last.open_calls:
            self.refuse_if_open()
        steps, may_grow = len(state.steps), last.kind == "user" and state.last_is_unsent and not self._too_long
        self._settle(state)
        if recall and may_grow and len(state.steps) < steps:
            recall(state.steps[-1])
            self._settle(state)
        self._log_limits()  # for readers: they may change within an epoch
        assert state.epoch is not None
        mark = state.answered.through_part if state.answered else None
        size = state.size(self._window.counter)
        most = state.epoch.settings["max_output_tokens"]
        options = self._setup.options
        params = render(state.epoch, state.messages(), mark, most, may_call=may_call, options=options)
        state.sent_part = through = state.last_part
        self._sent = Answered(
            0, state.epoch.id, through, mark, self._setup.model, size.tokens, None, may_call, options=options
        )
        return Request(params, state.epoch.id, size.tokens, size.margin)

    def has_room(self, tokens: int) -> bool:
        """Return True if so many more tokens evict nothing."""
        return self.state.tokens(self._window.counter) + tokens < self._window.limits.evict_tokens

    def replace_recalled(self, step: Step, lines: Sequence[str], sources: frozenset[str]) -> None:
        """Put other lines behind a message that was not sent yet, in the caller's transaction."""
        self._conversation.replace_recalled(step, lines, self.state.epoch_id)
        self._add_sources(step, sources)
        self.state.reset_base()

    def _log_limits(self) -> None:
        limits = self._window.limits
        if self._logged_limits == limits:
            return
        stored = self._store.settings.get(LIMITS_LOG)
        log = limits_log.add_to_log(stored, limits, self._store.conversation.last_step())
        if log != stored:
            with self._store.transaction():
                self._store.settings.put(LIMITS_LOG, log)
        self._logged_limits = limits

    def _settle(self, state: PromptState) -> None:
        cause = self._cause_to_renew(state)
        if not (state.steps and state.steps[-1].paused):
            self._bring_under(state, cause)
            return
        if not (cause or self._too_long) and self._scale.measure(state)[0] <= self._window.limits.usable_tokens:
            return  # it goes on exactly where it stopped; everything pending waits until then
        with self._store.transaction():  # if nothing fits, the pause stays as it was
            self._drops.drop_pause(state, cause or "the paused reply does not fit")
            self._bring_under(state, cause)

    def _cause_to_renew(self, state: PromptState) -> str:
        epoch, setup = state.epoch, self._setup
        if epoch is None:
            return "first request"
        if not state.epoch_lives:
            return "the last epoch was ended"
        if epoch.tools != setup.tools and epoch.tools != setup.tools_after(calls=self._store.conversation.has_calls()):
            return "the tools changed"
        if [block["text"] for block in epoch.system] != [setup.system_text]:
            return "the instructions changed"
        changed = [name for name, value in self._settings.items() if epoch.settings.get(name) != value]
        return f"changed: {', '.join(changed)}" if changed else ""

    def _bring_under(self, state: PromptState, cause: str) -> None:
        limits, counter = self._window.limits, self._window.counter
        if self._too_long:
            self._renew(state, budget.EVICT, state.tokens(counter))
            return
        if not cause:
            self._append_pending(state)
        now, noticed = state.tokens(counter), bool(state.epoch and state.epoch.noticed)
        # Most turns need no plan: below every threshold it can only be to append.
        if cause or now >= limits.evict_tokens or (now >= limits.notify_tokens and not noticed):
            plan = budget.plan(self._epochs.sizes(state, now, cause), limits)
            if plan.action == "renew":
                self._renew(state, cause or budget.EVICT, now, unannounced=plan.unannounced)
                return
            if plan.action == "notify":
                self._notify(state, plan, now)
        if self._scale.measure(state)[0] > limits.usable_tokens:
            self._renew(state, budget.EVICT, now)

    def _renew(self, state: PromptState, cause: str, now: int, *, unannounced: bool = False) -> None:
        reason = cause
        if self._too_long:
            reason = "the provider said that the prompt is too long"
        elif cause == budget.EVICT:
            reason = f"the window was {round(100 * now / self._window.limits.usable_tokens)} % full"
        if unannounced:
            reason += ", unannounced"
        self._renewal.renew(state, cause, now, self._too_long or 1.0, reason)
        self._too_long = 0.0

    def _append_pending(self, state: PromptState) -> None:
        """Append changes that somebody else made behind the newest step, if that was not sent yet."""
        if not state.last_is_unsent:
            return
        changed = [] if self._store.core.all_seen else self._store.core.unseen()
        pins = [pin for pin in self._store.prompt.pins() if pin.unseen]
        if not changed and not pins:
            return
        with self._store.transaction():
            texts = [markup.core_update(block) for block in changed]
            texts += [markup.pinned(pin.page_id, self._pages.piece(pin)) for pin in pins]
            for text in texts:
                self._conversation.append_aside(state.steps[-1], "update", text, state.epoch_id)
            shown = [*(block.via for block in changed), *(self._pages.via(pin.page_id) for pin in pins)]
            self._add_sources(state.steps[-1], union(*shown))
            self._store.core.seen()
            self._pages.mark_shown()

    def _notify(self, state: PromptState, plan: budget.Plan, now: int) -> None:
        if state.epoch is None or not state.last_is_unsent:
            return
        leaving = [step for step in plan.leaving if step >= state.steps[0].id]
        which = f"s{leaving[0]} to s{leaving[-1]}" if leaving else "the oldest steps"
        text = markup.notice_window(now, self._window.limits.usable_tokens, which, self._setup.save_with or "")
        with self._store.transaction():
            self._conversation.append_aside(state.steps[-1], "notice", text, state.epoch_id)
            self._store.prompt.notice(state.epoch.id, self._store.conversation.last_step())
            self._store.ledger.write("notice", reason="notify_at was reached", tokens=now)
        state.epoch.noticed = True

    def end_turn(self) -> bool:
        """End the turn behind its last results. Return False if a message of the user is still to be answered."""
        self.refuse_if_open()
        last = self.last_step()
        if last is None or last.kind == "user":
            return False
        with self._store.transaction():
            self._store.conversation.end_turn(last.id)
        last.ends_turn = True
        return True

    def offer(self, instructions: str, tools: Sequence[Json], options: Json) -> None:
        """Put more instructions and tools behind those of the program, from the next request on, and send `options`
        with each. Raises WindowTooSmallError if they leave no room for a conversation."""
        setup, before = self._setup, self._setup.more
        setup.extend(instructions, tools, options)
        try:
            self._window.limits.fitted(self._window.counter.tokens(setup.fixed_counts(calls=True)))
        except WindowTooSmallError:
            setup.extend(*before)
            raise

    def leave_turn(self, why: str) -> None:
        """End the turn as it stands: open calls are answered with `why`, a pause is dropped, no answer is owed."""
        state = self.state
        with self._store.transaction():
            for call in list(state.last.open_calls) if state.last else ():
                self.append_result(call, why, is_error=True, memory_tool=True)
            self._drops.drop_pause(state, why)
            if state.last is not None:
                self._store.conversation.end_turn(state.last.id)
                state.last.ends_turn = True

    def report_too_long(self, tokens: int | None) -> None:
        """Learn that the provider refused the last request as too long; the next request evicts."""
        state, counter = self.state, self._window.counter
        self._too_long = max(1.0, self._window.limits.limit_tokens / max(1, state.tokens(counter)))
        if tokens:
            counter.learn(state.counts(), tokens)
            self._too_long = max(1.0, tokens / max(1, counter.tokens(state.counts())))
        counter.double_margin()
        state.reset_base()
        self._store.ledger.write("error", reason="prompt is too long", tokens=tokens or 0)

    def drop_refused_media(self, place: tuple[int, int] | None) -> str | None:
        """Put its page id in the place of a file that the provider refused in the last request: the one at `place`
        (message and block), else the newest. This opens an epoch. Return the id; None if the prompt has no file."""
        state = self.state
        if state.epoch is None:
            return None
        with self._store.transaction():
            page_id = self._drops.drop_media(state, self._epochs.requests(state), place)
            if page_id:
                self._renew(state, f"the provider refused {page_id}", state.tokens(self._window.counter))
        return page_id

    def append_reply(self, reply: replies.Reply) -> Step:
        """Append the reply to the last request, with what it teaches about the size of prompts."""
        if self._sent is None:
            self.request()
        assert self._sent is not None
        state, sent = self.state, self._sent
        after = self.last_step()
        if after is None or after.open_calls or after.ends_turn:
            raise RejectedError("there is nothing to reply to: append a user message or the open tool results first.")
        if state.last_part > sent.through_part:
            why = "a message was appended after the request that this reply answers, so the reply belongs nowhere"
            raise RejectedError(f"{why}; send request() again.")
        with self._store.transaction():
            # Where the provider's own tools ran, it sums what each of its passes read: a cost, and no size.
            is_sum = any(map(blocks.is_providers_result, reply.blocks))
            usage = reply.usage if reply.usage and (is_sum or self._scale.is_plausible(state, reply.usage)) else None
            if usage and not is_sum and self._scale.learn(state, usage):
                self._store.prompt.save_tokenizer(self._setup.model, self._window.counter.state())
            carried = self._conversation.read_reply(reply, after)
            step, answered = self._conversation.append_reply(
                replace(reply, usage=usage), carried, after,
                replace(sent, model=reply.model or sent.model, sources=state.sources() | reply.sources), state.epoch_id,
            )  # fmt: skip
            if carried.drop:
                self._drops.drop_reply(state, step, after, carried)
        if not carried.drop:
            state.steps.append(step)
        state.measure_from(answered)
        self._sent = None
        if reply.stop_reason == replies.WINDOW_END:
            self._too_long = 1.0
        return step


def rebuild(store: Store, step: int) -> Json:
    """Return the request that step `step` answered, byte for byte as it was sent."""
    request = load_request(store, step)
    epoch = store.prompt.epoch(request.epoch)
    assert epoch is not None
    messages = preamble_messages(epoch)
    for resident in store.conversation.load(store.prompt.resident_steps(step), epoch.id, request.through_part):
        messages.extend(step_messages(resident))
    most = epoch.settings["max_output_tokens"]
    return render(epoch, messages, request.mark_part, most, may_call=request.may_call, options=request.options)


def stored_limits(store: Store, step: int | None = None) -> Limits | None:
    """Return the limits of the newest request, or of the one that `step` answered; None before the first request."""
    return limits_log.read_log(store.settings.get(LIMITS_LOG), step)
