"""The parts of all spans: whose they are, movements of the ledger, and texts if they are asked for."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, StatusCode

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


@dataclass(slots=True)
class Observed:
    """The agent that is observed, and the attributes of all of its spans."""

    name: str
    model: str
    provider: str
    memory: Memory | None = None  # without one, as of a helper, memory operations are told by its events
    told: int = -1  # the newest row of the ledger that is in a span; -1: none so far

    def attributes(self, operation: str) -> Attributes:
        """Return the attributes that tell whose operation this is."""
        return {
            "gen_ai.operation.name": operation, "gen_ai.provider.name": PROVIDERS.get(self.provider, self.provider),
            "gen_ai.agent.name": self.name, "gen_ai.agent.id": self.name, "gen_ai.conversation.id": self.name,
            "gen_ai.request.model": self.model,
        }  # fmt: skip


class Spans:
    """Makes the spans of one agent."""

    def __init__(self, agent: Observed) -> None:
        self._agent = agent
        self._tracer = trace.get_tracer(SCOPE)
        self._captures = os.environ.get(CONTENT, "").lower() in WITH_CONTENT

    def start(
        self, name: str, operation: str, parent: context.Context, kind: SpanKind, at: int | None = None,
        more: Attributes | None = None,
    ) -> Span:  # fmt: skip
        """Start a span, now or at a moment."""
        attributes = {**self._agent.attributes(operation), **(more or {})}
        return self._tracer.start_span(name, parent, kind, attributes, start_time=at)

    def slept(self, memory: Memory, span: Span) -> None:
        """Tell of sleeps that a program or a person has decided since the last span, as events of this one."""
        since, newest = self._agent.told, memory.ledger(limit=1)
        self._agent.told = newest[-1].number if newest else 0
        for row in memory.ledger(after=since, events=["sleep"]) if since >= 0 else ():
            span.add_event("selfpager.sleep", self._about(row), int(row.at.timestamp() * 1e9))

    def moved(self, rows: Sequence[Movement], parent: Span, since: int, until: int | None, root: Span) -> None:
        """Tell of movements: what changed or asked the memory as spans below `parent`, the rest as events of `root`."""
        here = trace.set_span_in_context(parent)
        for row in rows:
            operation = OPERATIONS.get(row.event)
            if operation is None:
                root.add_event(f"selfpager.{row.event}", self._about(row))
                continue
            found = _found(row)
            more = self._about(row) | {"gen_ai.memory.store.id": self._agent.name, "gen_ai.provider.name": SCOPE}
            more |= {"gen_ai.memory.record.count": 1 if found is None else len(found)}
            if found is None and (record := row.page_id or row.detail.get("block")):
                more["gen_ai.memory.record.id"] = str(record)
            elif found:
                more["selfpager.page.ids"] = found
            span = self.start(f"{operation} {self._agent.name}", operation, here, SpanKind.INTERNAL, since, more)
            if row.event == "search":
                self.put_text(span, "gen_ai.memory.query.text", row.detail.get("query"))
            span.end(until)

    def _about(self, row: Movement) -> Attributes:
        about: Attributes = {"selfpager.event": row.event, "selfpager.actor": row.actor, "selfpager.step": row.step}
        if row.page_id:
            about["selfpager.page.id"] = row.page_id
        if row.tokens:
            about["selfpager.tokens"] = row.tokens
        if row.event in WRITTEN_REASONS or (row.actor.startswith("sleep ") and row.event != "sleep"):  # it quotes keys
            return self.with_texts(about, reason=row.reason)
        return {**about, "selfpager.reason": row.reason} if row.reason else about

    def with_texts(self, attributes: Attributes, **texts: str) -> Attributes:
        """Return attributes, with the texts if they are asked for."""
        return attributes | ({f"selfpager.{name}": text for name, text in texts.items()} if self._captures else {})

    def put_text(self, span: Span, name: str, content: Any) -> None:
        """Set an attribute that is a text, if texts are asked for."""
        if self._captures and content is not None:
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
            span.set_attribute(name, text)

    def failed(self, span: Span, error: BaseException) -> None:
        """Note an error in a span. Its text may quote what was said."""
        span.set_attribute("error.type", type(error).__qualname__)
        span.set_status(StatusCode.ERROR, str(error) if self._captures else None)


def usage_of(usage: Usage) -> Attributes:
    """Return the tokens of a request and its reply."""
    return {
        "gen_ai.usage.input_tokens": usage.whole_input, "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_creation_input_tokens,
    }  # fmt: skip


def message_of(role: str, text: str) -> list[Mapping[str, Any]]:
    """Return a message as the conventions write one."""
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def _found(row: Movement) -> list[str] | None:
    """Return the pages that a search found; None for what is no search."""
    if row.event != "search":
        return None
    return [str(each[0]) for each in row.detail.get("found") or ()]
