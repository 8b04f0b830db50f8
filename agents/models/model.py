"""The seam to a model: one streamed request, and what can go wrong with it.

A model is anything with `stream` and `count_tokens`. `stream` yields pieces as they come and returns the finished
reply as a dict in wire format; whatever is not a finished reply is an exception and leaves no trace.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

from agents.events import Text, Thinking
from pager.errors import PagerError

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FinishedReply:
    """A reply in wire format, and which of its calls (0 is the first) had an input that was not valid JSON.

    They are known by their place: ids may be missing, or given twice. They are answered with an error.
    """

    message: Json
    malformed_calls: tuple[int, ...] = ()


class Model(Protocol):
    @property
    def name(self) -> str:
        """The model's id, under which its tokenizer's ratios are kept."""
        ...

    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]: ...

    def count_tokens(self, params: Json) -> int | None:
        """What the provider counts for a request; None where it does not."""
        ...

    def max_input_tokens(self) -> int | None:
        """The window, from the provider's record of the model; None where there is none."""
        ...

    def close(self) -> None:
        """Give back what it holds, such as connections."""
        ...


class ModelError(PagerError):
    """The request was refused and sending it again would not help."""


class ModelUnavailableError(PagerError):
    """The provider cannot be reached or is overloaded; the same request may succeed later."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class UnreadableReplyError(PagerError):
    """The reply makes no sense; the model is asked again, a few times."""


class PromptTooLongError(PagerError):
    """The provider says that the prompt does not fit its window."""
