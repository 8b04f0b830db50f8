"""The events of a turn, in the order in which they happen. The loop yields them, and the terminal prints them."""

from dataclasses import dataclass
from typing import Any, Literal

from pager.types import Movement, Usage

StopReason = Literal[
    "answered", "done", "steps", "repeated", "usd", "minutes", "approval", "cancelled", "cut", "refused"
]


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer, as it is streamed."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A piece of the model's thinking, as it is streamed."""

    text: str


@dataclass(frozen=True, slots=True)
class StreamLost:
    """The text streamed since the last reply is void: the request is repeated."""

    reason: str
    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Replied:
    """A reply is on disk, with what it cost."""

    step: str
    usage: Usage | None
    usd: float | None
    window_tokens: int
    usable_tokens: int


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call is about to run."""

    call_id: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A result is on disk."""

    call_id: str
    name: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Paged:
    """Something moved between the tiers."""

    movement: Movement


@dataclass(frozen=True, slots=True)
class ApprovalNeeded:
    """A call waits for a person; it was not run."""

    call_id: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The loop returned; `reason` says why, `text` what to do when it is not simply answered."""

    reason: StopReason
    text: str = ""


Event = Text | Thinking | StreamLost | Replied | ToolStarted | ToolFinished | Paged | ApprovalNeeded | Stopped
