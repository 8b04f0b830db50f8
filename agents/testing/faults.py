"""Faults that a test scripts: HTTP errors, and replies that break on their way.

A fault in the middle of a reply breaks the reply that is given with it.
"""

from dataclasses import dataclass

from agents.models.replies import Reply
from agents.testing.messages_server import Break
from agents.testing.wire import ApiError
from pager.types import Json


@dataclass(frozen=True, slots=True)
class Fault:
    """An HTTP error instead of a reply (`status`), or a reply that breaks on its way (`broken`)."""

    status: int = 0
    message: str = ""
    retry_after: float | None = None
    broken: Break | None = None
    reply: Reply | None = None

    def error(self) -> ApiError:
        """Return the HTTP error."""
        headers = {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}
        return ApiError(self.status, self.message, headers=headers)


def http_error(status: int, message: str = "", *, retry_after: float | None = None) -> Fault:
    """Return an HTTP error such as 429, 500 or 529. A client may ask again after `retry_after` seconds."""
    return Fault(status=status, message=message or f"a scripted {status}", retry_after=retry_after)


def too_long(tokens: int = 210_000, limit: int = 200_000) -> Fault:
    """Return the provider's refusal of a prompt that does not fit the window."""
    return Fault(status=400, message=f"prompt is too long: {tokens} tokens > {limit} maximum")


def disconnect(*blocks: str | Json, after: float = 0.5) -> Fault:
    """Lose the connection behind this share of the reply's events. At 0 nothing is answered."""
    return _breaking(Break("disconnect", after), blocks)


def truncate(*blocks: str | Json, after: float = 0.5) -> Fault:
    """End the stream normally, but without its last events."""
    return _breaking(Break("truncate", after), blocks)


def stall(*blocks: str | Json, after: float = 0.5) -> Fault:
    """Send nothing more and keep the connection, until the client's own timeout."""
    return _breaking(Break("stall", after), blocks)


def stream_error(*blocks: str | Json, status: int = 529, after: float = 0.5) -> Fault:
    """Send an error event in the middle of the stream."""
    return _breaking(Break("error", after, ApiError(status, "Overloaded")), blocks)


def _breaking(broken: Break, blocks: tuple[str | Json, ...]) -> Fault:
    return Fault(broken=broken, reply=Reply(*blocks) if blocks else None)
