"""Open a new epoch: draw up smaller drafts until one surely fits the window. Steps leave if they have to."""

from pager.errors import WindowTooSmallError
from pager.prompt import budget
from pager.prompt.epochs import Draft, Epochs
from pager.prompt.state import PromptState, Scale
from pager.prompt.summary import Summary
from pager.tokens.counter import Window

MAX_ATTEMPTS = 5
SMALLEST = 1e6  # times larger than estimated: everything that can be smaller is


class Renewal:
    """Opens new epochs for one agent."""

    def __init__(self, window: Window, scale: Scale, epochs: Epochs, summary: Summary | None) -> None:
        self._window = window
        self._scale = scale
        self._epochs = epochs
        self._summary = summary

    def renew(self, state: PromptState, cause: str, now: int, factor: float, reason: str) -> None:
        """Open one new epoch. The `cause` decides what leaves; the ledger gets the `reason`, which says it in words.

        `factor` is how much larger the prompt is than estimated. Raises WindowTooSmallError.
        """
        limits, counter = self._window.limits, self._window.counter
        self._epochs.unpin_expired()
        best: Draft | None = None
        measured = 0
        for attempt in range(MAX_ATTEMPTS):
            factor = factor if attempt < MAX_ATTEMPTS - 1 else SMALLEST
            plan = budget.plan(self._epochs.sizes(state, now, cause), limits.tightened(factor))
            if plan.shortage:
                sizes = self._epochs.sizes(state, now, cause, unseen_stay=False)
                plan = budget.plan(sizes, limits.tightened(factor))
            draft = self._epochs.draft(state, plan, reason)
            fresh = draft.state()
            size = fresh.size(counter)
            measured, counted = self._scale.measure(fresh)
            if measured <= limits.usable_tokens:
                draft, fresh = self._summarized(state, draft, fresh)
                self._epochs.open(state, draft)
                if fresh.base_tokens is not None:
                    state.set_size(fresh.base_tokens)
                return
            best = None if counted else draft if size.safe <= limits.usable_tokens else best
            if plan.shortage:
                break
            # The counter has learned from a count: the factor is only for what its next estimates still miss.
            estimate = max(1, min(counter.tokens(fresh.counts()), limits.usable_tokens))
            factor = max(1.1 * factor, measured / estimate)
        if best is None:
            raise WindowTooSmallError(self._what_cannot_shrink(state, cause, measured))
        self._epochs.open(state, best)

    def _summarized(self, state: PromptState, draft: Draft, fresh: PromptState) -> tuple[Draft, PromptState]:
        if self._summary is None or not draft.leaving:
            return draft, fresh
        summarized = self._summary.write(draft, state)
        if summarized is draft:
            return draft, fresh
        shown = summarized.state()
        fits = self._scale.measure(shown)[0] <= self._window.limits.usable_tokens
        return (summarized, shown) if fits else (draft, fresh)

    def _what_cannot_shrink(self, state: PromptState, cause: str, smallest: int) -> str:
        limits, sizes = self._window.limits, self._epochs.sizes(state, 0, cause)
        last = sum(part.at_most(0) for part in sizes.steps[-1].parts) if sizes.steps else 0
        return (
            f"the prompt cannot be brought under the {limits.usable_tokens} usable tokens of a window of "
            f"{limits.limit_tokens}: at its smallest it has up to {smallest}. Instructions, tools, core, digest and "
            f"pinned pages take about {sizes.fixed} of them, the last step {last}, with all of it spilled that can be. "
            "Take a larger window, shorten core and instructions, or page out what is pinned."
        )
