"""Figures for Prometheus, at /metrics. No label names an agent or a tenant: their number has no limit."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from agents.serve.errors import ApiError
from pager.types import Json

REQUEST_SECONDS = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300)
KINDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Metrics:
    """Counts requests, turns and tokens. Without prometheus-client nothing is counted."""

    def __init__(self, figures: Callable[[], Mapping[str, int]]) -> None:
        self._made: Any = None
        if find_spec("prometheus_client") is None:
            return
        import prometheus_client as prometheus

        registry = self._made = prometheus.CollectorRegistry()
        labels = ["method", "route", "status"]
        name = "selfpager_request_seconds"
        self._requests = prometheus.Histogram(
            name, "Requests, until their answer ends.", labels, registry=registry, buckets=REQUEST_SECONDS
        )
        self._turns = prometheus.Counter("selfpager_turns", "Turns by how they ended.", ["stopped"], registry=registry)
        self._tokens = prometheus.Counter("selfpager_tokens", "Tokens of turns.", ["kind"], registry=registry)
        for figure, text in (
            ("open", "Agents that are open."), ("running", "Agents at work."), ("waiting", "Requests in line."),
        ):  # fmt: skip
            gauge = prometheus.Gauge(f"selfpager_agents_{figure}", text, registry=registry)
            gauge.set_function(lambda figure=figure: figures()[figure])

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        if self._made:
            self._requests.labels(method, route, str(status)).observe(seconds)

    def turn(self, stopped: str, usage: Json) -> None:
        """Count a turn by how it stopped, and its tokens."""
        if self._made:
            self._turns.labels(stopped).inc()
            for kind in KINDS:
                self._tokens.labels(kind).inc(usage[kind])

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them. Raises ApiError (501) without prometheus-client."""
        if not self._made:
            advice = "pip install 'selfpager[serve]'"
            raise ApiError(501, "not_installed", "figures need the package prometheus-client.", advice)
        import prometheus_client as prometheus

        return prometheus.generate_latest(self._made)
