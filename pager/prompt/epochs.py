"""Opening an epoch: what a fresh prompt carries. `sizes` tells the budget, `draft` builds, `open` commits.

A new epoch re-renders core, writes the digest, carries pinned pages and the current request in its preamble, drops
all thinking and everything that was only said for the moment (recalled, notice, update), and spills what the plan
says. A draft changes nothing: it can be measured, thrown away and drafted again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pager import blocks, markup, tokens
from pager.clock import Clock, from_micros, to_micros
from pager.conversation import sizes as sizing
from pager.limits import DIGEST_SHARE, Limits
from pager.prompt import digest
from pager.prompt import render as window
from pager.prompt.budget import FLOOR_TOKENS, PartSize, Plan, Sizes, StepSize
from pager.prompt.state import PromptState
from pager.store import Store
from pager.store.ledger import Ledger
from pager.tiers.core import Core
from pager.tiers.pages import Pages
from pager.tokens import Counts
from pager.tokens.counter import Counter
from pager.types import Epoch, Json, Part, Step

SPILLABLE = frozenset({"text", "tool_result", "tool_use", "image", "document"})
TELLS_KEPT = 4  # messages told in the middle of a turn that survive beside its request
TOOLS_OVERHEAD = Counts(code=200)
MEMORY_TOOL = Counts(words=600, code=600)  # what a model is told of the provider's memory tool, and how to use it
NO_TOOL: Json = {
    "name": "no_tool",
    "description": "There are no tools any more. This one does nothing.",
    "input_schema": {"type": "object", "properties": {}},
}


@dataclass(frozen=True, slots=True)
class Setup:
    """What the program wants every prompt to begin with."""

    instructions: str = ""
    tools: Sequence[Json] = ()
    model: str = ""
    thinking: str = ""
    cache_ttl: str | None = None

    def system_text(self) -> str:
        head = str(blocks.clean(self.instructions)).strip()
        as_files = any(map(blocks.is_memory_tool, self.tools))
        words = markup.HOW_MEMORY_FILES_WORK if as_files else markup.HOW_MEMORY_WORKS
        return f"{head}\n\n{words}" if head else words

    def settings(self, limits: Limits) -> Json:
        return {
            "model": self.model,
            "thinking": self.thinking,
            "cache_ttl": self.cache_ttl,
            "max_output_tokens": limits.max_output_tokens,
        }


@dataclass(slots=True)
class Draft:
    """An epoch that could be opened: its steps as it would carry them, and what changes for that."""

    epoch: Epoch
    steps: list[Step]
    leaving: list[Step]
    reforms: list[tuple[int, Json | None, Counts]] = field(default_factory=list[tuple[int, "Json | None", Counts]])
    spilled: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def view(self) -> PromptState:
        return PromptState(epoch=self.epoch, epoch_lives=True, steps=self.steps)


class Epochs:
    def __init__(self, store: Store, clock: Clock, ledger: Ledger, core: Core, pages: Pages, setup: Setup) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self._core = core
        self._pages = pages
        self.setup = setup
        self._tools_counts = tokens.count(blocks.dump(list(setup.tools) or [NO_TOOL])) + TOOLS_OVERHEAD
        self._tools_counts += sum((MEMORY_TOOL for tool in setup.tools if blocks.is_memory_tool(tool)), Counts())
        self._system_text = setup.system_text()
        self._system_counts = tokens.count(self._system_text)

    @property
    def fixed_counts(self) -> Counts:
        """Tools and instructions, which no eviction makes smaller."""
        return self._system_counts + (self._tools_counts if self._tools else Counts())

    @property
    def _tools(self) -> list[Json]:
        """The program's tools. Without any, calls of earlier days still need a definition to be valid."""
        return list(self.setup.tools) or ([NO_TOOL] if self._store.conversation.has_calls() else [])

    def why_renew(self, view: PromptState, limits: Limits) -> str:
        """Why the present epoch cannot go on; empty when it can."""
        if view.epoch is None:
            return "first request"
        if not view.epoch_lives:
            return "the last epoch was ended"
        known, wanted = view.epoch, self.setup
        if known.tools != self._tools:
            return "the tools changed"
        if known.system[0]["text"] != self._system_text:
            return "the instructions changed"
        changed = [name for name, value in wanted.settings(limits).items() if known.settings.get(name) != value]
        return f"changed: {', '.join(changed)}" if changed else ""

    # what the budget needs to know

    def sizes(
        self, view: PromptState, now: int, limits: Limits, counter: Counter, renew: str, *, unseen_stay: bool = True
    ) -> Sizes:
        """Sizes as a new epoch would have them; what it comes to is measured when it is drafted. What the model has
        not seen yet stays, unless it cannot."""
        pinned = sum((tokens.count(block["text"]) for block in self._pinned()), Counts())
        fixed = self.fixed_counts + tokens.count(self._core.rendered()) + pinned
        digest_room = limits.of_usable(DIGEST_SHARE)
        requests = self._requests(view)
        unsent = view.steps[-1].id if view.last_is_unsent else None
        answered = self._store.prompt.last_answered() or 0
        gone = [step for step in requests if step.id not in {known.id for known in view.steps}]
        steps = [
            StepSize(
                step.id,
                [_part_size(part, counter, whole=step.id == unsent) for part in step.parts],
                # One that paused and is not the last has gone on.
                not step.open_calls and not (unseen_stay and _unseen(step, answered)),
                step.continues,
                any(step.id == request.id for request in requests),
            )
            for step in [*gone, *view.steps]
        ]
        noticed = bool(view.epoch and view.epoch.noticed)
        return Sizes(now, counter.tokens(fixed) + digest_room, steps, noticed, renew)

    def _requests(self, view: PromptState) -> list[Step]:
        """What the open turn was asked for: the request, and the newest messages told in its middle."""
        last = view.last
        if last is None:
            return []
        ids = self._store.conversation.requests_of_turn(last.turn)
        ids = ids[:1] + ids[1:][-TELLS_KEPT:]
        known = {step.id: step for step in view.steps}
        missing = [step for step in ids if step not in known]
        epoch = view.epoch.id if view.epoch else 0
        loaded = {step.id: step for step in self._store.conversation.load(missing, epoch)} if missing else {}
        return [known.get(step) or loaded[step] for step in ids]

    def _pinned(self) -> list[Json]:
        return [
            blocks.text_block(markup.pinned(pin.page_id, self._pages.piece(pin))) for pin in self._store.prompt.pins()
        ]

    # building

    def draft(self, view: PromptState, plan: Plan, limits: Limits, counter: Counter) -> Draft:
        number = (view.epoch.id if view.epoch else 0) + 1
        left = set(plan.leaving)
        leaving = [step for step in view.steps if step.id in left]
        kept = [step for step in view.steps if step.id not in left]
        unsent = kept[-1] if kept and view.last_is_unsent else None
        draft = Draft(self._blank(number, plan.reason), [], leaving)
        for step in kept:
            draft.steps.append(self._fresh_step(step, draft, plan, counter, whole=step is unsent))
        requests = [step for step in self._requests(view) if step.id not in {known.id for known in kept}]
        requests = [self._fresh_step(step, draft, plan, counter, whole=False) for step in requests]
        self._write_preamble(draft, view, requests, limits, counter)
        draft.epoch.first_step = draft.steps[0].id if draft.steps else 0
        return draft

    def _blank(self, number: int, reason: str) -> Epoch:
        mark = window.cache_mark(self.setup.cache_ttl)
        core = self._core.rendered()
        system = [
            {"type": "text", "text": self._system_text, "cache_control": mark},
            {"type": "text", "text": core, "cache_control": mark},
        ]
        tools = self.fixed_counts - self._system_counts
        sizes = {"tools": tools, "instructions": self._system_counts, "core": tokens.count(core)}
        return Epoch(number, 0, self._tools, system, [], [], {}, sizes, reason)

    def _fresh_step(self, step: Step, draft: Draft, plan: Plan, counter: Counter, *, whole: bool) -> Step:
        """The step as the new epoch carries it, with every change of form noted in the draft."""
        parts = [self._fresh_part(part, draft, plan, counter, whole=whole) for part in step.parts]
        reply = [index for index, part in enumerate(parts) if part.slot == "reply"]
        if reply and not any(parts[index].form for index in reply):
            form = blocks.text_block(markup.NO_TEXT)
            parts[reply[0]] = replace(parts[reply[0]], form=form, counts=sizing.count(form))
        for before, after in zip(step.parts, parts, strict=True):
            if before.form != after.form:
                draft.reforms.append((after.id, after.form, after.counts))
        return replace(step, parts=parts)

    def _fresh_part(self, part: Part, draft: Draft, plan: Plan, counter: Counter, *, whole: bool) -> Part:
        if part.form is None or _only_for_the_moment(part, whole=whole):
            return part if part.form is None else replace(part, form=None, counts=Counts())
        limit = plan.spill.get(part.id)
        if limit is None:
            return part
        original = self._store.conversation.original(part.id)
        source = json.loads(original["block"]) if original else part.form
        if part.form.get("type") == "tool_use":
            source = {**source, "id": part.form["id"]}
        form = sizing.spill(source, f"x{part.id}", limit, counter)
        counts = sizing.count(form)
        if counter.tokens(counts) >= counter.tokens(part.counts):
            return part  # what says that it is not shown would be longer
        draft.spilled.append((part.id, counter.tokens(counts)))
        return replace(part, form=form, counts=counts)

    def _write_preamble(
        self, draft: Draft, view: PromptState, requests: Sequence[Step], limits: Limits, counter: Counter
    ) -> None:
        epoch = draft.epoch
        old = digest.read(view.epoch.digest) if view.epoch else []
        own_words = [line.turn for line in old if line.words and line.turns == 1]
        refused = self._store.conversation.refused_turns(own_words)
        old = [replace(line, words="") if line.turns == 1 and line.turn in refused else line for line in old]
        lines = digest.extend(old, [self._line(step) for step in draft.leaving])
        room = limits.of_usable(DIGEST_SHARE) - counter.tokens(tokens.count(markup.digest([])))
        lines = digest.fit(lines, room, lambda text: counter.tokens(tokens.count(text)), self._clock.zone)
        epoch.digest = digest.write(lines)
        epoch.settings = self.setup.settings(limits)
        if lines:
            text = markup.digest([line.text(self._clock.zone) for line in lines])
            epoch.preamble.append(blocks.text_block(text))
            epoch.sizes["digest"] = tokens.count(text)
        pinned = self._pinned()
        epoch.preamble += pinned
        epoch.sizes["pinned"] = sum((tokens.count(block["text"]) for block in pinned), Counts())
        for step in requests:
            opening = markup.request_opening(step.id, from_micros(step.at, self._clock.zone))
            epoch.preamble.append(blocks.text_block(opening))
            epoch.preamble += [part.form for part in step.parts if part.form]
            counts = sum((part.counts for part in step.parts if part.form), tokens.count(opening))
            epoch.sizes["request"] = epoch.sizes.get("request", Counts()) + counts

    def _line(self, step: Step) -> digest.Line:
        said = [part.form for part in step.parts if part.kind == "said" and part.form]
        words = " ".join(map(blocks.text_of, said)) if step.kind == "user" else ""
        return digest.Line(step.id, step.id, step.turn, 1, step.at, step.at, digest.first_words(words))

    # carrying out

    def open(self, view: PromptState, draft: Draft, counter: Counter, why: str) -> None:
        """The new epoch in the store and in the view, with every movement in the ledger."""
        store = self._store
        number, step = draft.epoch.id, store.conversation.last_step()
        unsent = draft.steps[-1].id if draft.steps and view.last_is_unsent else None
        with store.transaction():
            store.prompt.open_epoch(draft.epoch, to_micros(self._clock.now()), step)
            for part, form, counts in draft.reforms:
                store.conversation.reform(part, number, form)
                store.conversation.size(part, counts)
            self._note_leaving(view, draft, counter, why, step)
            store.prompt.release_recalled(unsent, step, "an epoch opened")
            for part, stays in draft.spilled:
                self._ledger.write("spill", f"x{part}", reason="the prompt did not fit", tokens=stays)
            store.core.seen()
            self._pages.release_unpinned()
            self._pages.shown()
            self._ledger.write(
                "epoch", reason=why, tokens=counter.tokens(draft.view().counts()), epoch=number, left=len(draft.leaving)
            )
        fresh = draft.view()
        view.epoch, view.epoch_lives = fresh.epoch, True
        view.answered, view.sent_part = None, 0
        view.forget_base()
        view.replace_steps(draft.steps)

    def _note_leaving(self, view: PromptState, draft: Draft, counter: Counter, why: str, step: int) -> None:
        requests = {request.id for request in self._requests(view)}
        for gone in draft.leaving:
            size = counter.tokens(sum((part.counts for part in gone.parts if part.form), Counts()))
            self._ledger.write("evict", f"s{gone.id}", reason=why, tokens=size, step=step)
            self._store.prompt.leave(f"s{gone.id}", "step", step, why)
            if gone.id in requests:
                self._store.prompt.enter(f"s{gone.id}", "request", step)
        if draft.leaving:
            self._store.said.owe([gone.id for gone in draft.leaving])
            self._store.prompt.release([gone.id for gone in draft.leaving], step, why)
        for stay in self._store.prompt.resident():
            if stay.how == "request" and int(stay.page_id[1:]) not in requests:
                self._store.prompt.leave(stay.page_id, "request", step, "its turn is over")


def _unseen(step: Step, answered: int) -> bool:
    """Whether the model has not answered to it yet: tool results with a message told behind them, and that message."""
    results = step.id == answered and any(part.slot == "result" for part in step.parts)
    return results or (step.kind == "user" and step.id > answered)


def _only_for_the_moment(part: Part, *, whole: bool) -> bool:
    """Thinking is bound to the old prefix; a fresh core says what updates said; recalled facts stay if unsent."""
    thinking = part.form is not None and part.form.get("type") in blocks.THINKING
    return thinking or part.kind in ("notice", "update") or (part.kind == "recalled" and not whole)


def _part_size(part: Part, counter: Counter, *, whole: bool) -> PartSize:
    if part.form is None or _only_for_the_moment(part, whole=whole):
        return PartSize(part.id, 0, spillable=False)
    spillable = part.kind == "said" and part.form.get("type") in SPILLABLE
    only_media = part.counts.media > 0 and part.counts.total - part.counts.media <= FLOOR_TOKENS
    return PartSize(part.id, counter.tokens(part.counts), spillable, divisible=not only_media)
