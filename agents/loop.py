"""The loop: one generator, in one place. A turn is asked, its calls are run, and so on until it is answered.

Everything is on disk before the next thing happens: the request's words before the model is called, a reply before its
tools run, a result before the next call. So the loop can be left at any moment and `run` again: it goes on from what is
on disk. It stops when the turn is answered, a limit holds, a call waits for a person, or `stop` was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

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
from agents.logs import log
from agents.meter import Meter
from agents.models.model import (
    FinishedReply,
    Json,
    Model,
    ModelError,
    ModelUnavailableError,
    PromptTooLongError,
    UnreadableReplyError,
)
from agents.tools.functions import Output, Tool, ToolCallError, told
from pager.conversation.replies import WINDOW_END
from pager.errors import RejectedError, StorageError
from pager.memory import INTERRUPTED, Memory
from pager.types import Call, Usage

MALFORMED = "The input of this call was not valid JSON, so it was not run. Make the call again."
DENIED = "A person refused this call; it was not run."
UNAPPROVED = "Nobody approved this call; it was not run."
PASSED_OVER = "This call was not run: something else was said first. Make it again if it is still wanted."
NOT_TAKEN = "What was said now was not taken: a reply has paused and has to go on first."
TOO_LONG_ATTEMPTS = 3
MALFORMED_ATTEMPTS = 3
SLICE_SECONDS = 0.2  # so soon is a stop noticed in a pause
CUT = "max_tokens"
HOW_IT_ENDED = {
    "refusal": Stopped("refused", "the model refused; the request and the refusal are out of its view."),
    CUT: Stopped("cut", "the reply was cut at max_output_tokens."),
    WINDOW_END: Stopped("cut", "the reply was cut at the end of the window."),
}
PAGING_EVENTS = frozenset(
    {"archive", "supersede", "forget", "core", "evict", "page_in", "page_out", "pin", "unpin", "recall", "spill",
     "notice", "epoch", "index", "embedder"}
)  # fmt: skip
Approve = Callable[[Call], bool | None]  # None: nobody can be asked now


@dataclass(frozen=True, slots=True)
class Patience:
    """How outages are waited out: pauses that grow, until in all it would be too long."""

    total_seconds: float = 30.0
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 300.0
    wait: Callable[[float], object] | None = None  # None: that long, or until `stop`

    def pause(self, attempt: int, waited: float, asked: float) -> float | None:
        """The next pause in seconds, at least what the provider asked for; None when it was long enough."""
        left = self.total_seconds - waited
        if left <= 0 or asked > left:
            return None
        grown = self.first_pause_seconds * 2.0 ** min(attempt, 60)
        return min(max(min(grown, self.longest_pause_seconds), asked), left)


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
        self._stopping = False  # set in signal handlers, where a lock could wait for itself
        self._seen = max((movement.number for movement in memory.ledger(limit=1)), default=0)
        self._moved = memory.ledger_version

    def stop(self) -> None:
        """Return at the next step. What is on disk goes on from there."""
        self._stopping = True

    def begin(self) -> None:
        """Something new is asked for: a stop that came too late for what was asked before is over."""
        self._stopping = False

    def run(self, kept: Callable[[], object] = lambda: None) -> Generator[Event]:
        """Answer the open turn. `kept` is called in the transaction that commits a reply."""
        self._settle_interrupted()
        stop_reason = ""
        while self._memory.turn_is_open:
            waits = yield from self._answer_calls()
            if waits:
                yield Stopped("approval", f"{waits.name} waits for approval and was not run.")
                return
            if not self._memory.turn_is_open:
                stop_reason = CUT  # too many cut replies in a row: these calls were the last of the turn
                break
            if stopped := self._why_stop():
                yield stopped
                return
            stop_reason = yield from self._step(kept)
            yield from self._paging()
        yield HOW_IT_ENDED.get(stop_reason, Stopped("answered"))

    def make_room(self) -> Generator[Event, None, bool]:
        """Bring an open turn to where something new can be said: its calls answered, a paused reply gone on.

        No call is run for that: what is said now may be that it should not be. False when it was stopped before.
        """
        self._settle_interrupted()
        while not self._memory.accepts_message:
            for call in self._memory.open_calls:
                why = INTERRUPTED if call.begun else UNAPPROVED if call.waiting else PASSED_OVER
                self._memory.append_result(call.id, why, is_error=True)
                yield ToolFinished(call.id, call.name, why, True)
            if self._memory.accepts_message:
                break
            if stopped := self._why_stop():
                yield replace(stopped, text=f"{stopped.text} {NOT_TAKEN}")
                return False
            yield from self._step()
            yield from self._paging()
        return True

    def _settle_interrupted(self) -> None:
        if self._memory.open_calls:
            self._memory.answer_interrupted(rerun=[tool.name for tool in self._tools.values() if tool.idempotent])

    def _why_stop(self) -> Stopped | None:
        """Why no further request may be made now."""
        if self._stopping:
            return Stopped("cancelled", "stopped at the step, as asked; resume goes on from here.")
        return self._meter.over()

    # one step

    def _step(self, kept: Callable[[], object] = lambda: None) -> Generator[Event, None, str]:
        """One request and its reply: the reply's stop reason, or nothing when a reason to stop came before it."""
        too_long = malformed = 0
        while True:
            request = self._memory.request()
            yield from self._paging()
            try:
                reply = yield from self._ask(request.params)
                if reply is None:
                    return ""
                step, usage, usd = self._keep(reply, kept)
            except PromptTooLongError as error:
                too_long += 1
                if too_long == TOO_LONG_ATTEMPTS:
                    raise
                self._memory.report_too_long(str(error))
            except (RejectedError, UnreadableReplyError) as error:
                malformed += 1
                if malformed == MALFORMED_ATTEMPTS:
                    raise ModelError(f"{malformed} replies in a row could not be used. The last: {error}") from error
                pause = self._patience.pause(malformed - 1, 0.0, 0.0) or 0.0
                yield StreamLost(str(error), pause)
                self._wait(pause)
            else:
                if self._is_asked_again(reply.message):
                    yield StreamLost("the reply reached the end of the window; the oldest steps make room", 0.0)
                yield Replied(step, usage, usd, request.tokens, self._memory.limits.usable_tokens)
                return str(reply.message["stop_reason"])

    def _is_asked_again(self, message: Json) -> bool:
        """Whether a reply that the window cut off has left, and the turn waits for another one."""
        return message["stop_reason"] == WINDOW_END and self._memory.turn_is_open and not self._memory.open_calls

    def _keep(self, reply: FinishedReply, kept: Callable[[], object]) -> tuple[str, Usage | None, float | None]:
        """Commit a reply, together with what would be forgotten in a crash: that the input of a call is only a part."""
        with self._memory.transaction():
            step = self._memory.append_assistant(reply.message)
            calls = self._memory.open_calls  # in the reply's order; a cut last one is answered already
            for place in reply.malformed_calls:
                if place < len(calls):
                    self._memory.append_result(calls[place].id, MALFORMED, is_error=True)
            usage, usd = self._meter.count(reply.message)
            kept()
        return step, usage, usd

    def _ask(self, params: Json) -> Generator[Event, None, FinishedReply | None]:
        """The model's finished reply; an outage is waited out, and what was streamed before it is void.

        None when there is a reason to stop before the next attempt.
        """
        attempt, waited = 0, 0.0
        while True:
            try:
                return (yield from self._pieces(params))
            except ModelUnavailableError as error:
                pause = self._patience.pause(attempt, waited, error.retry_after_seconds or 0.0)
                if pause is None:
                    raise
                yield StreamLost(str(error), pause)
            self._wait(pause)
            attempt, waited = attempt + 1, waited + pause
            if self._why_stop():
                return None

    def _wait(self, seconds: float) -> None:
        if self._patience.wait:
            self._patience.wait(seconds)
            return
        left = seconds
        while left > 0 and not self._stopping:
            time.sleep(min(left, SLICE_SECONDS))
            left -= SLICE_SECONDS

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
            if self._stopping:
                break
        return None

    def _run(self, call: Call, tool: Tool | None) -> tuple[str, bool]:
        """Run one call and commit its result: what went wrong is told to the model, its trace to the log."""
        if tool is None:
            names = ", ".join(self._tools)
            return self._answer(call, f"There is no tool {call.name!r}. There are: {names}.", is_error=True)
        try:
            if tool.memory:
                with self._memory.transaction():  # its effect and its result
                    return self._answer(call, tool.run(call.input), memory_tool=True)
            self._memory.begin_call(call.id)
            return self._answer(call, tool.run_limited(call.input))
        except (RejectedError, ToolCallError) as error:
            text = str(error)
        except StorageError:
            raise  # nothing can be kept, no result either; the last committed state stands
        except Exception as error:
            log.exception("the tool %s failed", call.name)
            text = f"{call.name} failed: {told(error)}"
        return self._answer(call, text, is_error=True, memory_tool=tool.memory)

    def _answer(
        self, call: Call, output: Output, *, is_error: bool = False, memory_tool: bool = False
    ) -> tuple[str, bool]:
        self._memory.append_result(call.id, output, is_error=is_error, memory_tool=memory_tool)
        text = output if isinstance(output, str) else f"({len(output)} blocks)"
        return text, is_error

    # what moved

    def _paging(self) -> Generator[Paged]:
        if self._memory.ledger_version == self._moved:
            return
        self._moved = self._memory.ledger_version
        moved = self._memory.ledger(after=self._seen)
        self._seen = moved[-1].number if moved else self._seen
        yield from (Paged(movement) for movement in moved if movement.event in PAGING_EVENTS)
