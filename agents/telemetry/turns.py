"""The spans of a turn or a task, made from the events that it yields."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, StatusCode

from agents.events import (
    ApprovalNeeded,
    Event,
    HelperEvent,
    Paged,
    Replied,
    Stopped,
    StreamLost,
    Text,
    Thinking,
    ToolFinished,
    ToolStarted,
)
from agents.telemetry.metrics import Metrics
from agents.telemetry.spans import Attributes, Observed, Spans, message_of, usage_of
from pager.types import Movement, Usage


def observe(events: Generator[Event], agent: Observed, said: str) -> Generator[Event]:
    """Yield the events of a turn or a task, and make spans and metrics of them. `said` is what began it."""
    watch = _Watch(agent, said, context.get_current())
    try:
        while True:
            watch.resumed()
            with watch.inside():
                try:
                    event = next(events)
                except StopIteration:
                    break
            watch.see(event)
            yield event
    except GeneratorExit:
        raise  # whoever asked has left: the turn stays open, and is no error
    except BaseException as error:
        watch.failed(error)
        raise
    finally:
        events.close()
        watch.end()


class _Watch:
    """The open spans of one agent's turn."""

    def __init__(self, agent: Observed, said: str, around: context.Context) -> None:
        self._agent = agent
        self._spans = Spans(agent)
        self._metrics = Metrics()
        self._turn = self._spans.start(f"invoke_agent {agent.name}", "invoke_agent", around, SpanKind.INTERNAL)
        # Nobody says when a request begins: whenever no tool runs, one may. So a span is made each time before the
        # agent goes on, for what others make inside of it. If no reply comes of it, it is dropped and never told.
        self._chat: Span | None = None
        self._chat_is_real = False
        self._tools: dict[str, tuple[Span, int]] = {}
        self._helpers: dict[str, _Watch] = {}
        self._around: Span | None = None  # the span of the newest tool call: what it moved is told after its end
        self._around_since = self._around_until = self._at = self._chat_at = time.time_ns()
        self._pieces: list[str] = []
        self._usage, self._usd, self._replies = Usage(), 0.0, 0
        self._ledger = (0, 0)  # its version and newest row
        if agent.memory is not None:
            self._spans.slept(agent.memory, self._turn)
            self._ledger = (agent.memory.ledger_version, agent.told)
        self._spans.put_text(self._turn, "gen_ai.input.messages", message_of("user", said) if said else None)

    def resumed(self) -> None:
        """Take the time: what happens from here to the next event is the agent's."""
        self._at = time.time_ns()
        if not (self._chat_is_real or self._tools):
            here, stream = trace.set_span_in_context(self._turn), {"gen_ai.request.stream": True}
            self._chat = self._spans.start(f"chat {self._agent.model}", "chat", here, SpanKind.CLIENT, self._at, stream)
            self._chat_at = self._at

    @contextmanager
    def inside(self) -> Generator[None]:
        """Let the spans of others, such as of HTTP requests, stand below the call that runs, or the reply to come."""
        running = next(reversed(self._tools.values()))[0] if self._tools else self._chat or self._turn
        token = context.attach(trace.set_span_in_context(running))
        try:
            yield
        finally:
            context.detach(token)

    def see(self, event: Event) -> None:
        """Make of an event what it means for the spans."""
        if isinstance(event, Text | Thinking | StreamLost | Replied):
            self._reply(event)
        elif isinstance(event, ToolStarted):
            self._tool_started(event)
        elif isinstance(event, ToolFinished):
            self._tool_finished(event)
        elif isinstance(event, HelperEvent):
            self._helper(event)
        elif isinstance(event, Stopped):
            self._stopped(event)
        elif isinstance(event, ApprovalNeeded):
            self._turn.add_event("selfpager.approval_needed", {"gen_ai.tool.name": event.name})
        elif isinstance(event, Paged) and self._agent.memory is None:
            self._moved([event.movement])
        self._read_ledger()

    def _reply(self, event: Text | Thinking | StreamLost | Replied) -> None:
        if self._chat is None:
            self.resumed()
        assert self._chat is not None
        if not self._chat_is_real:
            self._chat_is_real, self._around = True, None
        match event:
            case Text(text):
                self._pieces.append(text)
            case StreamLost():
                self._pieces.clear()
                attributes: Attributes = {"selfpager.retry.wait_seconds": event.wait_seconds}
                self._chat.add_event("selfpager.retry", self._spans.with_texts(attributes, reason=event.reason))
            case Replied():
                self._replied(event, self._chat)
            case _:
                pass

    def _replied(self, event: Replied, span: Span) -> None:
        now = time.time_ns()
        usage = event.usage or Usage()
        attributes = usage_of(usage) if event.usage else {}
        attributes |= {"selfpager.page.id": event.step, "selfpager.window.tokens": event.window_tokens}
        attributes["selfpager.window.usable_tokens"] = event.usable_tokens
        if event.usd is not None:
            attributes["selfpager.cost.usd"] = event.usd
        span.set_attributes(attributes)
        self._spans.put_text(span, "gen_ai.output.messages", message_of("assistant", "".join(self._pieces)))
        span.end(now)
        self._metrics.reply(self._agent.attributes("chat"), (now - self._chat_at) / 1e9, usage, event.usd)
        self._usage, self._usd, self._replies = self._usage + usage, self._usd + (event.usd or 0), self._replies + 1
        self._chat, self._chat_is_real = None, False
        if self._pieces:
            self._spans.put_text(self._turn, "gen_ai.output.messages", message_of("assistant", "".join(self._pieces)))
        self._pieces.clear()

    def _tool_started(self, event: ToolStarted) -> None:
        more: Attributes = {
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.call.id": event.call_id,
            "gen_ai.tool.type": "function",
        }
        here = trace.set_span_in_context(self._turn)
        span = self._spans.start(f"execute_tool {event.name}", "execute_tool", here, SpanKind.INTERNAL, more=more)
        self._spans.put_text(span, "gen_ai.tool.call.arguments", event.input)
        self._tools[event.call_id] = span, time.time_ns()

    def _tool_finished(self, event: ToolFinished) -> None:
        if event.call_id not in self._tools:  # it was not run: refused, or passed over
            self._tool_started(ToolStarted(event.call_id, event.name, {}))
        if (helper := self._helpers.pop(event.call_id, None)) is not None:
            helper.end()
        span, self._around_since = self._tools.pop(event.call_id)
        self._spans.put_text(span, "gen_ai.tool.call.result", event.text)
        if event.is_error:
            span.set_attribute("error.type", "tool_error")
            span.set_status(StatusCode.ERROR)
        self._around, self._around_until = span, time.time_ns()
        span.end(self._around_until)

    def _helper(self, event: HelperEvent) -> None:
        helper = self._helpers.get(event.call_id)
        if helper is None:
            agent = Observed(event.name, event.model, event.provider)
            call = self._tools[event.call_id][0] if event.call_id in self._tools else self._turn
            helper = self._helpers[event.call_id] = _Watch(agent, "", trace.set_span_in_context(call))
        helper.see(event.inner)
        helper.resumed()  # its events come as they happen

    def _read_ledger(self) -> None:
        memory, (version, number) = self._agent.memory, self._ledger
        if memory is None or memory.ledger_version == version:
            return
        rows = memory.ledger(after=number)
        self._agent.told = rows[-1].number if rows else number
        self._ledger = memory.ledger_version, self._agent.told
        self._moved(rows)

    def _moved(self, rows: Sequence[Movement]) -> None:
        since, until = (self._around_since, self._around_until) if self._around else (self._at, None)
        self._spans.moved(rows, self._around or self._turn, since, until, self._turn)

    def _stopped(self, event: Stopped) -> None:
        self._turn.set_attribute("selfpager.stopped", event.reason)
        if event.reason in ("failed", "refused"):
            self._turn.set_attribute("error.type", event.reason)
            self._turn.set_status(StatusCode.ERROR)

    @property
    def _open(self) -> list[Span]:
        """Return the spans inside of the turn that have not ended."""
        chat = [self._chat] if self._chat is not None and self._chat_is_real else []
        return [*chat, *(span for span, _ in self._tools.values())]

    def failed(self, error: BaseException) -> None:
        """Note the error that ended the turn."""
        for span in (*self._open, self._turn):
            self._spans.failed(span, error)

    def end(self) -> None:
        """End all spans that are open."""
        self._read_ledger_at_end()
        for helper in self._helpers.values():
            helper.end()
        for span in self._open:
            span.end()
        attributes: Attributes = {**usage_of(self._usage), "selfpager.replies": self._replies}
        if self._usd:
            attributes["selfpager.cost.usd"] = self._usd
        self._turn.set_attributes(attributes)
        self._turn.end()

    def _read_ledger_at_end(self) -> None:
        memory = self._agent.memory
        if memory is not None and self._turn.is_recording():
            try:
                self._read_ledger()
            except Exception as error:  # noqa: BLE001 - a memory that cannot be read any more is told by its own error
                self._turn.set_attribute("error.type", type(error).__qualname__)
