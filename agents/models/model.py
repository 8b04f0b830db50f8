"""The protocol `Model`, a finished reply, and the errors of a request.

A model of your own inherits from `Model` and has a `name` and `stream`; docs/agents.md has an example.
Requests and replies are those of the Messages API, as dicts. Whatever is not a finished reply is an exception and
leaves no trace.
"""

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from agents.events import Text, Thinking
from pager.errors import PagerError
from pager.types import Json


@dataclass(frozen=True, slots=True)
class FinishedReply:
    """A reply, and the places (0 is the first) of its calls whose input was not valid JSON.

    `message` has `content` (blocks: {"type": "text", "text": ...} or {"type": "tool_use", "id": ..., "name": ...,
    "input": {...}}) and a `stop_reason` (end_turn, tool_use, max_tokens, refusal, ...). With `usage` (input_tokens,
    output_tokens, ...) the sizes of prompts are learned and prices counted. Ids may be missing or given twice.
    """

    message: Json
    malformed_calls: tuple[int, ...] = ()


class Model(Protocol):
    """Whatever answers requests. Threads of several agents may call one model at once."""

    name: str  # its id, under which its tokenizer's ratios are stored

    @abstractmethod
    def stream(self, params: Json) -> Generator[Text | Thinking, None, FinishedReply]:
        """Answer a request: yield pieces of the reply as they come, for whoever watches, and return all of it.

        `params` has `max_tokens`, `system` and `messages`, whose content is always a list of blocks, and if there are
        tools `tools`, and `tool_choice` when none may be called. Raise ModelUnavailableError to be asked again after a
        pause, UnreadableReplyError to be asked again at once, PromptTooLongError for a smaller request. After any
        other exception the turn stays open and can be resumed.
        """
        ...

    def count_tokens(self, params: Json) -> int | None:
        """Return how many tokens the provider counts in a request, or None if it counts none."""
        return None

    def max_input_tokens(self) -> int | None:
        """Return the window from the provider's record of the model, or None if there is no record."""
        return None

    def problem(self) -> str:
        """Return why no request can succeed, as far as that shows without asking the server; else an empty text."""
        return ""

    def unreachable(self) -> str:
        """Ask the server, which may take seconds. Return why it will not answer; an empty text if nothing says so."""
        return ""

    def close(self) -> None:
        """Release what it holds, such as connections."""


class ModelError(PagerError):
    """The model did not give a usable reply."""


class ModelRefusedError(ModelError):
    """The request was refused and sending it again would not help."""


class MediaRefusedError(ModelRefusedError):
    """The provider refuses an image or a document in the request."""


class ModelUnavailableError(ModelError):
    """The provider cannot be reached or is overloaded; the same request may succeed later."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class UnreadableReplyError(ModelError):
    """The reply makes no sense; the model is asked again, a few times."""


class PromptTooLongError(ModelError):
    """The provider says that the prompt does not fit its window."""
