"""What is in the prompt now: the epoch, its steps, and the sums that make a turn cost the same at any length.

A copy of what the store says, kept so that nothing is read or counted twice. After a failed transaction it is
thrown away and loaded again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pager import blocks, markup
from pager.conversation import sizes as sizing
from pager.errors import NotFoundError
from pager.prompt import render as window
from pager.store import Store
from pager.tokens import Counts
from pager.tokens.counter import Counter, Estimate
from pager.types import Answered, Epoch, Part, Step

LEAST_MARGIN = 16
NEAR_STEPS = 6


@dataclass(slots=True)
class PromptState:
    """The prompt in memory. `steps` are the resident ones, oldest first."""

    epoch: Epoch | None = None
    epoch_lives: bool = False
    steps: list[Step] = field(default_factory=list[Step])
    answered: Answered | None = None  # the last answered request of this epoch
    base_tokens: int | None = None  # what the prompt up to base_part is, as the last response said
    base_part: int = 0
    base_is_exact: bool = True  # nothing is learned from what comes behind a bound
    base_blocks: int = 0  # blocks of the reply in the base, of which only what they cost as output is known
    sent_part: int = 0  # parts up to here have been sent: they stay as they are
    _sealed: window.Messages = field(default_factory=window.Messages)
    _sealed_steps: int = 0
    _counts: Counts = field(default_factory=Counts)  # of all parts of sealed steps
    _fixed: Counts | None = None  # of the epoch's own: tools, system, preamble

    @classmethod
    def load(cls, store: Store) -> PromptState:
        view = cls()
        last = store.prompt.last_epoch()
        if last:
            view.epoch, view.epoch_lives = last
        number = view.epoch.id if view.epoch else 0
        view.steps = store.conversation.load(store.prompt.resident_steps(), number)
        if view.epoch:
            view.answered = store.prompt.last_request(view.epoch.id)
        if view.answered:
            view.rest_on(view.answered)
        return view

    @classmethod
    def load_at(cls, store: Store, step: int) -> PromptState:
        """The prompt of the request that the reply `step` answered, with sizes as they were then."""
        answered = answered_by(store, step)
        epoch = store.prompt.epoch(answered.epoch)
        assert epoch is not None
        ids = store.prompt.steps_at(step)
        view = cls(epoch=epoch, steps=store.conversation.load(ids, epoch.id, answered.through_part), answered=answered)
        newer = store.conversation.reformed_since(ids, epoch.id)
        for part in (part for held in view.steps for part in held.parts if part.id in newer):
            part.counts = sizing.count(part.form) if part.form else Counts()
        view.sent_part = view.base_part = answered.through_part
        view.base_tokens = answered.usage.whole_input if answered.usage else answered.estimate
        return view

    def rest_on(self, answered: Answered) -> None:
        """From here on only what comes after this request and its reply has to be estimated."""
        self.answered = answered
        self.sent_part = answered.through_part
        self.forget_base()
        near = self.steps[-NEAR_STEPS:]  # after opening, messages may stand behind the reply
        held = {part.id for step in near for part in step.parts}
        if not answered.usage or (answered.through_part and not held & {answered.through_part}):
            return
        reply = next((step for step in near if step.id == answered.step), None)
        self.base_tokens = answered.usage.whole_input + (answered.usage.output_tokens if reply else 0)
        in_reply = [part for part in reply.parts if part.slot == "reply"] if reply else []
        self.base_part = max((part.id for part in in_reply), default=answered.through_part)
        # Thinking costs more tokens than it shows, and what is not carried costs none: then it is only a bound.
        self.base_is_exact = all(map(_costs_what_it_shows, in_reply))
        self.base_blocks = len(in_reply)

    def forget_base(self) -> None:
        """What is known of an earlier request says nothing of this prompt: every part has to be estimated."""
        self.base_tokens, self.base_part, self.base_blocks = None, 0, 0

    def counted(self, tokens: int) -> None:
        """All of it, as it stands, has that many tokens."""
        self._seal()
        self.base_tokens, self.base_part, self.base_is_exact = tokens, self.last_part, True
        self.base_blocks = 0

    @property
    def last(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    @property
    def last_part(self) -> int:
        return max((step.parts[-1].id for step in self.steps[-2:] if step.parts), default=0)

    @property
    def last_is_unsent(self) -> bool:
        """Whether the last step may still grow without changing what was sent."""
        last = self.last
        return last is not None and bool(last.parts) and last.parts[-1].id > self.sent_part

    def replace_steps(self, steps: list[Step]) -> None:
        self.steps = steps
        self._reseal()

    def _reseal(self) -> None:
        self._sealed, self._sealed_steps = window.Messages(), 0
        self._counts = Counts()
        self._fixed = None

    def _seal(self) -> None:
        """All but the last step are as they will stay in this epoch."""
        if self._sealed_steps == 0 and self.epoch and not self._sealed.messages:
            self._sealed.extend(window.of_preamble(self.epoch))
        for step in self.steps[self._sealed_steps : -1]:
            self._sealed.extend(window.of_step(step))
            self._counts += _counts(step.parts)
            self._sealed_steps += 1

    def messages(self) -> window.Messages:
        self._seal()
        return self._sealed.joined(window.of_step(self.steps[-1])) if self.steps else self._sealed

    def size(self, counter: Counter) -> Estimate:
        """What the next request will be: what a response said, and an estimate of what came since."""
        tokens, margin = counter.estimate(self.counts_not_measured())
        return Estimate((self.base_tokens or 0) + tokens, margin + LEAST_MARGIN)

    def tokens(self, counter: Counter) -> int:
        """`size`, without its margin."""
        return (self.base_tokens or 0) + counter.tokens(self.counts_not_measured())

    def counts(self) -> Counts:
        """Of the whole request as it stands."""
        self._seal()
        return self.fixed() + self._counts + _counts(self.last.parts if self.last else [])

    def counts_since_base(self) -> Counts | None:
        """Of what came after the last response; None when there is none to rest on."""
        if self.base_tokens is None:
            return None
        total = Counts()
        for step in self._steps_behind(self.base_part):
            total += _counts([part for part in step.parts if part.id > self.base_part])
        return total

    def _steps_behind(self, part: int) -> Iterator[Step]:
        """The steps with newer parts, newest first. Parts are committed in the order in which the prompt has them."""
        for step in reversed(self.steps):
            if step.parts and step.parts[-1].id <= part:
                return
            yield step

    def unmeasured(self) -> list[str]:
        """The texts that no response and no count has covered yet: those behind the base, or all."""
        texts: list[str] = []
        if self.base_tokens is None and self.epoch:
            texts = [blocks.dump(self.epoch.tools), *(str(block["text"]) for block in self.epoch.system)]
            texts += map(blocks.countable, self.epoch.preamble)
        since = self.base_part if self.base_tokens is not None else 0
        for step in self._steps_behind(since):
            texts += [blocks.countable(part.form) for part in step.parts if part.form and part.id > since]
        return texts

    def counts_not_measured(self) -> Counts:
        """Of what no response and no count has covered yet."""
        since = self.counts_since_base()
        return self.counts() if since is None else since

    def fixed(self) -> Counts:
        if self._fixed is None:
            self._fixed = sum(self.epoch.sizes.values() if self.epoch else (), Counts())
        return self._fixed


def answered_by(store: Store, step: int) -> Answered:
    """The request that a reply answered; for any other step an error that names the replies around it."""
    known = store.prompt.request(step)
    if known is None:
        around = [f"s{number}" for number in store.prompt.answered_around(step) if number is not None]
        near = f" The nearest are {' and '.join(around)}." if around else ""
        raise NotFoundError(
            f"s{step} is no reply of the model; requests are known by the step that answered them.{near}"
        )
    return known


def _costs_what_it_shows(part: Part) -> bool:
    form = part.form
    return form is not None and form.get("type") not in blocks.THINKING and form.get("text") != markup.NO_TEXT


def _counts(parts: list[Part]) -> Counts:
    total = Counts()
    for part in parts:
        if part.form:
            total += part.counts
    return total
