"""The loop: one generator, in one place. `run` asks the model, runs its tool calls, and so on until it has answered.

A turn reads from top to bottom here: `run`, then the tool calls, then one step (a request and its reply), then
waiting and committing. Everything is on disk before the next thing happens: the request's words before the model is
called, a reply before its tools run, a result before the next call. So the loop can be left at any moment and `run`
again: it goes on from what is on disk. It stops when the turn is answered, a limit holds, a call waits for a person or
for whoever asked, or `stop` was called. At `max_steps`, and when the same call has failed three times, the model is
asked once more without tools, so that a person gets an answer.
"""

import json
import time
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, cast

from agents.events import (
    ApprovalNeeded,
    Event,
    Paged,
    Replied,
    Stopped,
    StreamLost,
    ToolFinished,
    ToolStarted,
    calls_at_provider,
)
from agents.logs import log
from agents.meter import Meter
from agents.models.model import (
    FinishedReply,
    Json,
    MediaRefusedError,
    Model,
    ModelError,
    ModelUnavailableError,
    PromptTooLongError,
    UnreadableReplyError,
)
from agents.models.patience import Patience
from agents.tools.functions import ErrorText, Output, Tool, ToolCallError, describe_error
from agents.tools.helper_calls import DENIED, AgentTool, Approve, HelperCalls
from pager.errors import NeedsApprovalError, RejectedError, StorageError
from pager.memory import INTERRUPTED, Memory
from pager.types import Call, Usage

# Results of calls that were not run.
MALFORMED = "The input of this call was not valid JSON, so it was not run. Make the call again."
UNAPPROVED = "Nobody approved this call; it was not run."
DROPPED = (
    "{} was stopped before it had answered, and then something else was said. If its work is still wanted, call it"
    " again: it begins anew."
)
PASSED_OVER = "This call was not run: something else was said first. Make it again if it is still wanted."

LIMIT_REACHED = "This call was not run: a limit of this turn is reached."
WITHOUT_IT = "Answer in words now, unless another call helps."  # else a small model makes the same call again
FAILED_AGAIN = f"The same call failed in the same turn before. {WITHOUT_IT}"

NOT_TAKEN = "What was said now was not taken: a reply has paused and has to go on first."
TOO_LONG_ATTEMPTS = 3
UNUSABLE_ATTEMPTS = 3
SAME_FAILURES = 3  # identical calls that fail with no other call succeeding in between
AT_PROVIDER = ("_tool_use", "_tool_result")  # how the types of blocks of its own tools end
SLICE_SECONDS = 0.2  # a pause notices `stop` this soon
# The API's stop reasons that do not mean "answered".
OUTPUT_FULL, WINDOW_FULL = "max_tokens", "model_context_window_exceeded"
STOPPED_BY = {
    "refusal": Stopped("refused", "the model refused; the request and the refusal were removed from the prompt."),
    OUTPUT_FULL: Stopped("cut", "the reply was cut at max_output_tokens."),
    WINDOW_FULL: Stopped("cut", "the reply was cut at the end of the window."),
}
LAST_WORD_AT = frozenset({"steps", "repeated"})
# The movements in the ledger that are yielded as `Paged`. The others only explain what happened inside.
_PAGES = {"archive", "supersede", "forget", "evict", "page_in", "page_out", "pin", "unpin", "recall", "spill"}
PAGED_EVENTS = frozenset({*_PAGES, "restore", "core", "notice", "epoch", "index", "embedder"})


class Loop:
    """The turns of one agent, over its memory, its model and its tools."""

    def __init__(
        self, memory: Memory, model: Model, tools: Sequence[Tool], meter: Meter, approve: Approve, patience: Patience
    ) -> None:
        self._memory = memory
        self._model = model
        self._tools = {tool.name: tool for tool in tools}
        helpers = {tool.name: tool for tool in tools if isinstance(tool, AgentTool)}
        self._helpers = HelperCalls(memory, meter, approve, helpers, lambda: self._stopping)
        self._meter = meter
        self._approve = approve
        self._patience = patience
        self._stopping = False  # set in signal handlers, where a lock could wait for itself
        self._failures: dict[str, int] = {}  # how often each call has failed since the last one that did not
        self.skip_movements()

    def stop(self) -> None:
        """Return at the next step, call or pause. `run` goes on from there."""
        self._stopping = True
        self._helpers.stop()

    def begin(self) -> None:
        """Ignore a `stop` that came too late for the turn before, and answer calls that a crash interrupted."""
        self._stopping = False
        self._failures.clear()
        if self._memory.open_calls:
            self._memory.answer_interrupted(rerun=[tool.name for tool in self._tools.values() if tool.idempotent])

    def run(
        self, on_reply: Callable[[], object] = lambda: None, before_request: Callable[[], bool] = lambda: True,
        elsewhere: Collection[str] = (),
    ) -> Generator[Event]:  # fmt: skip
        """Answer the open turn. `on_reply` is called in the transaction that commits a reply, or the result of a
        helper: whatever was paid for; `before_request` behind the results of each. Where that returns False, the turn
        ends without another request. Calls of the tools `elsewhere` are left to the caller."""
        stop_reason = ""
        while self._memory.turn_is_open:
            if calls := self._memory.open_calls:
                ours = [call for call in calls if call.name not in elsewhere]
                unapproved = yield from self._answer_calls(ours, on_reply)
                if unapproved:
                    why = f": {unapproved.why}" if unapproved.why else ""
                    asked = f"{unapproved.name}({json.dumps(unapproved.input, ensure_ascii=False)})"
                    text = f"{unapproved.name} waits for approval and was not run{why}. It is {asked}."
                    yield Stopped("approval", text)
                    return
                if not self._memory.turn_is_open:
                    stop_reason = OUTPUT_FULL  # too many cut replies in a row: these calls were the last of the turn
                    break
            left_open = self._memory.open_calls  # stopped between two of them, or in a helper
            if left_open and all(call.name in elsewhere for call in left_open):
                names = ", ".join(call.name for call in left_open)
                for call in left_open:
                    self._memory.hold_call(call.id)  # who resumes the turn without that tool does not answer it
                yield Stopped("calls", f"{names}: results of calls that run elsewhere are missing.")
                return
            if not left_open and not before_request() and self._memory.end_turn():
                break
            if stopped := self._reason_to_stop():
                if stopped.reason in LAST_WORD_AT and not left_open:
                    yield from self._ask_for_last_word(on_reply)
                yield stopped
                return
            stop_reason = yield from self._request_reply(on_reply)
            yield from self._paging()
        yield STOPPED_BY.get(stop_reason, Stopped("answered"))

    def make_room(self) -> Generator[Event, None, bool]:
        """Bring an open turn to where a person can speak. No call is run for that: the person may be about to say that
        it should not be. Return False if it was stopped."""
        while not self._memory.accepts_message:
            for call in self._memory.open_calls:
                left = DROPPED.format(call.name) if call.name in self._helpers.tools else INTERRUPTED
                why = left if call.begun else UNAPPROVED if call.awaits_approval else PASSED_OVER
                self._memory.append_result(call.id, why, is_error=True)
                yield ToolFinished(call.id, call.name, why, True)
            if self._memory.accepts_message:
                break
            if stopped := self._reason_to_stop():
                yield replace(stopped, text=f"{stopped.text} {NOT_TAKEN}")
                return False
            yield from self._request_reply()
            yield from self._paging()
        return True

    def _reason_to_stop(self) -> Stopped | None:
        if self._stopping:
            return Stopped("cancelled", "stopped at the step, as asked; resume goes on from here.")
        if max(self._failures.values(), default=0) >= SAME_FAILURES:
            return Stopped("repeated", f"the same call failed {SAME_FAILURES} times; say how to go on, or resume.")
        return self._meter.over()

    def _ask_for_last_word(self, on_reply: Callable[[], object]) -> Generator[Event]:
        """Ask once more without tools and end the turn. A call that the model makes all the same is not run."""
        if not (yield from self._request_reply(on_reply, may_call=False)):
            return  # the provider is down: the turn stays open
        for call in self._memory.open_calls:
            self._memory.append_result(call.id, LIMIT_REACHED, is_error=True)
            yield ToolFinished(call.id, call.name, LIMIT_REACHED, True)
        if self._memory.accepts_message:
            self._memory.end_turn()
        yield from self._paging()

    # tool calls

    def _answer_calls(
        self, calls: Sequence[Call], on_reply: Callable[[], object]
    ) -> Generator[Event, None, Call | None]:
        """Answer calls in order, those of helpers that follow each other at once. Return one that a person has to
        approve first, if there is one."""
        for is_helper, some in groupby(calls, lambda call: call.name in self._helpers.tools):
            if is_helper:

                def on_result(call: Call, is_error: bool) -> None:  # noqa: FBT001
                    self._count_failure(call) if is_error else self._failures.clear()
                    on_reply()

                unapproved = yield from self._helpers.run([*some], on_result)
                yield from self._paging()
            else:
                unapproved = yield from self._answer_in_order([*some])
            if unapproved or self._stopping:
                return unapproved
        return None

    def _answer_in_order(self, calls: Sequence[Call]) -> Generator[Event, None, Call | None]:
        for call in calls:
            tool = self._tools.get(call.name)
            outcome = None
            asks = tool.asks(call.input) if tool else call.awaits_approval  # one of a tool that runs elsewhere
            if not asks or call.begun:
                yield ToolStarted(call.id, call.name, call.input)
                outcome = self._run_call(call, tool)
            if outcome is None or isinstance(outcome, str):
                asked = replace(call, why=outcome or "")
                allowed = self._approve(asked)
                if allowed is None:
                    self._memory.hold_call(call.id)
                    yield ApprovalNeeded(call.id, call.name, call.input)
                    return asked
                if not allowed:
                    yield ToolFinished(call.id, call.name, self._fail(call, DENIED), True)
                    continue
                if asks:
                    yield ToolStarted(call.id, call.name, call.input)
                outcome = self._run_call(call, tool, approved=True)
            output, is_error = (UNAPPROVED, True) if isinstance(outcome, str) else outcome
            text = output if isinstance(output, str) else f"({len(output)} blocks)"
            yield ToolFinished(call.id, call.name, text, is_error)
            yield from self._paging()
            if self._stopping:
                break
        return None

    def _run_call(self, call: Call, tool: Tool | None, *, approved: bool = False) -> tuple[Output, bool] | str:
        """Run one call and commit its result. The model is told what went wrong; the trace goes to the log.

        Return why a person has to approve it first, if so: for what it would write to a core block.
        """
        memory_tool = tool is not None and tool.memory
        try:
            if tool is None:
                raise ToolCallError(f"There is no tool {call.name!r}. There are: {', '.join(self._tools)}.")
            if memory_tool:
                with self._memory.transaction(approved=approved):  # its effect and its result
                    output = tool.run(call.input)
                    is_error = isinstance(output, ErrorText)
                    self._memory.append_result(call.id, output, is_error=is_error, memory_tool=True)
            else:
                self._memory.begin_call(call.id)
                output, sources = tool.run_limited(call.input)
                self._memory.append_result(call.id, output, source=sources)
            self._failures.clear()
            return output, isinstance(output, ErrorText)
        except NeedsApprovalError as error:
            return error.why
        except (RejectedError, ToolCallError) as error:
            text = str(error)
        except StorageError:
            raise  # nothing can be written, no result either; the last committed state stands
        except Exception as error:
            log.exception("the tool %s failed", call.name)
            text = f"{call.name} failed: {describe_error(error)}"
        return self._fail(call, text, memory_tool=memory_tool, source=tool.error_source if tool else None), True

    def _fail(self, call: Call, text: str, *, memory_tool: bool = False, source: str | None = None) -> str:
        """Commit an error as the result of a call, which is told if it failed before. Return the text."""
        if self._count_failure(call) > 1:
            text = f"{text} {FAILED_AGAIN}"
        elif memory_tool and self._tools[call.name].of_provider is None:  # whose errors read as the provider's own
            text = f"{text} {WITHOUT_IT}"
        self._memory.append_result(call.id, text, is_error=True, memory_tool=memory_tool, source=source)
        return text

    def _count_failure(self, call: Call) -> int:
        same = json.dumps([call.name, call.input], sort_keys=True)
        self._failures[same] = self._failures.get(same, 0) + 1
        return self._failures[same]

    # one step

    def _request_reply(
        self, on_reply: Callable[[], object] = lambda: None, *, may_call: bool = True
    ) -> Generator[Event, None, str]:
        """Make one request and commit its reply. Return the stop reason; "" if there was a reason to stop before it."""
        too_long = unusable = 0
        while True:
            request = self._memory.request(may_call=may_call)
            yield from self._paging()
            try:
                reply = yield from self._ask(request.params)
                if reply is None:
                    return ""
                step, usage, usd = self._commit(reply, on_reply)
            except MediaRefusedError as error:
                yield from self._leave_out_media(error)
            except PromptTooLongError as error:
                too_long += 1
                if too_long == TOO_LONG_ATTEMPTS:
                    raise
                self._memory.report_too_long(str(error))
            except (RejectedError, UnreadableReplyError) as error:
                unusable += 1
                if unusable == UNUSABLE_ATTEMPTS:
                    raise ModelError(f"{unusable} replies in a row could not be used. The last: {error}") from error
                pause = self._patience.pause(unusable - 1, 0.0, 0.0) or 0.0
                yield StreamLost(str(error), pause)
                self._wait(pause)
            else:
                stop_reason = str(reply.message["stop_reason"])
                if stop_reason == WINDOW_FULL and self._memory.turn_is_open and not self._memory.open_calls:
                    yield StreamLost("the reply reached the end of the window; the oldest steps make room", 0.0)
                yield from _calls_at_provider(reply.message.get("content"))
                usable, sequence = self._memory.limits.usable_tokens, reply.message.get("stop_sequence")
                yield Replied(step, usage, usd, request.tokens, usable, sequence)
                return stop_reason

    def _leave_out_media(self, error: MediaRefusedError) -> Generator[StreamLost]:
        """Take the refused image or document out of the next request. Raise the error if there is none."""
        page = self._memory.report_refused_media(str(error))
        if page is None:
            raise error
        yield StreamLost(f"{error}; it is sent again without {page}", 0.0)

    def _ask(self, params: Json) -> Generator[Event, None, FinishedReply | None]:
        """Return the model's finished reply, waiting out an outage; what was streamed before it is void. None if there
        is a reason to stop before the next attempt."""
        attempt, waited = 0, 0.0
        while True:
            try:
                return (yield from self._model.stream(params))
            except ModelUnavailableError as error:
                pause = self._patience.pause(attempt, waited, error.retry_after_seconds or 0.0)
                if pause is None:
                    raise
                yield StreamLost(str(error), pause)
            self._wait(pause)
            attempt, waited = attempt + 1, waited + pause
            if self._reason_to_stop():
                return None

    def _wait(self, seconds: float) -> None:
        if self._patience.wait:
            self._patience.wait(seconds)
            return
        while seconds > 0 and not self._stopping:
            time.sleep(min(seconds, SLICE_SECONDS))
            seconds -= SLICE_SECONDS

    def _commit(self, reply: FinishedReply, on_reply: Callable[[], object]) -> tuple[str, Usage | None, float | None]:
        """Commit a reply, together with what a crash would lose: that the input of a call is only a part of it."""
        with self._memory.transaction():
            step = self._memory.append_assistant(reply.message)
            if reply.malformed_calls:
                calls = self._memory.open_calls  # in the reply's order; a cut last one is answered already
                for place in reply.malformed_calls:
                    if place < len(calls):
                        self._fail(calls[place], MALFORMED)
            usage, usd = self._meter.count(reply.message)
            on_reply()
        return step, usage, usd

    # movements

    def skip_movements(self) -> None:
        """Yield no movement up to now: they were of no turn, or their caller tells of them."""
        self._seen_number = max((movement.number for movement in self._memory.ledger(limit=1)), default=0)
        self._seen_version = self._memory.ledger_version

    def _paging(self) -> Generator[Paged]:
        if (version := self._memory.ledger_version) == self._seen_version:
            return
        self._seen_version = version
        movements = self._memory.ledger(after=self._seen_number)
        self._seen_number = movements[-1].number if movements else self._seen_number
        yield from (Paged(movement) for movement in movements if movement.event in PAGED_EVENTS)


def _calls_at_provider(content: Any) -> Generator[Event]:
    blocks = cast("list[Json]", content) if isinstance(content, list) else []
    if any(str(block.get("type")).endswith(AT_PROVIDER) for block in blocks):
        yield from calls_at_provider(blocks)
