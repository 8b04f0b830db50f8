"""The next request: measured, planned, brought under the window, rendered. And any earlier one, byte for byte.

`request()` appends what the agent has not been told, lets the budget decide, carries the plan out (at most one new
epoch) and makes sure that what leaves fits: surely by its bytes, else by the provider's own count; where none counts,
by the estimate and its margin or a bound by kind of text.
"""

from __future__ import annotations

from dataclasses import replace

from pager import markup
from pager.conversation import replies
from pager.conversation.conversation import Conversation
from pager.errors import RejectedError, WindowTooSmallError
from pager.limits import Limits, noted
from pager.prompt import budget
from pager.prompt import render as window
from pager.prompt.budget import Plan
from pager.prompt.epochs import Draft, Epochs
from pager.prompt.measure import CountTokens, Scales
from pager.prompt.state import PromptState, answered_by
from pager.prompt.summary import Summary
from pager.store import Store
from pager.store.ledger import Ledger
from pager.tiers.pages import Pages
from pager.tokens.counter import Counter
from pager.types import Answered, Json, Request

ATTEMPTS = 5
SMALLEST = 1e6  # times larger than thought: everything that can be smaller is
LIMITS_NOTE = "limits"


class Prompt:
    """Holds the view of the present prompt. It and the conversation need each other: `wire` joins them."""

    conversation: Conversation
    epochs: Epochs
    pages: Pages

    def __init__(self, store: Store, ledger: Ledger, limits: Limits, count_tokens: CountTokens | None) -> None:
        self._store = store
        self._ledger = ledger
        self._asked = limits
        self.limits = limits
        self.scales = Scales(Counter(), ledger, count_tokens)
        self.summary: Summary | None = None
        self._view: PromptState | None = None
        self.sent: Answered | None = None  # the request that waits for its reply
        self._noted: Limits | None = None
        self._too_long = 0.0  # how much larger the prompt is than thought, when the provider refused it; else 0

    def wire(self, conversation: Conversation, epochs: Epochs, pages: Pages) -> None:
        self.conversation, self.epochs, self.pages = conversation, epochs, pages

    @property
    def counter(self) -> Counter:
        """The one of the present model."""
        return self.scales.counter

    def _weighed(self, view: PromptState) -> tuple[int, bool]:
        return self.scales.weigh(view, self.limits.usable_tokens)

    @property
    def view(self) -> PromptState:
        if self._view is None:
            self._view = PromptState.load(self._store)
            epoch = self._view.epoch
            if self.sent and epoch and epoch.id == self.sent.epoch:
                self._view.sent_part = max(self._view.sent_part, self.sent.through_part)
        return self._view

    def forget_view(self) -> None:
        """After a failed transaction: what is in memory may say more than the disk."""
        self._view = self._noted = None

    def start(self) -> None:
        """Learned ratios of this model, and limits that leave room for a full core and two parts."""
        self.scales.counter = Counter(self._store.journal.tokenizer(self.epochs.setup.model))
        fixed = self.counter.tokens(self.epochs.fixed_counts)
        self.limits = self._asked.fitted(fixed)
        last = self._store.conversation.last_live()
        if last and last["stop_reason"] == replies.WINDOW_END and not last["ends_turn"]:
            self._too_long = 1.0  # the reply before the process ended reached the window's end

    # the next request

    def request(self) -> Request:
        view = self.view
        last = view.last
        if last is None or last.ends_turn:
            raise RejectedError("there is nothing to send: the last turn is answered. Append a user message first.")
        if last.open_calls:
            self.conversation.refuse_if_open()
        self._settle(view)
        self._note_limits()
        assert view.epoch is not None
        mark = view.answered.through_part if view.answered else None
        messages = view.messages()
        size = view.size(self.counter)
        through = view.last_part
        view.sent_part = through
        self.sent = Answered(0, view.epoch.id, through, mark, self.epochs.setup.model, size.tokens, None)
        params = window.render(view.epoch, messages, mark, view.epoch.settings["max_output_tokens"])
        return Request(params, view.epoch.id, size.tokens, size.margin)

    def _note_limits(self) -> None:
        """For those who look on: by what the requests from here on are measured. They may change within an epoch."""
        if self._noted == self.limits:
            return
        known, step = self._store.journal.get(LIMITS_NOTE), self._store.conversation.last_step()
        note = noted(known, self.limits, step)
        if note != known:
            with self._store.transaction():
                self._store.journal.put(LIMITS_NOTE, note)
        self._noted = self.limits

    def _settle(self, view: PromptState) -> None:
        """Append what is pending, decide, carry out."""
        why = self.epochs.why_renew(view, self.limits)
        if view.last and view.last.paused:
            if not (why or self._too_long) and self._weighed(view)[0] <= self.limits.usable_tokens:
                return  # it goes on exactly where it stopped; whatever waits, waits until then
            with self._store.transaction():  # when nothing fits, the pause is as it was
                self.conversation.abandon_pause(why or "the paused reply does not fit")
                self._bring_under(view, why)
            return
        self._bring_under(view, why)

    def _bring_under(self, view: PromptState, why: str) -> None:
        if self._too_long:
            self._renew(view, budget.EVICT, view.tokens(self.counter), self._too_long)
            return
        if not why:
            self._append_pending(view)
        noticed = bool(view.epoch and view.epoch.noticed)
        now = view.tokens(self.counter)
        if budget.needs_sizes(now, self.limits, noticed=noticed, renew=why):
            plan = budget.plan(self.epochs.sizes(view, now, self.limits, self.counter, why), self.limits)
            if plan.action == "renew":
                self._renew(view, why or budget.EVICT, now, unannounced=plan.unannounced)
                return
            if plan.action == "notify":
                self._notify(view, plan, now)
        if self._weighed(view)[0] > self.limits.usable_tokens:
            self._renew(view, budget.EVICT, now)

    def _append_pending(self, view: PromptState) -> None:
        """Changes that the agent did not make itself, told behind the newest step if that was not sent yet."""
        if not view.last_is_unsent:
            return
        changed = self._store.core.unseen()
        pins = [pin for pin in self._store.prompt.pins() if pin.unseen]
        if not changed and not pins:
            return
        with self._store.transaction():
            for block in changed:
                self.conversation.append_aside("update", markup.core_update(block))
            for pin in pins:
                self.conversation.append_aside("update", markup.pinned(pin.page_id, self.pages.piece(pin)))
            self._store.core.seen()
            self.pages.shown()

    def _notify(self, view: PromptState, plan: Plan, now: int) -> None:
        if view.epoch is None or not view.last_is_unsent:
            return
        here = [step for step in plan.leaving if step >= view.steps[0].id]
        leaving = f"s{here[0]} to s{here[-1]}" if here else "the oldest steps"
        text = markup.notice_window(now, self.limits.usable_tokens, leaving)
        with self._store.transaction():
            self.conversation.append_aside("notice", text)
            self._store.prompt.notice(view.epoch.id, self._store.conversation.last_step())
            self._ledger.write("notice", reason="notify_at was reached", tokens=now)
        view.epoch.noticed = True

    def _renew(self, view: PromptState, why: str, now: int, scale: float = 1.0, *, unannounced: bool = False) -> None:
        """Open one new epoch, drafted smaller until it surely fits; the last draft is as small as can be."""
        usable = self.limits.usable_tokens
        best: Draft | None = None
        true = 0
        for attempt in range(ATTEMPTS):
            scale = scale if attempt < ATTEMPTS - 1 else SMALLEST
            sizes = self.epochs.sizes(view, now, self.limits, self.counter, why)
            plan = budget.plan(sizes, self.limits.tightened(scale))
            if plan.shortage:
                sizes = self.epochs.sizes(view, now, self.limits, self.counter, why, unseen_stay=False)
                plan = budget.plan(sizes, self.limits.tightened(scale))
            draft = self.epochs.draft(view, plan, self.limits, self.counter)
            fresh = draft.view()
            size = fresh.size(self.counter)
            true, counted = self._weighed(fresh)
            if true <= usable:
                draft, fresh = self._summarized(view, draft, fresh)
                self._open(view, draft, why, now, unannounced=unannounced)
                if fresh.base_tokens is not None:
                    view.counted(fresh.base_tokens)
                return
            best = None if counted else draft if size.safe <= usable else best
            if plan.shortage:
                break
            # A count was learned from: the next sizes know of it, and only what they still miss is for the scale.
            scale = max(1.1 * scale, true / max(1, min(self.counter.tokens(fresh.counts()), usable)))
        if best is None:
            raise WindowTooSmallError(self._what_cannot_be_smaller(view, why, true))
        self._open(view, best, why, now, unannounced=unannounced)

    def _summarized(self, view: PromptState, draft: Draft, fresh: PromptState) -> tuple[Draft, PromptState]:
        """The draft and its view, with a model's words for what leaves if somebody gave one and it fits, too."""
        if self.summary is None or not draft.leaving:
            return draft, fresh
        told = self.summary.of(draft, view, self.limits, self.counter)
        if told is draft:
            return draft, fresh
        shown = told.view()
        return (told, shown) if self._weighed(shown)[0] <= self.limits.usable_tokens else (draft, fresh)

    def _open(self, view: PromptState, draft: Draft, why: str, now: int, *, unannounced: bool) -> None:
        share = round(100 * now / self.limits.usable_tokens)
        reason = why if why != budget.EVICT else f"the window was {share} % full"
        if self._too_long:
            reason = "the provider said that the prompt is too long"
        if unannounced:
            reason += ", unannounced"
        self.epochs.open(view, draft, self.counter, reason)
        self._too_long = 0.0

    def _what_cannot_be_smaller(self, view: PromptState, why: str, least: int) -> str:
        sizes = self.epochs.sizes(view, 0, self.limits, self.counter, why)
        last = sum(budget.least(part) for part in sizes.steps[-1].parts) if sizes.steps else 0
        return (
            f"the prompt cannot be brought under the {self.limits.usable_tokens} usable tokens of a window of "
            f"{self.limits.limit_tokens}: at its smallest it has up to {least}. Instructions, tools, core, digest and "
            f"pinned pages take about {sizes.fixed} of them, the last step {last}, with all of it spilled that can be. "
            "Take a larger window, shorten core and instructions, or page out what is pinned."
        )

    # the reply

    def take_sent(self) -> Answered:
        """What the reply that is being appended answers."""
        if self.sent is None:
            self.request()
        assert self.sent is not None
        return self.sent

    def append_reply(self, reply: replies.Reply) -> tuple[int, list[str]]:
        sent = self.take_sent()
        with self._store.transaction():
            usage = reply.usage if reply.usage and self.scales.believe(self.view, reply.usage) else None
            if usage and self.scales.learn(self.view, usage):
                self._store.journal.keep_tokenizer(self.epochs.setup.model, self.counter.state())
            step = self.conversation.append_reply(
                replace(reply, usage=usage), replace(sent, model=reply.model or sent.model)
            )
        self.sent = None
        if reply.stop_reason == "model_context_window_exceeded":
            self._too_long = 1.0
        return step.id, list(step.open_calls)

    def report_too_long(self, tokens_said: int | None) -> None:
        """The provider refused the last request as too long: learn from its number, evict at the next one."""
        now = max(1, self.view.tokens(self.counter))
        self._too_long = max(1.0, self.limits.limit_tokens / now)
        if tokens_said:
            self.counter.learn(self.view.counts(), tokens_said)
            self._too_long = max(1.0, tokens_said / max(1, self.counter.tokens(self.view.counts())))
        self.view.forget_base()
        self._ledger.write("error", reason="prompt is too long", tokens=tokens_said or 0)


def rebuild(store: Store, step: int) -> Json:
    """The request that step `step` answered, byte for byte as it was sent."""
    known = answered_by(store, step)
    epoch = store.prompt.epoch(known.epoch)
    assert epoch is not None
    messages = window.of_preamble(epoch)
    for resident in store.conversation.load(store.prompt.steps_at(step), epoch.id, known.through_part):
        messages.extend(window.of_step(resident))
    return window.render(epoch, messages, known.mark_part, epoch.settings["max_output_tokens"])
