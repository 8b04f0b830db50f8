"""The instruments, by the GenAI conventions where they name one."""

from opentelemetry import metrics

from agents.telemetry.spans import SCOPE, Attributes
from pager.types import Usage


class Metrics:
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
