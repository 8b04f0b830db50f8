"""How long an outage of the provider is waited out."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """The backoff for outages: growing pauses, until `total_seconds` are used up."""

    total_seconds: float = 30.0
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 300.0
    wait: Callable[[float], object] | None = None  # None: sleep, until `stop`

    def pause(self, attempt: int, waited_seconds: float, requested_seconds: float) -> float | None:
        """Return the next pause in seconds, at least what the provider requested; None if it would be too long."""
        left = self.total_seconds - waited_seconds
        if left <= 0 or requested_seconds > left:
            return None
        backoff = min(self.first_pause_seconds * 2.0 ** min(attempt, 60), self.longest_pause_seconds)
        return min(max(backoff, requested_seconds), left)
