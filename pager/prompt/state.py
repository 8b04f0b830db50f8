"""The present prompt and its size: the epoch, its steps, and sums that grow with the conversation.

A copy in memory of what the store has, so that nothing is read or counted twice: a turn costs the same at any length.
After a rollback it is thrown away and loaded again.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pager import blocks, markup, tokens
from pager.errors import NotFoundError
from pager.prompt.render import Messages, preamble_messages, render, step_messages
from pager.safety.sources import MAX_NAMES, union
from pager.store import Store
from pager.store.rows import Answered, Epoch, Part, Step
from pager.tokens.counter import Counter, Estimate, Window, count_block
from pager.types import ZERO, Counts, Json, Usage

MIN_MARGIN = 16
NEAR_STEPS = 6
TOKENS_AROUND_BLOCK = 12  # that a block may cost beside its text
TOKENS_AROUND_REPLY_BLOCK = 32  # or one of a reply, beside the output that it was billed as
TOKENS_AROUND_TOOLS = 300  # what a provider writes around the tools
MEMORY_TOOL_TOKENS = 3000  # and for its own memory tool, of which the request has only the type
MIN_COUNT_SHARE, MAX_COUNT_TIMES = 0.2, 8  # of tiktoken's count: what a server that counts can report for text
CountTokens = Callable[[Json], int | None]  # None: the provider could not tell


@dataclass(slots=True)
class PromptState:
    """The prompt in memory. `steps` are the resident ones, oldest first."""

    epoch: Epoch | None = None
    epoch_lives: bool = False
    steps: list[Step] = field(default_factory=list[Step])
    answered: Answered | None = None  # the last answered request of this epoch
    base_tokens: int | None = None  # the size of the prompt up to base_part, by the last response
    base_part: int = 0
    base_is_exact: bool = True  # nothing is learned from what follows an inexact base
    base_blocks: int = 0  # blocks of the reply in the base, of which only their cost as output is known
    sent_part: int = 0  # parts up to here have been sent: they stay as they are
    _messages: Messages = field(default_factory=Messages)  # of the preamble and of all steps but the last
    _message_steps: int = 0
    _counts: Counts = ZERO  # of all parts in _messages
    _sources: frozenset[str] = frozenset()  # of all steps in _messages
    _fixed: Counts | None = None  # of tools, system and preamble
    _since_base: tuple[object, Counts] | None = None  # what the counts behind the base were last, and of which parts

    @classmethod
    def load(cls, store: Store) -> "PromptState":
        """Load the present prompt."""
        state = cls()
        last = store.prompt.last_epoch()
        if last:
            state.epoch, state.epoch_lives = last
        number = state.epoch.id if state.epoch else 0
        state.steps = store.conversation.load(store.prompt.resident_steps(), number)
        answered = store.prompt.last_request(state.epoch.id) if state.epoch else None
        if answered:
            state.measure_from(answered)
        return state

    @classmethod
    def load_at(cls, store: Store, step: int) -> "PromptState":
        """Load the prompt of the request that the reply `step` answered, with its sizes of that time."""
        answered = load_request(store, step)
        epoch = store.prompt.epoch(answered.epoch)
        assert epoch is not None
        ids = store.prompt.resident_steps(step)
        steps = store.conversation.load(ids, epoch.id, answered.through_part)
        newer = store.conversation.reformed_since(ids, epoch.id)
        for part in (part for each in steps for part in each.parts if part.id in newer):
            part.counts = count_block(part.form) if part.form else ZERO
        if any(map(blocks.is_providers_result, store.conversation.originals(step))):
            answered = replace(answered, usage=None)  # the sum of several passes
        total = answered.usage.whole_input if answered.usage else answered.estimate
        through = answered.through_part
        return cls(epoch, steps=steps, answered=answered, base_tokens=total, base_part=through, sent_part=through)

    @property
    def last(self) -> Step | None:
        """Return the newest step, if there is one."""
        return self.steps[-1] if self.steps else None

    @property
    def accepts_message(self) -> bool:
        """Return True if a user message may come next: no call is open, and no reply has paused."""
        return self.last is None or not (self.last.open_calls or self.last.paused)

    @property
    def last_part(self) -> int:
        """Return the number of the newest part; 0 if there is none."""
        return max((step.parts[-1].id for step in self.steps[-2:] if step.parts), default=0)

    @property
    def last_is_unsent(self) -> bool:
        """Return True if the last step may still grow without changing what was sent."""
        last = self.last
        return last is not None and bool(last.parts) and last.parts[-1].id > self.sent_part

    @property
    def epoch_id(self) -> int:
        """Return the number of the epoch; 0 before the first."""
        return self.epoch.id if self.epoch else 0

    @property
    def model(self) -> str:
        """Return the model of the requests of this epoch; empty before the first."""
        return str(self.epoch.settings.get("model") or "") if self.epoch else ""

    def replace_steps(self, steps: list[Step]) -> None:
        """Put other steps in the place of these."""
        self.steps = steps
        self._messages, self._message_steps = Messages(), 0
        self._counts, self._sources, self._fixed = ZERO, frozenset(), None

    def messages(self) -> Messages:
        """Return the messages of the next request."""
        self._add_finished_steps()
        return self._messages.joined(step_messages(self.steps[-1])) if self.steps else self._messages

    def parts_at(self, place: tuple[int, int] | None) -> tuple[int, ...]:
        """Return the parts that the block at a place (message and block) of the next request holds."""
        message, index = place or (-1, -1)
        parts = self.messages().parts
        return parts[message][index] if 0 <= message < len(parts) and 0 <= index < len(parts[message]) else ()

    def _add_finished_steps(self) -> None:
        """Render and count all steps but the last, once: they stay as they are in this epoch."""
        if self._message_steps == 0 and self.epoch and not self._messages.messages:
            self._messages.extend(preamble_messages(self.epoch))
        for step in self.steps[self._message_steps : -1]:
            self._messages.extend(step_messages(step))
            self._counts = Counts.sum([self._counts, *_counts(step.parts)])
            self._sources |= step.sources
            self._message_steps += 1

    def measure_from(self, answered: Answered) -> None:
        """Estimate only what follows this request and its reply from here on."""
        self.answered = answered
        self.sent_part = answered.through_part
        self.reset_base()
        near = self.steps[-NEAR_STEPS:]  # after opening, messages may stand behind the reply
        parts = {part.id for step in near for part in step.parts}
        if not answered.usage or (answered.through_part and answered.through_part not in parts):
            return
        reply = next((step for step in near if step.id == answered.step), None)
        in_reply = [part for part in reply.parts if part.slot == "reply"] if reply else []
        if any(part.form and blocks.is_providers_result(part.form) for part in in_reply):
            return  # what the provider reports is the sum of several passes
        if any(part.form is None or part.form.get("text") == markup.NO_TEXT for part in in_reply):
            in_reply = []  # what is left out costs nothing here, and only all of the reply together was counted
        self.base_tokens = answered.usage.whole_input + (answered.usage.output_tokens if in_reply else 0)
        self.base_part = max((part.id for part in in_reply), default=answered.through_part)
        # Thinking costs more tokens than it shows: then the base is only a bound.
        self.base_is_exact = all(map(_costs_what_it_shows, in_reply))
        self.base_blocks = len(in_reply)

    def reset_base(self) -> None:
        """Drop the size that a response reported for an earlier prompt: every part has to be estimated."""
        self.base_tokens, self.base_part, self.base_blocks = None, 0, 0

    def set_size(self, total_tokens: int) -> None:
        """Set the size of the whole prompt as it stands now."""
        self._add_finished_steps()
        self.base_tokens, self.base_part, self.base_is_exact = total_tokens, self.last_part, True
        self.base_blocks = 0

    def size(self, counter: Counter) -> Estimate:
        """Return the size of the next request: what the last response said, and an estimate of what follows it."""
        estimate, margin = counter.estimate(self.counts_not_measured())
        return Estimate((self.base_tokens or 0) + estimate, margin + MIN_MARGIN)

    def tokens(self, counter: Counter) -> int:
        """Return `size` without its margin."""
        return (self.base_tokens or 0) + counter.tokens(self.counts_not_measured())

    def counts(self) -> Counts:
        """Return the counts of the whole next request."""
        self._add_finished_steps()
        return Counts.sum([self.fixed_counts(), self._counts, *_counts(self.last.parts if self.last else [])])

    def sources(self) -> frozenset[str]:
        """Return the untrusted sources of all that stands in the next request."""
        self._add_finished_steps()
        found = self._sources.union(*(step.sources for step in self.steps[-1:]))
        found |= self.epoch.sources if self.epoch else found
        return found if len(found) <= MAX_NAMES else frozenset(union(found))

    def fixed_counts(self) -> Counts:
        """Return the counts of tools, system and preamble."""
        if self._fixed is None:
            self._fixed = Counts.sum(self.epoch.sizes.values() if self.epoch else ())
        return self._fixed

    def counts_not_measured(self) -> Counts:
        """Return the counts of what no response has covered yet."""
        since = self.counts_since_base()
        return self.counts() if since is None else since

    def counts_since_base(self) -> Counts | None:
        """Return the counts of what follows the last response; None without one."""
        if self.base_tokens is None:
            return None
        newer = [(step.id, len(step.parts)) for step in self._steps_behind(self.base_part)]
        if self._since_base is None or self._since_base[0] != (self.base_part, newer):
            parts = (part for step in self._steps_behind(self.base_part) for part in step.parts)
            since = [part.counts for part in parts if part.form and part.id > self.base_part]
            self._since_base = (self.base_part, newer), Counts.sum(since)
        return self._since_base[1]

    def texts_not_measured(self) -> list[str]:
        """Return the texts that no response has covered yet."""
        texts: list[str] = []
        if self.base_tokens is None and self.epoch:
            texts = [blocks.dump(self.epoch.tools), *(str(block["text"]) for block in self.epoch.system)]
            texts += map(blocks.countable, self.epoch.preamble)
        since = self.base_part if self.base_tokens is not None else 0
        for step in self._steps_behind(since):
            texts += [blocks.countable(part.form) for part in step.parts if part.form and part.id > since]
        return texts

    def _steps_behind(self, part: int) -> Iterator[Step]:
        """Yield the steps with newer parts, newest first. Parts are committed in their order in the prompt."""
        for step in reversed(self.steps):
            if step.parts and step.parts[-1].id <= part:
                return
            yield step


class Scale:
    """Tells how large a prompt really is, on which the first law rests, and learns from what responses say of it."""

    def __init__(self, store: Store, window: Window, count_tokens: CountTokens | None) -> None:
        self._store = store
        self._window = window
        self._count_tokens = count_tokens

    def measure(self, state: PromptState) -> tuple[int, bool]:
        """Return the size of the next request, at most, and True if the provider counted it."""
        size, base, new = state.size(self._window.counter), state.base_tokens or 0, state.texts_not_measured()
        around = TOKENS_AROUND_BLOCK * len(new) + TOKENS_AROUND_REPLY_BLOCK * state.base_blocks
        if not base:
            tools = state.epoch.tools if state.epoch else []
            around += TOKENS_AROUND_TOOLS + MEMORY_TOOL_TOKENS * sum(map(blocks.is_memory_tool, tools))
        media = 2 * state.counts_not_measured().media  # only the provider knows how large it really is
        usable = self._window.limits.usable_tokens
        fits_surely = base + media + around + sum(map(tokens.upper_bound, new)) <= usable
        if fits_surely and not (media and self._count_tokens):
            return size.tokens, False
        counted = self._ask_provider(state)
        if counted is not None:
            self._window.counter.learn(state.counts(), counted)
            state.set_size(counted)
            return counted, True
        if self._window.counter.learned and size.safe <= usable:
            return size.tokens, False
        return max(size.tokens, base + media + around + sum(map(tokens.byte_bound, new))), False

    def _ask_provider(self, state: PromptState) -> int | None:
        if self._count_tokens is None:
            return None
        assert state.epoch is not None
        params = render(state.epoch, state.messages(), None, state.epoch.settings["max_output_tokens"])
        try:
            counted = self._count_tokens(params)
        except Exception as error:  # noqa: BLE001 - anybody's function: the ledger names the error, a bound decides
            self._store.ledger.write("error", reason=f"count_tokens failed: {str(error) or type(error).__name__}")
            return None
        return counted if type(counted) is int and counted > 0 else None

    def is_plausible(self, state: PromptState, usage: Usage) -> bool:
        """Return False if this cannot be the usage of the state's request; some servers do not count."""
        counts = state.counts()
        text = counts.total - counts.media
        most = math.inf if counts.media else text * MAX_COUNT_TIMES  # nobody knows what documents hold
        return text * MIN_COUNT_SHARE <= usage.whole_input <= most

    def learn(self, state: PromptState, usage: Usage) -> bool:
        """Learn from the usage of the state's request. Return True if it told anything new."""
        since = state.counts_since_base()
        if since is None or state.base_tokens is None:
            return self._window.counter.learn(state.counts(), usage.whole_input)
        return state.base_is_exact and self._window.counter.learn(since, usage.whole_input - state.base_tokens)


def load_request(store: Store, step: int) -> Answered:
    """Load the request that a reply answered. For any other step an error names the nearest replies."""
    request = store.prompt.request(step)
    if request is None:
        around = [f"s{number}" for number in store.prompt.answered_around(step) if number is not None]
        near = f" The nearest are {' and '.join(around)}." if around else ""
        raise NotFoundError(f"s{step} is no reply of the model; a request is named by the step that answered it.{near}")
    return request


def _costs_what_it_shows(part: Part) -> bool:
    return part.form is not None and part.form.get("type") not in blocks.THINKING


def _counts(parts: Sequence[Part]) -> list[Counts]:
    return [part.counts for part in parts if part.form]
