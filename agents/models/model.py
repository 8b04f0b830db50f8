"""The protocol `Model`, a finished reply, and the errors of a request.

`stream` yields pieces as they come and returns the finished reply as a dict in wire format. Whatever is not a finished
reply is an exception and leaves no trace.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from agents.events import Text, Thinking
from pager.errors import PagerError
from pager.types import Json


@dataclass(frozen=True, slots=True)
class FinishedReply:
    """A reply in wire format, and the places (0 is the first) of its calls whose input was not valid JSON. Their ids
    may be missing or given twice."""

    message: Json
    malformed_calls: tuple[int, ...] = ()


class Model(Protocol):
    """Whatever answers requests."""

    name: str  # its id, under which its tokenizer's ratios are stored

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        """Send a request and yield its reply as it comes."""
        ...

    def count_tokens(self, params: Json) -> int | None:
        """Return how many tokens the provider counts in a request, or None if it counts none."""
        ...

    def max_input_tokens(self) -> int | None:
        """Return the window from the provider's record of the model, or None if there is no record."""
        ...

    def close(self) -> None:
        """Release what it holds, such as connections."""
        ...


class ModelError(PagerError):
    """The model did not give a usable reply."""


class ModelRefusedError(ModelError):
    """The request was refused and sending it again would not help."""


class ModelUnavailableError(ModelError):
    """The provider cannot be reached or is overloaded; the same request may succeed later."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class UnreadableReplyError(ModelError):
    """The reply makes no sense; the model is asked again, a few times."""


class PromptTooLongError(ModelError):
    """The provider says that the prompt does not fit its window."""
