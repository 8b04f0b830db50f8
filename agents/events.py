"""The events of a turn, in the order in which they happen. The loop yields them, and the terminal prints them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from pager.types import Movement, Usage

StopReason = Literal[
    "answered", "done", "failed", "steps", "repeated", "usd", "minutes", "approval", "cancelled", "cut", "refused"
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


def calls_at_provider(message: Mapping[str, Any]) -> Iterator["ToolStarted | ToolFinished"]:
    """Yield the calls of the provider's own tools in a finished reply, and their results. They have run already."""
    names: dict[str, str] = {}
    for block in message["content"]:
        kind = str(block.get("type"))
        if kind.endswith("_tool_use"):
            names[str(block.get("id"))] = str(block.get("name"))
            yield ToolStarted(str(block.get("id")), str(block.get("name")), dict(block.get("input") or {}))
        elif kind.endswith("_tool_result"):
            call_id, content = str(block.get("tool_use_id")), block.get("content")
            name = names.get(call_id, kind.removesuffix("_tool_result"))
            inner = cast("Mapping[str, Any]", content) if isinstance(content, Mapping) else dict[str, Any]()
            error, found = inner.get("error_code"), cast("list[Any]", content) if isinstance(content, list) else None
            text = error or inner.get("url") or ("done" if found is None else f"{len(found)} results")
            yield ToolFinished(call_id, name, str(text), is_error=bool(error))


Event = Text | Thinking | StreamLost | Replied | ToolStarted | ToolFinished | Paged | Planned | ApprovalNeeded | Stopped
