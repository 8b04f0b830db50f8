"""Open an epoch: decide what a fresh prompt carries (`sizes`, `draft`), and commit it (`open`).

A new epoch renders core again, writes the digest, and carries pinned pages and the current request in its preamble. It
drops all thinking and everything that was only for the moment (recalled, notice, update), and spills what the plan
says. A draft changes nothing: it can be measured, thrown away and made again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pager import blocks, markup, tokens
from pager.clock import Clock, from_micros, to_micros
from pager.conversation.spill import spill
from pager.limits import DIGEST_SHARE
from pager.prompt import digest
from pager.prompt.budget import FLOOR_TOKENS, PartSize, Plan, Sizes, StepSize
from pager.prompt.render import cache_mark
from pager.prompt.setup import Setup
from pager.prompt.state import PromptState
from pager.safety.sources import union
from pager.store import Store
from pager.store.rows import Epoch, Part, Step
from pager.tiers.core import Core
from pager.tiers.pages import Pages
from pager.tiers.trust import FORGOTTEN
from pager.tokens.counter import Counter, Window, count_block
from pager.types import ZERO, Counts, Json, number_of

SPILLABLE = frozenset({"text", "tool_result", "tool_use", "image", "document"})
MAX_ADDITIONS = 4  # messages said in the middle of a turn that stay beside its request


@dataclass(slots=True)
class Draft:
    """An epoch that could be opened: its steps as it would carry them, and what changes for that."""

    epoch: Epoch
    steps: list[Step]
    leaving: list[Step]
    reforms: list[tuple[int, Json | None, Counts]] = field(default_factory=list[tuple[int, "Json | None", Counts]])
    spilled: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def state(self) -> PromptState:
        """Return the prompt as it is once this is open."""
        return PromptState(epoch=self.epoch, epoch_lives=True, steps=self.steps)


class Epochs:
    """Drafts and opens epochs for one agent."""

    def __init__(self, store: Store, clock: Clock, core: Core, pages: Pages, setup: Setup, window: Window) -> None:
        self._store = store
        self._clock = clock
        self._core = core
        self._pages = pages
        self._setup = setup
        self._window = window
        self._counter = window.counter

    def sizes(self, state: PromptState, now: int, cause: str, *, unseen_stay: bool = True) -> Sizes:
        """Return sizes as a new epoch would have them. What the model has not seen yet stays, unless told otherwise."""
        fixed = self._setup.fixed_counts(calls=self._store.conversation.has_calls())
        pinned = (tokens.count(block["text"]) for block in self._pinned())
        fixed = Counts.sum([fixed, tokens.count(self._core.rendered()), *pinned])
        requests = self.requests(state)
        request_ids = {step.id for step in requests}
        unsent = state.steps[-1].id if state.last_is_unsent else None
        answered = self._store.prompt.last_answered() or 0
        evicted = [step for step in requests if step.id not in {each.id for each in state.steps}]
        steps: list[StepSize] = []
        for step in [*evicted, *state.steps]:
            parts = [_part_size(part, self._counter, whole=step.id == unsent) for part in step.parts]
            # A step that paused and is not the last has gone on.
            closed = not step.open_calls and not (unseen_stay and _is_unseen(step, answered))
            steps.append(StepSize(step.id, parts, closed, step.continues, step.id in request_ids))
        noticed = self._setup.save_with is None or bool(state.epoch and state.epoch.noticed)
        digest_tokens = self._window.limits.share_in_tokens(DIGEST_SHARE)
        forgotten = int(self._store.settings.get(FORGOTTEN) or 0) if cause else 0
        return Sizes(now, self._counter.tokens(fixed) + digest_tokens, steps, noticed, cause, forgotten)

    def requests(self, state: PromptState) -> list[Step]:
        """Return the user messages of the open turn, also those that only the preamble carries."""
        if state.last is None:
            return []
        ids = self._store.conversation.requests_of_turn(state.last.turn)
        ids = ids[:1] + ids[1:][-MAX_ADDITIONS:]
        resident = {step.id: step for step in state.steps}
        evicted = [step for step in ids if step not in resident]
        loaded = {step.id: step for step in self._store.conversation.load(evicted, state.epoch_id)} if evicted else {}
        return [resident.get(step) or loaded[step] for step in ids]

    def _pinned(self) -> list[Json]:
        pins = self._store.prompt.pins()
        return [blocks.text_block(markup.pinned(pin.page_id, self._pages.piece(pin))) for pin in pins]

    def unpin_expired(self) -> None:
        """Let pinned facts go that have expired."""
        self._pages.unpin_expired()

    def draft(self, state: PromptState, plan: Plan, reason: str) -> Draft:
        """Build the epoch that a plan describes. The `reason` is for the ledger."""
        leaving_ids = set(plan.leaving)
        leaving = [step for step in state.steps if step.id in leaving_ids]
        staying = [step for step in state.steps if step.id not in leaving_ids]
        unsent = staying[-1] if staying and state.last_is_unsent else None
        draft = Draft(self._blank(state.epoch_id + 1, reason), [], leaving)
        for step in staying:
            draft.steps.append(self._fresh_step(step, draft, plan, whole=step is unsent))
        ids = {each.id for each in staying}
        requests = [step for step in self.requests(state) if step.id not in ids]
        requests = [self._fresh_step(step, draft, plan, whole=False) for step in requests]
        self._write_preamble(draft, state, requests)
        return draft

    def _blank(self, number: int, reason: str) -> Epoch:
        """Return an epoch with core alone. Core is a message, so tools and system are the same in every epoch."""
        mark, core = cache_mark(self._setup.cache_ttl), self._core.rendered()
        system = [{**blocks.text_block(self._setup.system_text), "cache_control": mark}]
        preamble = [{**blocks.text_block(core), "cache_control": mark}] if core else []
        calls = self._store.conversation.has_calls()
        sizes = {"tools": self._setup.tool_counts(calls=calls), "instructions": self._setup.system_counts}
        sizes["core"] = tokens.count(core)
        settings = self._setup.settings(self._window.limits)
        return Epoch(number, self._setup.tools_after(calls=calls), system, preamble, [], settings, sizes, reason)

    def _fresh_step(self, step: Step, draft: Draft, plan: Plan, *, whole: bool) -> Step:
        parts = [self._fresh_part(part, draft, plan, whole=whole) for part in step.parts]
        reply = [index for index, part in enumerate(parts) if part.slot == "reply"]
        if reply and not any(parts[index].form for index in reply):
            form = blocks.text_block(markup.NO_TEXT)
            parts[reply[0]] = replace(parts[reply[0]], form=form, counts=count_block(form))
        for before, after in zip(step.parts, parts, strict=True):
            if before.form != after.form:
                draft.reforms.append((after.id, after.form, after.counts))
        return replace(step, parts=parts)

    def _fresh_part(self, part: Part, draft: Draft, plan: Plan, *, whole: bool) -> Part:
        if part.form is None or _is_momentary(part, whole=whole):
            return part if part.form is None else replace(part, form=None, counts=ZERO)
        limit = plan.spill.get(part.id)
        if limit is None:
            return part
        if part.kind == "recalled":  # a piece would help nobody, and it is no page that could be read
            return replace(part, form=None, counts=ZERO)
        original = self._store.conversation.original(part.id)
        source = json.loads(original["block"]) if original else part.form
        if part.form.get("type") == "tool_use":
            source = {**source, "id": part.form["id"]}
        form = spill(source, f"x{part.id}", limit, self._counter)
        counts = count_block(form)
        if self._counter.tokens(counts) >= self._counter.tokens(part.counts):
            return part  # the words that say what is missing would be longer
        draft.spilled.append((part.id, self._counter.tokens(counts)))
        return replace(part, form=form, counts=counts)

    def _write_preamble(self, draft: Draft, state: PromptState, requests: Sequence[Step]) -> None:
        epoch, zone = draft.epoch, self._clock.zone
        lines = self._digest(draft, state)
        epoch.digest = digest.write(lines)
        if lines:
            text = markup.digest([line.text(zone) for line in lines])
            epoch.preamble.append(blocks.text_block(text))
            epoch.sizes["digest"] = tokens.count(text)
        pinned = self._pinned()
        epoch.preamble += pinned
        epoch.sizes["pinned"] = Counts.sum(tokens.count(block["text"]) for block in pinned)
        counts: list[Counts] = []
        for step in requests:
            opening = markup.request_opening(step.id, from_micros(step.at, zone))
            epoch.preamble.append(blocks.text_block(opening))
            epoch.preamble += [part.form for part in step.parts if part.form]
            counts += [tokens.count(opening), *(part.counts for part in step.parts if part.form)]
        if counts:
            epoch.sizes["request"] = Counts.sum(counts)
        pins = [self._pages.via(pin.page_id) for pin in self._store.prompt.pins()]
        shown = [*(line.sources for line in lines), *pins, *(step.sources for step in requests)]
        epoch.sources = frozenset(union(self._core.sources(), *shown))

    def _digest(self, draft: Draft, state: PromptState) -> list[digest.Line]:
        """Return the digest's lines: the earlier ones, and one for each turn that leaves, within their budget."""
        lines = digest.read(state.epoch.digest) if state.epoch else []
        with_words = [line.turn for line in lines if line.words and line.turns == 1]
        refused = self._store.conversation.refused_turns(with_words)
        without = {"words": "", "sources": ()}
        lines = [replace(line, **without) if line.turns == 1 and line.turn in refused else line for line in lines]
        lines = digest.extend(lines, [digest.line_of(step) for step in draft.leaving])

        def count(text: str) -> int:
            return self._counter.tokens(tokens.count(text))

        room = self._window.limits.share_in_tokens(DIGEST_SHARE) - count(markup.digest([]))
        return digest.fit(lines, room, count, self._clock.zone)

    def open(self, state: PromptState, draft: Draft) -> None:
        """Commit the new epoch with every movement in the ledger, and put it into the state."""
        store = self._store
        number, step, first = draft.epoch.id, store.conversation.last_step(), draft.steps[0].id if draft.steps else 0
        unsent = draft.steps[-1].id if draft.steps and state.last_is_unsent else None
        shows_recalled = unsent and any(part.kind == "recalled" and part.form for part in draft.steps[-1].parts)
        size = self._counter.tokens(draft.state().counts())
        with store.transaction():
            store.prompt.open_epoch(draft.epoch, first, to_micros(self._clock.now()), step)
            for part, form, counts in draft.reforms:
                store.conversation.reform(part, number, form)
                store.conversation.size(part, counts)
            self._evict(state, draft, step)
            store.prompt.release_recalled(unsent if shows_recalled else None, step, "an epoch opened")
            for part, stays in draft.spilled:
                store.ledger.write("spill", f"x{part}", reason="the prompt did not fit", tokens=stays)
            store.core.seen()
            self._pages.release_unpinned()
            self._pages.mark_shown()
            store.ledger.write("epoch", reason=draft.epoch.reason, tokens=size, epoch=number, left=len(draft.leaving))
        state.epoch, state.epoch_lives = draft.epoch, True
        state.answered, state.sent_part = None, 0
        state.reset_base()
        state.replace_steps(draft.steps)

    def _evict(self, state: PromptState, draft: Draft, step: int) -> None:
        reason, requests = draft.epoch.reason, {request.id for request in self.requests(state)}
        for leaving in draft.leaving:
            size = self._counter.tokens(Counts.sum(part.counts for part in leaving.parts if part.form))
            self._store.ledger.write("evict", f"s{leaving.id}", reason=reason, tokens=size, step=step)
            self._store.prompt.end_residency(f"s{leaving.id}", "step", step, reason)
            if leaving.id in requests:
                self._store.prompt.enter(f"s{leaving.id}", "request", step)
        if draft.leaving:
            ids = [leaving.id for leaving in draft.leaving]
            self._store.said.enqueue(ids)
            self._store.prompt.release(ids, step, reason)
        for stay in self._store.prompt.resident():
            if stay.how == "request" and number_of(stay.page_id) not in requests:
                self._store.prompt.end_residency(stay.page_id, "request", step, "its turn is over")


def _is_unseen(step: Step, answered: int) -> bool:
    """Return True if the model has not answered it yet: results with a message behind them, and that message."""
    results = step.id == answered and any(part.slot == "result" for part in step.parts)
    return results or (step.kind == "user" and step.id > answered)


def _is_momentary(part: Part, *, whole: bool) -> bool:
    """Return True for what a new epoch drops; of a step that was not sent yet (`whole`), recalled pages stay."""
    thinking = part.form is not None and part.form.get("type") in blocks.THINKING
    return thinking or part.kind in ("notice", "update") or (part.kind == "recalled" and not whole)


def _part_size(part: Part, counter: Counter, *, whole: bool) -> PartSize:
    if part.form is None or _is_momentary(part, whole=whole):
        return PartSize(part.id, 0, spillable=False)
    spillable = part.kind in ("said", "recalled") and part.form.get("type") in SPILLABLE
    only_media = part.counts.media > 0 and part.counts.total - part.counts.media <= FLOOR_TOKENS
    return PartSize(part.id, counter.tokens(part.counts), spillable, divisible=not only_media)
