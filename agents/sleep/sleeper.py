"""Runs a sleep: what needs no model first, then as many requests as its bounds allow.

A sleep never fails because of its model. One that is down, or that answers nonsense, leaves a smaller proposal. Between
two requests it can be stopped, and goes on there the next time; so it does after a kill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from threading import Lock
from typing import Any, NamedTuple

from agents.logs import log
from agents.meter import Prices
from agents.models.model import Model
from agents.sleep import requests
from pager import Memory, RejectedError, count_tokens
from pager.sleep import FactPair, Proposal, SaidTurn
from pager.types import Json, Usage

MOST_REQUESTS = 60
MOST_TOKENS = 300_000  # of all requests and answers: the bound where no prices are known
MOST_FAILURES = 2  # in a row: then the model is left alone
REQUEST_TOKENS = 3000  # of what was said in one request: a small model loses its way in more
ANSWER_TOKENS = 2000
THINKING_TOKENS = 2000  # a model that thinks first needs room beyond its answer
TURNS_AT_ONCE, PAIRS_AT_ONCE = 40, 8
CHARS_PER_TOKEN = 3
Stop = Callable[[], bool]
Note = Callable[[Usage, float | None], None]  # given what a request has cost
Request = Callable[[str], AbstractContextManager[Note]]  # entered around a request, with the name of the model


def _unwatched(_: str) -> AbstractContextManager[Note]:
    return nullcontext(_unnoted)


def _unnoted(_: Usage, __: float | None) -> None:
    """Nobody watches."""


class Answer(NamedTuple):
    """The answer of a model. It is `cut` if there was no room for all of it."""

    text: str
    is_cut: bool


class StoppedError(Exception):
    """Somebody talks, or a bound is reached."""


@dataclass(slots=True)
class Spent:
    """The cost of the requests of a sleep, and their outcome."""

    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    dropped: dict[str, int] = field(default_factory=dict[str, int])  # claims, by why
    failures: list[str] = field(default_factory=list[str])
    stopped: str = ""  # at which bound

    @classmethod
    def of(cls, detail: Json) -> Spent:
        """Return what an interrupted sleep had spent."""
        names = ("requests", "tokens", "usd", "dropped", "failures")
        return cls(**{name: detail[name] for name in names if name in detail})

    def detail(self, model: str) -> Json:
        """Return it as the sleep stores it."""
        given = {name: getattr(self, name) for name in ("requests", "tokens", "usd", "dropped", "failures", "stopped")}
        return {"model": model, **given}


class Sleeper:
    """Sleeps for one agent. Without a model it proposes what needs none."""

    def __init__(
        self, memory: Memory, model: Model | None, *, prices: Prices | None = None, max_usd: float | None = None
    ) -> None:
        self._memory = memory
        self._model = model
        self._prices = prices
        self._max_usd = max_usd
        self._one_at_a_time = Lock()
        self._spent = Spent()
        self._in_a_row = 0
        self._request: Request = _unwatched

    def run(self, stop: Stop = lambda: False, request: Request = _unwatched) -> Proposal | None:
        """Sleep, and return the proposal; None if there is nothing to do, or if it was stopped: then the next one goes
        on with it. `request` is entered around each request to the model."""
        with self._one_at_a_time:
            self._request = request
            if self._memory.turn_is_open:
                raise RejectedError("a turn is open, and a sleep waits until it is answered. Resume the turn first.")
            if self._model is None:
                return self._memory.sleeps.propose()
            begun = self._memory.sleeps.begin()
            if begun is None:
                return None
            self._spent, self._in_a_row = Spent.of(begun.detail), 0
            try:
                self._read_turns(begun.number, stop)
                self._judge_pairs(begun.number, stop)
                self._shorten_blocks(begun.number, stop)
            except StoppedError:
                if stop():
                    return None
            return self._memory.sleeps.finish(begun.number, self._spent.detail(self._model.name))

    def _read_turns(self, number: int, stop: Stop) -> None:
        limit = min(REQUEST_TOKENS, self._memory.limits.usable_tokens // 3)
        while turns := self._memory.sleeps.unread_turns(TURNS_AT_ONCE):
            for batch in batches(turns, limit):
                if not any(turn.steps for turn in batch):
                    self._memory.sleeps.add_facts(number, [], batch)  # nothing was said in them
                    continue
                if not self._read_batch(number, batch, limit, stop):
                    return  # they stay unread; a model that is down is not asked about the next ones

    def _read_batch(self, number: int, batch: Sequence[SaidTurn], limit: int, stop: Stop) -> bool:
        """Return False if the model does not answer. Of what it had no room to answer, it is asked in two halves."""
        answer = self._ask(requests.FACTS, requests.about_turns(batch, limit * CHARS_PER_TOKEN), number, stop)
        if answer is None:
            return False
        if answer.is_cut and len(batch) > 1:
            middle = len(batch) // 2
            halves = batch[:middle], batch[middle:]
            return all(self._read_batch(number, half, limit, stop) for half in halves)
        for why, count in self._memory.sleeps.add_facts(number, requests.read_facts(answer.text), batch).items():
            self._spent.dropped[why] = self._spent.dropped.get(why, 0) + count
        self._note(number)
        return True

    def _judge_pairs(self, number: int, stop: Stop) -> None:
        pairs = self._memory.sleeps.pairs(number)
        # What is untrusted is judged by itself: it could lead the model in what it says of others.
        for _, group in groupby(sorted(pairs, key=lambda pair: pair.via), key=lambda pair: pair.via):
            chosen = list(group)
            for start in range(0, len(chosen), PAIRS_AT_ONCE):
                batch: Sequence[FactPair] = chosen[start : start + PAIRS_AT_ONCE]
                answer = self._ask(requests.PAIRS, requests.about_pairs(batch), number, stop)
                if answer is None:
                    return
                self._memory.sleeps.judge(number, requests.read_verdicts(answer.text, batch))
                self._note(number)

    def _shorten_blocks(self, number: int, stop: Stop) -> None:
        rewritten = {edit.block for edit in self._memory.sleeps.proposal(number).edits}
        for block in self._memory.sleeps.full_blocks():
            if block.name in rewritten:
                continue
            answer = self._ask(requests.BLOCK, requests.about_block(block), number, stop)
            if answer is None:
                return
            if why := self._memory.sleeps.rewrite_block(number, block.name, requests.read_text(answer.text)):
                self._spent.dropped[why] = self._spent.dropped.get(why, 0) + 1
            self._note(number)

    def _note(self, number: int) -> None:
        self._memory.sleeps.note(number, self._spent.detail(self._model.name if self._model else ""))

    def _ask(self, system: str, text: str, number: int, stop: Stop) -> Answer | None:
        """Return the answer to a request, tried once more after a failure; None if the model does not answer."""
        while True:
            self._check_bounds(system, text, stop)
            try:
                answer = self._answer(system, text, stop)
            except StoppedError:
                raise
            except Exception as error:  # noqa: BLE001 - a model is anybody's code, and a sleep goes on without it
                log.warning("a request of a sleep failed: %s: %s", type(error).__name__, error)
                self._spent.failures.append(f"{type(error).__name__}: {error}"[:300])
                self._spent.requests += 1
                self._in_a_row += 1
                self._note(number)
                if self._in_a_row >= MOST_FAILURES:
                    return None
            else:
                self._in_a_row = 0
                return answer

    def _check_bounds(self, system: str, text: str, stop: Stop) -> None:
        """Raise StoppedError if somebody talks, or if the next request could go beyond a bound."""
        asked = count_tokens(system) + count_tokens(text)
        most = Usage(input_tokens=asked, output_tokens=ANSWER_TOKENS)
        if not stop():
            if self._spent.requests >= MOST_REQUESTS:
                self._spent.stopped = f"{MOST_REQUESTS} requests"
            elif self._spent.tokens + asked + ANSWER_TOKENS > MOST_TOKENS:
                self._spent.stopped = f"{MOST_TOKENS} tokens"
            elif (
                self._max_usd is not None and self._prices and self._spent.usd + self._prices.usd(most) > self._max_usd
            ):
                self._spent.stopped = f"max_usd {self._max_usd:g}"
            else:
                return
        raise StoppedError

    def _answer(self, system: str, text: str, stop: Stop) -> Answer:
        assert self._model is not None
        with self._request(self._model.name) as note:
            return self._stream(self._model, system, text, stop, note)

    def _stream(self, model: Model, system: str, text: str, stop: Stop, note: Note) -> Answer:
        limits = self._memory.limits
        room = limits.limit_tokens - count_tokens(system) - count_tokens(text)
        # An agent that is to answer briefly has no less to note.
        own = max(limits.max_output_tokens, ANSWER_TOKENS)
        most = max(1, min(ANSWER_TOKENS + THINKING_TOKENS, own, room * 2 // 3))
        messages: list[Json] = [{"role": "user", "content": [{"type": "text", "text": text}]}]
        pieces = model.stream({"max_tokens": most, "system": system, "messages": messages})
        while True:
            try:
                next(pieces)
            except StopIteration as end:
                message: Any = end.value.message
                break
            if stop():
                pieces.close()
                raise StoppedError
        self._spent.requests += 1
        usage = Usage.read(message.get("usage")) or Usage(input_tokens=count_tokens(system) + count_tokens(text))
        self._spent.tokens += usage.whole_input + usage.output_tokens
        usd = self._prices.usd(usage) if self._prices else None
        self._spent.usd += usd or 0.0
        note(usage, usd)
        said = "\n".join(str(block.get("text", "")) for block in message["content"] if block.get("type") == "text")
        return Answer(said, message.get("stop_reason") == "max_tokens")


def batches(turns: Sequence[SaidTurn], limit_tokens: int) -> Iterator[list[SaidTurn]]:
    """Yield turns in groups for one request each, with the same untrusted sources."""
    for _, group in groupby(turns, key=lambda turn: turn.via):
        batch, size = list[SaidTurn](), 0
        for turn in group:
            own = sum(count_tokens(step.text) + 12 for step in turn.steps)
            if batch and size + own > limit_tokens:
                yield batch
                batch, size = [], 0
            batch, size = [*batch, turn], size + own
        if batch:
            yield batch
