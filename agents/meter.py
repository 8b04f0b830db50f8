"""What a run has cost, and whether a limit of steps, dollars or minutes holds. Pure but for the clock handed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.events import Stopped
from pager.clock import Clock
from pager.types import Usage

PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def usd(self, usage: Usage) -> float:
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_input_tokens * self.cache_read
            + usage.cache_creation_input_tokens * self.cache_write
        ) / PER


@dataclass(frozen=True, slots=True)
class RunLimits:
    """None: no limit."""

    max_steps: int | None = None
    max_usd: float | None = None
    max_minutes: float | None = None


class Meter:
    """Counts from where it is told a run began, so that a resumed run does not begin again at zero."""

    def __init__(self, clock: Clock, limits: RunLimits, prices: Prices | None) -> None:
        self._clock = clock
        self._limits = limits
        self._prices = prices
        self.steps = 0
        self.usd = 0.0
        self.tokens = 0
        self._spent_seconds = 0.0
        self._since = clock.now()

    def start(self, *, steps: int = 0, usd: float = 0.0, seconds: float = 0.0) -> None:
        self.steps, self.usd, self._spent_seconds = steps, usd, seconds
        self._since = self._clock.now()

    @property
    def seconds(self) -> float:
        now: datetime = self._clock.now()
        return self._spent_seconds + (now - self._since).total_seconds()

    def count(self, message: Mapping[str, Any]) -> tuple[Usage | None, float | None]:
        """A reply: its usage, and its price when prices are known."""
        self.steps += 1
        return self.spend(message)

    def spend(self, message: Mapping[str, Any]) -> tuple[Usage | None, float | None]:
        """A reply that is no step of the agent's."""
        usage = Usage.read(message.get("usage"))
        if usage is None:
            return None, None
        self.tokens += usage.whole_input + usage.output_tokens
        if self._prices is None:
            return usage, None
        usd = self._prices.usd(usage)
        self.usd += usd
        return usage, usd

    def over(self) -> Stopped | None:
        """Why the run has to stop before its next request."""
        limits = self._limits
        if limits.max_steps is not None and self.steps >= limits.max_steps:
            return Stopped("steps", f"max_steps {limits.max_steps} is reached; raise it and resume.")
        if limits.max_usd is not None and self.usd >= limits.max_usd:
            return Stopped("usd", f"${self.usd:.4g} of max_usd ${limits.max_usd:g} is spent; raise it and resume.")
        if limits.max_minutes is not None and self.seconds >= 60 * limits.max_minutes:
            return Stopped("minutes", f"max_minutes {limits.max_minutes:g} is reached; raise it and resume.")
        return None
