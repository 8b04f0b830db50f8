"""One agent in a few figures, for a list of all agents of a home."""

from dataclasses import dataclass
from datetime import datetime

from agents.explain import AnyMemory
from agents.explain.costs import load_prices
from pager.types import Movement


@dataclass(frozen=True, slots=True)
class AgentFigures:
    """An agent's window, memory and costs. `last_at` is when its newest step was written, `usd` None without prices,
    `last_error` the newest error in its ledger, or the newest call that was cut off. `approvals` of its open calls wait
    for a person."""

    model: str
    used_tokens: int
    usable_tokens: int | None
    requests: int
    steps: int
    facts: int
    open_calls: int
    approvals: int
    last_at: datetime | None
    tokens: int
    usd: float | None
    last_error: Movement | None


def figures(reader: AnyMemory) -> AgentFigures:
    """Return the figures of an agent. They cost the same however old it is, but for the sum of its usage."""
    with reader.read_snapshot():
        inspect, window = reader.inspect, reader.inspect.window()
        steps, usage, prices = inspect.steps(0, 1), inspect.usage(), load_prices(reader)
        calls = reader.open_calls
        errors = reader.ledger(events=["error", "interrupted"], limit=1)
        return AgentFigures(
            model=window.model, used_tokens=window.used_tokens, usable_tokens=window.usable_tokens,
            requests=inspect.requests(0, 0).total, steps=steps.total, facts=inspect.fact_counts().current,
            open_calls=len(calls), approvals=sum(call.awaits_approval for call in calls),
            last_at=steps.rows[0].at if steps.rows else None,
            tokens=usage.whole_input + usage.output_tokens, usd=prices.usd(usage) if prices else None,
            last_error=errors[0] if errors else None,
        )  # fmt: skip
