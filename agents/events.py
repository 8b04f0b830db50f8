"""The events of a turn, in the order in which they happen. The loop yields them, and the terminal prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pager.types import Movement, Usage

StopReason = Literal[
    "answered",
    "done",
    "failed",
    "steps",
    "repeated",
    "usd",
    "minutes",
    "approval",
    "calls",
    "cancelled",
    "cut",
    "refused",
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
    stop_sequence: str | None = None  # of those that the request named


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
class Planned:
    """The plan of a task has changed: so many of its items are done, and `current` is the first that is not."""

    done: int
    total: int
    current: str


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
    result: Any = None  # of a task that is done, as JSON


def calls_at_provider(content: Sequence[Mapping[str, Any]]) -> Iterator[ToolStarted | ToolFinished]:
    """Yield the calls of the provider's own tools in a finished reply, and their results. They have run already."""
    names: dict[str, str] = {}
    for block in content:
        kind = str(block.get("type"))
        if kind.endswith("_tool_use"):
            names[str(block.get("id"))] = str(block.get("name"))
            given = block.get("input")
            given = cast("dict[str, Any]", given) if isinstance(given, dict) else {"input": given}
            yield ToolStarted(str(block.get("id")), str(block.get("name")), given)
        elif kind.endswith("_tool_result"):
            call_id, found = str(block.get("tool_use_id")), block.get("content")
            name = names.get(call_id, kind.removesuffix("_tool_result"))
            inner = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else dict[str, Any]()
            results = f"{len(cast('list[Any]', found))} results" if isinstance(found, list) else "done"
            error = inner.get("error_code")
            text = error or inner.get("url") or results
            yield ToolFinished(call_id, name, str(text), is_error=bool(error))


@dataclass(frozen=True, slots=True)
class HelperEvent:
    """Something that happened in a helper, an agent of this `name` and with this model, which answers the call."""

    call_id: str
    name: str
    inner: Event
    model: str
    provider: str


Event = (
    Text | Thinking | StreamLost | Replied | ToolStarted | ToolFinished | Paged | Planned | ApprovalNeeded | HelperEvent
    | Stopped
)  # fmt: skip
