"""The span of a sleep, with its requests, its proposal as events, and what was applied of it."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind

from agents.telemetry.metrics import Metrics
from agents.telemetry.spans import Attributes, Observed, Spans, usage_of
from pager.sleep import Proposal
from pager.types import Usage

Note = Callable[[Usage, float | None], None]


class SleepWatch:
    """What a sleep tells of itself."""

    def __init__(self, agent: Observed, spans: Spans, span: Span) -> None:
        self._agent = agent
        self._spans = spans
        self._span = span
        self._metrics = Metrics()

    @contextmanager
    def request(self, model: str) -> Generator[Note]:
        """Watch one request to a model; what is yielded is given what it cost."""
        here, at, named = trace.set_span_in_context(self._span), time.time_ns(), {"gen_ai.request.model": model}
        chat = self._spans.start(f"chat {model}", "chat", here, SpanKind.CLIENT, at, named)

        def note(usage: Usage, usd: float | None) -> None:
            chat.set_attributes(usage_of(usage) | ({} if usd is None else {"selfpager.cost.usd": usd}))
            self._metrics.reply(self._agent.attributes("chat") | named, (time.time_ns() - at) / 1e9, usage, usd)

        with trace.use_span(chat, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield note
            except BaseException as error:
                self._spans.failed(chat, error)
                raise

    def proposed(self, proposal: Proposal | None) -> Proposal | None:
        """Tell of the proposal, and return it."""
        if proposal is None:
            self._span.set_attribute("selfpager.sleep.edits", 0)
            return None
        spent = {name: proposal.detail[name] for name in ("requests", "tokens") if name in proposal.detail}
        counts = {state: proposal.count(state) for state in ("open", "applied", "stale")}
        told = {"number": proposal.number, "edits": len(proposal.edits), **counts, **spent}
        self._span.set_attributes({f"selfpager.sleep.{name}": value for name, value in told.items()})
        if usd := proposal.detail.get("usd"):
            self._span.set_attribute("selfpager.cost.usd", usd)
        for edit in proposal.edits:
            about: Attributes = {"number": edit.number, "kind": edit.kind, "state": edit.state}
            about = {f"selfpager.sleep.edit.{name}": value for name, value in about.items()}
            about |= {"selfpager.page.ids": list(edit.pages)} if edit.pages else {}
            self._span.add_event("selfpager.sleep.edit", self._spans.with_texts(about, reason=edit.reason))
        return proposal


@contextmanager
def observe_sleep(agent: Observed) -> Generator[SleepWatch]:
    """Make the span of a sleep around what is done inside."""
    spans, memory = Spans(agent), agent.memory
    assert memory is not None
    span, since = spans.start(f"sleep {agent.name}", "sleep", context.get_current(), SpanKind.INTERNAL), time.time_ns()
    before = memory.ledger(limit=1)
    with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield SleepWatch(agent, spans, span)
        except BaseException as error:
            spans.failed(span, error)
            raise
        finally:
            rows = memory.ledger(after=before[-1].number if before else 0)
            own = [row for row in rows if row.actor.startswith("sleep ")]  # a turn may have begun meanwhile
            spans.moved(own, span, since, None, span)
            agent.told = max([agent.told, *(row.number for row in own)])
