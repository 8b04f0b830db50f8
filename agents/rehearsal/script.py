"""What a test makes the stand-in say: replies, calls, odd stop reasons, and everything that can go wrong.

    rehearsal.script(
        call("archive", text="prefers window seats", key="seat"),      # a tool call
        "Noted.",                                                      # a text
        Reply(thinking("hm"), "Well", stop_reason="max_tokens"),       # several blocks, any stop reason
        http_error(529), http_error(429, retry_after=0.01), too_long(),
        disconnect("These words arrive, and"), truncate("..."), stall("..."), stream_error(),
        lambda request: f"{len(request['messages'])} messages",        # what a function says (None: the rules)
    )

A fault in the middle of a reply breaks the reply that is given with it, or the one that the rules would give.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.rehearsal.serving import Break
from agents.rehearsal.wire import RAW_JSON, ApiError, Json

STOP_REASONS = (
    "end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded",
)  # fmt: skip


def call(tool: str, /, **arguments: Any) -> Json:
    """A call of a tool. It gets an id when it is said."""
    return {"type": "tool_use", "name": tool, "input": arguments}


def broken_call(tool: str, raw_json: str) -> Json:
    """A call whose arguments are streamed as this text, which need not be JSON."""
    return {"type": "tool_use", "name": tool, "input": {}, RAW_JSON: raw_json}


def thinking(text: str = "") -> Json:
    return {"type": "thinking", "thinking": text, "signature": "cmVoZWFyc2Fs"}


@dataclass(frozen=True, slots=True, init=False)
class Reply:
    """Blocks in order (a string is a text block), and why the model stopped. `usage` overrides what is counted."""

    blocks: tuple[Json, ...]
    stop_reason: str
    stop_sequence: str | None
    usage: Json | None

    def __init__(
        self, *blocks: str | Json, stop_reason: str = "", stop_sequence: str | None = None, usage: Json | None = None
    ) -> None:
        said = tuple({"type": "text", "text": each} if isinstance(each, str) else each for each in blocks)
        calls = any(block["type"] == "tool_use" for block in said)
        reason = stop_reason or ("tool_use" if calls else "end_turn")
        if reason not in STOP_REASONS:
            raise ValueError(f"no reply stops for {reason!r}; there are {', '.join(STOP_REASONS)}.")
        for name, value in (("blocks", said), ("stop_reason", reason)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "stop_sequence", stop_sequence)
        object.__setattr__(self, "usage", usage)


@dataclass(frozen=True, slots=True)
class Fault:
    """Instead of a reply an HTTP error (`status`), or a reply that breaks on its way (`broken`)."""

    status: int = 0
    message: str = ""
    retry_after: float | None = None
    broken: Break | None = None
    reply: Reply | None = None

    def error(self) -> ApiError:
        headers = {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}
        return ApiError(self.status, self.message, headers=headers)


def http_error(status: int, message: str = "", *, retry_after: float | None = None) -> Fault:
    """429, 500, 529 and their like. The agent asks again after `retry_after` seconds (or parts of one), or more."""
    return Fault(status=status, message=message or f"a scripted {status}", retry_after=retry_after)


def too_long(tokens: int = 210_000, limit: int = 200_000) -> Fault:
    return Fault(status=400, message=f"prompt is too long: {tokens} tokens > {limit} maximum")


def disconnect(*blocks: str | Json | Reply, after: float = 0.5) -> Fault:
    """The connection is lost behind this share of the reply's events; at 0 before any answer."""
    return Fault(broken=Break("disconnect", after), reply=_reply(blocks))


def truncate(*blocks: str | Json | Reply, after: float = 0.5) -> Fault:
    """The stream ends like any other, without its last events."""
    return Fault(broken=Break("truncate", after), reply=_reply(blocks))


def stall(*blocks: str | Json | Reply, after: float = 0.5) -> Fault:
    """Nothing more comes, and the connection stays: until the client's own timeout."""
    return Fault(broken=Break("stall", after), reply=_reply(blocks))


def stream_error(*blocks: str | Json | Reply, status: int = 529, after: float = 0.5) -> Fault:
    """An error event in the middle of the stream."""
    return Fault(broken=Break("error", after, ApiError(status, "Overloaded")), reply=_reply(blocks))


def _reply(blocks: tuple[str | Json | Reply, ...]) -> Reply | None:
    if len(blocks) == 1 and isinstance(blocks[0], Reply):
        return blocks[0]
    parts = [block for block in blocks if not isinstance(block, Reply)]
    return Reply(*parts) if parts else None


Line = str | Json | Reply | Fault
Said = Line | Callable[[Json], Line | None]


class Script:
    """Lines in order, and after them what a function says. None is for the rules to answer."""

    def __init__(self) -> None:
        self._lines: deque[Said] = deque()
        self.always: Callable[[Json], Line | None] | None = None

    @property
    def left(self) -> int:
        return len(self._lines)

    def add(self, *lines: Said) -> None:
        for line in lines:
            if not callable(line) and type(line) not in {str, dict, Reply, Fault}:
                raise TypeError(
                    f"{line!r} is no line of a script; say a text, a block, a Reply, a fault or a function."
                )
        self._lines.extend(lines)

    def next(self, params: Json) -> Reply | Fault | None:
        line = self._lines.popleft() if self._lines else self.always
        if callable(line):
            line = line(params)
        return Reply(line) if isinstance(line, (str, dict)) else line
