"""Spans and metrics of a turn, by OpenTelemetry's GenAI conventions, made from the events that the turn yields.

`Agent` calls `observe` if the program has set up OpenTelemetry. Otherwise this file is not even loaded. It needs
`opentelemetry-api` alone, sends nothing by itself, and changes nothing in the turn.

    invoke_agent desk                    a turn, or a task
      chat claude-sonnet-5               a reply, with its tokens and its cost; attempts that failed are events
      execute_tool search_archive        a call of a tool
        search_memory desk               what the ledger says of the memory: ids of pages, reasons, tokens
      invoke_agent reader                a helper, below its call
    sleep desk                           a sleep: what it proposed, and what its requests cost

turns.py      observe: the spans of a turn or a task, and of its helpers
sleeps.py     observe_sleep: those of a sleep
spans.py      what both are made of: names and attributes, movements of the ledger, texts if they are asked for
metrics.py    the instruments

Texts are in no span: not what was said, not arguments and results, not queries, not reasons that a person or a model
has written. Set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true to have them.
"""

from agents.telemetry.sleeps import observe_sleep
from agents.telemetry.spans import Observed
from agents.telemetry.turns import observe

__all__ = ["Observed", "observe", "observe_sleep"]
