"""The loop: one generator, in one place. A turn is asked, its calls are run, and so on until it is answered.

Everything is on disk before the next thing happens: the request's words before the model is called, a reply before its
tools run, a result before the next call. So the loop can be left at any moment and `run` again: it goes on from what is
on disk. It stops when the turn is answered, a limit holds, a call waits for a person, or `stop` was asked for.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from agents.events import (
    ApprovalNeeded,
    Event,
    Paged,
    Replied,
    Stopped,
    StreamLost,
    Text,
    Thinking,
    ToolFinished,
    ToolStarted,
)
from agents.meter import Meter
from agents.model import FinishedReply, Json, Model, ModelAway, PromptTooLong
from agents.tools import Output, Tool, ToolFailed
from pager.errors import Refused
from pager.memory import Memory
from pager.types import Call

log = logging.getLogger("selfpager")
MALFORMED = "The input of this call was not valid JSON, so it was not run. Make the call again."
DENIED = "A person refused this call; it was not run."
TOO_LONG_ATTEMPTS = 3
PAGING_EVENTS = frozenset(
    {"archive", "supersede", "forget", "core", "evict", "page_in", "page_out", "pin", "unpin", "recall", "spill",
     "notice", "epoch", "index", "embedder"}
)  # fmt: skip
Approve = Callable[[Call], bool | None]  # None: nobody can be asked now


@dataclass(slots=True)
class Patience:
    """How outages are waited out: pauses that grow, until in all it was too long."""

    total_seconds: float = 30.0
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 300.0
    wait: Callable[[float], bool] = field(default=lambda seconds: threading.Event().wait(seconds))

    def pauses(self) -> Generator[float]:
        left, pause = self.total_seconds, self.first_pause_seconds
        while left > 0:
            yield min(pause, left)
            left -= pause
            pause = min(2 * pause, self.longest_pause_seconds)


class Loop:
    def __init__(
        self, memory: Memory, model: Model, tools: Sequence[Tool], *, meter: Meter, approve: Approve, patience: Patience
    ) -> None:
        self._memory = memory
        self._model = model
        self._tools = {tool.name: tool for tool in tools}
        self._meter = meter
        self._approve = approve
        self._patience = patience
        self._stop = threading.Event()
        self._seen = max((movement.number for movement in memory.ledger(limit=1)), default=0)

    def stop(self) -> None:
        """Return at the next step. What is on disk goes on from there."""
        self._stop.set()

    def run(self) -> Generator[Event]:
        self._stop.clear()
        self._settle_interrupted()
        last_stop = "answered"
        while self._memory.turn_is_open:
            waits = yield from self._answer_calls()
            if waits:
                yield Stopped("approval", f"{waits.name} waits for approval and was not run.")
                return
            if not self._memory.turn_is_open:
                last_stop = "cut"
                break
            if stopped := self._why_stop():
                yield stopped
                return
            last_stop = yield from self._step()
            yield from self._paging()
        yield Stopped("refused" if last_stop == "refusal" else "cut" if last_stop == "cut" else "answered")

    def run_calls(self) -> Generator[Event]:
        """Only answer the open calls: before something new is said in an open turn."""
        self._stop.clear()
        self._settle_interrupted()
        waits = yield from self._answer_calls()
        if waits:
            self._memory.append_result(waits.id, "Nobody approved this call; it was not run.", is_error=True)
            yield from self.run_calls()

    def _settle_interrupted(self) -> None:
        self._memory.answer_interrupted(rerun=[tool.name for tool in self._tools.values() if tool.idempotent])

    def _why_stop(self) -> Stopped | None:
        if self._stop.is_set():
            return Stopped("cancelled", "stopped at the step, as asked; resume goes on from here.")
        return self._meter.over()

    # one step

    def _step(self) -> Generator[Event, None, str]:
        """One request and its reply; the reply's stop reason."""
        for attempt in range(TOO_LONG_ATTEMPTS):
            request = self._memory.request()
            yield from self._paging()
            try:
                reply = yield from self._ask(request.params)
            except PromptTooLong as error:
                if attempt == TOO_LONG_ATTEMPTS - 1:
                    raise
                self._memory.overflowed(str(error))
                continue
            with self._memory.transaction():
                # Together: after a crash nobody would know that the input of these calls is only a part of it.
                step = self._memory.append_assistant(reply.message)
                for call in self._memory.open_calls:
                    if call.id in reply.malformed_calls:
                        self._memory.append_result(call.id, MALFORMED, is_error=True)
            usage, usd = self._meter.count(reply.message)
            yield Replied(step, usage, usd, request.tokens, self._memory.limits.usable_tokens)
            return str(reply.message["stop_reason"])
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _ask(self, params: Json) -> Generator[Event, None, FinishedReply]:
        """The model's finished reply; an outage is waited out, and what was streamed before it is void."""
        pauses = self._patience.pauses()
        while True:
            try:
                return (yield from self._pieces(params))
            except ModelAway as error:
                pause = next(pauses, None)
                if pause is None or self._stop.is_set():
                    raise
                pause = max(pause, error.retry_after_seconds or 0.0)
                yield StreamLost(str(error), pause)
                self._patience.wait(pause)

    def _pieces(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        return (yield from self._model.stream(params))

    # tool calls

    def _answer_calls(self) -> Generator[Event, None, Call | None]:
        """Run the open calls in their order; the one that waits for a person, if there is one."""
        for call in self._memory.open_calls:
            tool = self._tools.get(call.name)
            if tool and tool.approve == "always" and not call.begun:
                allowed = self._approve(call)
                if allowed is None:
                    self._memory.hold_call(call.id)
                    yield ApprovalNeeded(call.id, call.name, call.input)
                    return call
                if not allowed:
                    self._memory.append_result(call.id, DENIED, is_error=True)
                    yield ToolFinished(call.id, call.name, DENIED, True)
                    continue
            yield ToolStarted(call.id, call.name, call.input)
            text, is_error = self._run(call, tool)
            yield ToolFinished(call.id, call.name, text, is_error)
            yield from self._paging()
            if self._stop.is_set():
                break
        return None

    def _run(self, call: Call, tool: Tool | None) -> tuple[str, bool]:
        """Run one call and commit its result."""
        if tool is None:
            names = ", ".join(self._tools)
            return self._answer(call, f"There is no tool {call.name!r}. There are: {names}.", is_error=True)
        if tool.memory:
            return self._run_on_memory(call, tool)
        self._memory.begin_call(call.id)
        try:
            return self._answer(call, tool.run_limited(call.input))
        except (Refused, ToolFailed) as error:
            return self._answer(call, str(error), is_error=True)
        except Exception as error:
            log.exception("the tool %s failed", call.name)
            return self._answer(call, f"{call.name} failed: {type(error).__name__}: {error}", is_error=True)

    def _run_on_memory(self, call: Call, tool: Tool) -> tuple[str, bool]:
        """A memory tool's effect and its result are one transaction."""
        try:
            with self._memory.transaction():
                output = tool.run(call.input)
                return self._answer(call, output, memory_tool=True)
        except Refused as error:
            return self._answer(call, str(error), is_error=True, memory_tool=True)

    def _answer(
        self, call: Call, output: Output, *, is_error: bool = False, memory_tool: bool = False
    ) -> tuple[str, bool]:
        self._memory.append_result(call.id, output, is_error=is_error, memory_tool=memory_tool)
        text = output if isinstance(output, str) else f"({len(output)} blocks)"
        return text, is_error

    # what moved

    def _paging(self) -> Generator[Paged]:
        moved = self._memory.ledger(after=self._seen)
        if moved:
            self._seen = moved[-1].number
        yield from (Paged(movement) for movement in moved if movement.event in PAGING_EVENTS)
