"""Faults that a test scripts: HTTP errors, and replies that break on their way.

A fault in the middle of a reply breaks the reply that is given with it.
"""

from dataclasses import dataclass
from typing import Literal

from agents.models.replies import Reply
from agents.testing.wire import ApiError
from pager.types import Json


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with an answer. refuse answers with an HTTP error instead; every other kind breaks the reply.

    `after` is the share of the reply that arrives; at 0 not even the headers do. disconnect ends the connection then,
    truncate the stream as if it were complete, stall sends nothing more until the client leaves, error an error event.
    """

    kind: Literal["refuse", "disconnect", "truncate", "stall", "error"]
    status: int = 0
    message: str = ""
    retry_after: float | None = None
    after: float = 0.5
    reply: Reply | None = None

    @property
    def ends_early(self) -> bool:
        """Return True if the end of the answer never arrives."""
        return self.kind in {"disconnect", "stall"}

    def error(self) -> ApiError:
        """Return the error of refuse and error."""
        headers = {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}
        return ApiError(self.status, self.message, headers=headers)

    def sent(self, length: int) -> int:
        """Return how many of `length` events or bytes are sent. The last two are always missing."""
        return min(int(self.after * length), max(0, length - 2))


def http_error(status: int, message: str = "", *, retry_after: float | None = None) -> Fault:
    """Return an HTTP error such as 429, 500 or 529. A client may ask again after `retry_after` seconds."""
    return Fault("refuse", status, message or f"a scripted {status}", retry_after)


def too_long(tokens: int = 210_000, limit: int = 200_000) -> Fault:
    """Return the provider's refusal of a prompt that does not fit the window."""
    return Fault("refuse", 400, f"prompt is too long: {tokens} tokens > {limit} maximum")


def disconnect(*blocks: str | Json, after: float = 0.5) -> Fault:
    """Lose the connection behind this share of the reply's events. At 0 nothing is answered."""
    return Fault("disconnect", after=after, reply=_reply(blocks))


def truncate(*blocks: str | Json, after: float = 0.5) -> Fault:
    """End the stream normally, but without its last events."""
    return Fault("truncate", after=after, reply=_reply(blocks))


def stall(*blocks: str | Json, after: float = 0.5) -> Fault:
    """Send nothing more and keep the connection, until the client's own timeout."""
    return Fault("stall", after=after, reply=_reply(blocks))


def stream_error(*blocks: str | Json, status: int = 529, after: float = 0.5) -> Fault:
    """Send an error event in the middle of the stream."""
    return Fault("error", status, "Overloaded", after=after, reply=_reply(blocks))


def _reply(blocks: tuple[str | Json, ...]) -> Reply | None:
    return Reply(*blocks) if blocks else None
