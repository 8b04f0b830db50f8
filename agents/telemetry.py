"""Spans and metrics of a turn, by OpenTelemetry's GenAI conventions, made from the events that the turn yields.

`Agent` calls `observe` if the program has set up OpenTelemetry. Otherwise this file is not even loaded. It needs
`opentelemetry-api` alone, sends nothing by itself, and changes nothing in the turn.

    invoke_agent desk                    a turn, or a task
      chat claude-sonnet-5               a reply, with its tokens and its cost; attempts that failed are events
      execute_tool search_archive        a call of a tool
        search_memory desk               what the ledger says of the memory: ids of pages, reasons, tokens
      invoke_agent reader                a helper, below its call

Texts are in no span: not what was said, not arguments and results, not queries, not reasons that a person or a model
has written. Set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true to have them.
"""

import json
import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry import context, metrics, trace
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
from pager import Memory
from pager.types import Movement, Usage

SCOPE = "selfpager"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
WITH_CONTENT = frozenset({"true", "1", "span_only", "span_and_event"})
PROVIDERS = {
    "anthropic": "anthropic", "bedrock": "aws.bedrock", "vertex": "gcp.vertex_ai", "foundry": "azure.ai.inference",
    "openai": "openai",
}  # fmt: skip
OPERATIONS = {  # event of the ledger -> what the conventions call it
    "archive": "create_memory", "restore": "create_memory", "repeat": "upsert_memory", "supersede": "update_memory",
    "core": "update_memory", "source": "update_memory", "page_out": "update_memory", "forget": "delete_memory",
    "purge": "delete_memory", "search": "search_memory", "recall": "search_memory", "page_in": "search_memory",
}  # fmt: skip
WRITTEN_REASONS = frozenset({"core", "forget", "error", "interrupted"})  # by a person or a model
Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Observed:
    """The agent that is observed, and the attributes of all of its spans."""

    name: str
    model: str
    provider: str
    memory: Memory | None = None  # without one, as of a helper, memory operations are told by its events

    def attributes(self, operation: str) -> Attributes:
        """Return the attributes that tell whose operation this is."""
        return {
            "gen_ai.operation.name": operation, "gen_ai.provider.name": PROVIDERS.get(self.provider, self.provider),
            "gen_ai.agent.name": self.name, "gen_ai.agent.id": self.name, "gen_ai.conversation.id": self.name,
            "gen_ai.request.model": self.model,
        }  # fmt: skip


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
        self._tracer = trace.get_tracer(SCOPE)
        self._captures = os.environ.get(CONTENT, "").lower() in WITH_CONTENT
        self._metrics = _Metrics()
        self._turn = self._start(f"invoke_agent {agent.name}", "invoke_agent", around, SpanKind.INTERNAL)
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
            newest = agent.memory.ledger(limit=1)
            self._ledger = (agent.memory.ledger_version, newest[-1].number if newest else 0)
        self._content(self._turn, "gen_ai.input.messages", _message("user", said) if said else None)

    def _start(
        self, name: str, operation: str, parent: context.Context, kind: SpanKind, at: int | None = None,
        more: Attributes | None = None,
    ) -> Span:  # fmt: skip
        attributes = {**self._agent.attributes(operation), **(more or {})}
        return self._tracer.start_span(name, parent, kind, attributes, start_time=at)

    def resumed(self) -> None:
        """Take the time: what happens from here to the next event is the agent's."""
        self._at = time.time_ns()
        if not (self._chat_is_real or self._tools):
            here, stream = trace.set_span_in_context(self._turn), {"gen_ai.request.stream": True}
            self._chat = self._start(f"chat {self._agent.model}", "chat", here, SpanKind.CLIENT, self._at, stream)
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
                self._chat.add_event("selfpager.retry", self._with(attributes, reason=event.reason))
            case Replied():
                self._replied(event, self._chat)
            case _:
                pass

    def _replied(self, event: Replied, span: Span) -> None:
        now = time.time_ns()
        usage = event.usage or Usage()
        attributes = _usage(usage) if event.usage else {}
        attributes |= {"selfpager.page.id": event.step, "selfpager.window.tokens": event.window_tokens}
        attributes["selfpager.window.usable_tokens"] = event.usable_tokens
        if event.usd is not None:
            attributes["selfpager.cost.usd"] = event.usd
        span.set_attributes(attributes)
        self._content(span, "gen_ai.output.messages", _message("assistant", "".join(self._pieces)))
        span.end(now)
        self._metrics.reply(self._agent.attributes("chat"), (now - self._chat_at) / 1e9, usage, event.usd)
        self._usage, self._usd, self._replies = self._usage + usage, self._usd + (event.usd or 0), self._replies + 1
        self._chat, self._chat_is_real = None, False
        if self._pieces:
            self._content(self._turn, "gen_ai.output.messages", _message("assistant", "".join(self._pieces)))
        self._pieces.clear()

    def _tool_started(self, event: ToolStarted) -> None:
        more: Attributes = {
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.call.id": event.call_id,
            "gen_ai.tool.type": "function",
        }
        here = trace.set_span_in_context(self._turn)
        span = self._start(f"execute_tool {event.name}", "execute_tool", here, SpanKind.INTERNAL, more=more)
        self._content(span, "gen_ai.tool.call.arguments", event.input)
        self._tools[event.call_id] = span, time.time_ns()

    def _tool_finished(self, event: ToolFinished) -> None:
        if event.call_id not in self._tools:  # it was not run: refused, or passed over
            self._tool_started(ToolStarted(event.call_id, event.name, {}))
        if (helper := self._helpers.pop(event.call_id, None)) is not None:
            helper.end()
        span, self._around_since = self._tools.pop(event.call_id)
        self._content(span, "gen_ai.tool.call.result", event.text)
        if event.is_error:
            span.set_attribute("error.type", "tool_error")
            span.set_status(StatusCode.ERROR)
        self._around, self._around_until = span, time.time_ns()
        span.end(self._around_until)

    def _helper(self, event: HelperEvent) -> None:
        helper = self._helpers.get(event.call_id)
        if helper is None:
            agent = Observed(event.name, self._agent.model, self._agent.provider)
            call = self._tools[event.call_id][0] if event.call_id in self._tools else self._turn
            helper = self._helpers[event.call_id] = _Watch(agent, "", trace.set_span_in_context(call))
        helper.see(event.inner)
        helper.resumed()  # its events come as they happen

    def _read_ledger(self) -> None:
        memory, (version, number) = self._agent.memory, self._ledger
        if memory is None or memory.ledger_version == version:
            return
        rows = memory.ledger(after=number)
        self._ledger = memory.ledger_version, rows[-1].number if rows else number
        self._moved(rows)

    def _moved(self, rows: Sequence[Movement]) -> None:
        """Tell of movements: what changed or asked the memory as spans, the rest as events of the turn."""
        for row in rows:
            operation = OPERATIONS.get(row.event)
            if operation is None:
                self._turn.add_event(f"selfpager.{row.event}", self._about(row))
                continue
            parent = self._around or self._turn
            since, until = self._at, None
            if self._around:
                since, until = self._around_since, self._around_until
            found = _found(row)
            more = self._about(row) | {"gen_ai.memory.store.id": self._agent.name, "gen_ai.provider.name": SCOPE}
            more |= {"gen_ai.memory.record.count": 1 if found is None else len(found)}
            if found is None and (record := row.page_id or row.detail.get("block")):
                more["gen_ai.memory.record.id"] = str(record)
            elif found:
                more["selfpager.page.ids"] = found
            here = trace.set_span_in_context(parent)
            span = self._start(f"{operation} {self._agent.name}", operation, here, SpanKind.INTERNAL, since, more)
            if row.event == "search":
                self._content(span, "gen_ai.memory.query.text", row.detail.get("query"))
            span.end(until)

    def _about(self, row: Movement) -> Attributes:
        about: Attributes = {"selfpager.event": row.event, "selfpager.actor": row.actor, "selfpager.step": row.step}
        if row.page_id:
            about["selfpager.page.id"] = row.page_id
        if row.tokens:
            about["selfpager.tokens"] = row.tokens
        if row.event in WRITTEN_REASONS:
            return self._with(about, reason=row.reason)
        return {**about, "selfpager.reason": row.reason} if row.reason else about

    def _with(self, attributes: Attributes, **texts: str) -> Attributes:
        """Return attributes, with the texts if they are asked for."""
        return attributes | ({f"selfpager.{name}": text for name, text in texts.items()} if self._captures else {})

    def _content(self, span: Span, name: str, content: Any) -> None:
        if self._captures and content is not None:
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
            span.set_attribute(name, text)

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
        """Note the error that ended the turn. Its text may quote what was said."""
        for span in (*self._open, self._turn):
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(StatusCode.ERROR, str(error) if self._captures else None)

    def end(self) -> None:
        """End all spans that are open."""
        self._read_ledger_at_end()
        for helper in self._helpers.values():
            helper.end()
        for span in self._open:
            span.end()
        attributes: Attributes = {**_usage(self._usage), "selfpager.replies": self._replies}
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


def _usage(usage: Usage) -> Attributes:
    return {
        "gen_ai.usage.input_tokens": usage.whole_input, "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_creation_input_tokens,
    }  # fmt: skip


def _message(role: str, text: str) -> list[Mapping[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def _found(row: Movement) -> list[str] | None:
    """Return the pages that a search found; None for what is no search."""
    if row.event != "search":
        return None
    return [str(each[0]) for each in row.detail.get("found") or ()]


class _Metrics:
    """The instruments, which a meter gives again for the same name."""

    def __init__(self) -> None:
        meter = metrics.get_meter(SCOPE)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "Time until a reply is on disk."
        )
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of a request or a reply.")
        self._cached = meter.create_counter("selfpager.client.cached_tokens", "{token}", "Tokens read from the cache.")
        self._usd = meter.create_counter(
            "selfpager.client.cost", "{USD}", "Dollars, by the prices of the agent's file."
        )

    def reply(self, about: Attributes, seconds: float, usage: Usage, usd: float | None) -> None:
        """Record a reply."""
        about = {
            name: about[name] for name in ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model")
        }
        self._duration.record(seconds, about)
        self._tokens.record(usage.whole_input, {**about, "gen_ai.token.type": "input"})
        self._tokens.record(usage.output_tokens, {**about, "gen_ai.token.type": "output"})
        self._cached.add(usage.cache_read_input_tokens, about)
        if usd:
            self._usd.add(usd, about)
