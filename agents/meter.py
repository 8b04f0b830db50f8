"""The meter of a run: its steps, dollars and minutes, and the limits that stop it. Pure but for the clock handed in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.events import Stopped
from pager.clock import Clock
from pager.types import Usage

TOKENS_PER_PRICE = 1_000_000
SEARCHES_PER_PRICE = 1000
TURN_STEPS = 200  # after which a turn stops if nothing else is configured


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per million tokens, and per thousand searches of the provider's own tool."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    web_search: float = 10.0

    def usd(self, usage: Usage) -> float:
        """Return what a request cost."""
        fresh = usage.input_tokens * self.input + usage.output_tokens * self.output
        cached = usage.cache_read_input_tokens * self.cache_read + usage.cache_creation_input_tokens * self.cache_write
        return (fresh + cached) / TOKENS_PER_PRICE + usage.web_search_requests * self.web_search / SEARCHES_PER_PRICE


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits at which a run stops. None is no limit; a turn stops after `TURN_STEPS` all the same."""

    max_steps: int | None = None
    max_usd: float | None = None
    max_minutes: float | None = None

    def __str__(self) -> str:
        named = {"max_steps": self.max_steps, "max_usd": self.max_usd, "max_minutes": self.max_minutes}
        return ", ".join(f"{name} {value:g}" for name, value in named.items() if value is not None)


class Meter:
    """Counts from what a run had already spent at its start, so that a resumed run does not begin at zero.

    The run of a helper is `within` another one: what is left there limits it, too, and what it spends counts there. It
    is `running` until its result is committed, and added up then: a run that is resumed begins with what it had spent.
    """

    def __init__(
        self, clock: Clock, limits: RunLimits, prices: Prices | None, *, within: "Meter | None" = None
    ) -> None:
        self._clock = clock
        self.limits = limits
        self._max_steps: int | None = limits.max_steps
        self._is_task = False
        self._prices = prices
        self._within = within
        self.running: dict[str, Meter] = {}  # the meters of helpers by the calls that they answer
        self.steps = 0
        self.usd = 0.0
        self.tokens = 0
        self.session_tokens, self.session_usd = 0, 0.0  # of all runs since the agent was opened
        self._spent_seconds = 0.0
        self._since = clock.now()

    def start(
        self, *, steps: int = 0, usd: float = 0.0, tokens: int = 0, seconds: float = 0.0, is_task: bool = False
    ) -> None:
        """Begin a turn or a task that has spent this much before. No default stops a task of days."""
        self._max_steps, self._is_task = self.limits.max_steps or (None if is_task else TURN_STEPS), is_task
        self.steps, self.usd, self.tokens, self._spent_seconds = steps, usd, tokens, seconds
        self._since = self._clock.now()
        self.running.clear()

    def add_up(self, call_id: str) -> None:
        """Count what a helper has spent, whose result is committed."""
        if meter := self.running.pop(call_id, None):
            self.steps += meter.steps
            self._add(meter.tokens, meter.usd)

    def _add(self, tokens: int, usd: float) -> None:
        self.tokens, self.session_tokens = self.tokens + tokens, self.session_tokens + tokens
        self.usd, self.session_usd = self.usd + usd, self.session_usd + usd

    @property
    def _spent(self) -> tuple[int, float]:
        """Return the steps and the dollars, with those of helpers that are running."""
        inside = [meter._spent for meter in list(self.running.values())]
        return self.steps + sum(steps for steps, _ in inside), self.usd + sum(usd for _, usd in inside)

    @property
    def has_prices(self) -> bool:
        """Return True if dollars are counted."""
        return self._prices is not None

    @property
    def seconds(self) -> float:
        """Return how long the run has taken."""
        return self._spent_seconds + (self._clock.now() - self._since).total_seconds()

    def count(self, message: Mapping[str, Any]) -> tuple[Usage | None, float | None]:
        """Count a step's reply. Return its usage, and its price if there are prices."""
        self.steps += 1
        return self.spend(message)

    def spend(self, message: Mapping[str, Any]) -> tuple[Usage | None, float | None]:
        """Count a reply that is not a step of the agent's. Return its usage, and its price if there are prices."""
        usage = Usage.read(message.get("usage"))
        if usage is None:
            return None, None
        usd = self._prices.usd(usage) if self._prices else None
        self._add(usage.whole_input + usage.output_tokens, usd or 0.0)
        return usage, usd

    @property
    def ends_a_turn(self) -> bool:
        """Return True if a limit of a turn is reached, or of the one that this helps. A task is resumed instead."""
        if self._within:
            return self._within.ends_a_turn
        return not self._is_task and self.over() is not None

    def over(self) -> Stopped | None:
        """Return why the run has to stop before its next request, or None if no limit is reached."""
        limits, most, (steps, usd) = self.limits, self._max_steps, self._spent
        if most is not None and steps >= most:
            return Stopped("steps", f"max_steps {most} is reached; say how to go on, or raise it and resume.")
        if limits.max_usd is not None and usd >= limits.max_usd:
            spent = f"${usd:.4g} of max_usd ${limits.max_usd:g} is spent after {steps} steps"
            return Stopped("usd", f"{spent}; raise it and resume.")
        if limits.max_minutes is not None and self.seconds >= 60 * limits.max_minutes:
            passed = f"max_minutes {limits.max_minutes:g} is reached after {steps} steps"
            return Stopped("minutes", f"{passed}; raise it and resume.")
        above = self._within.over() if self._within else None
        return Stopped("cancelled", above.text) if above else None  # it goes on when the other run does
