"""A rule-based stand-in for a model, which is not a language model, behind the Messages API on a loopback port.

    >>> from agents.rehearsal import Rehearsal, call
    >>> with Rehearsal() as rehearsal:
    ...     rehearsal.script(call("archive", text="prefers window seats"), "Noted.")
    ...     client = anthropic.Anthropic(base_url=rehearsal.base_url, api_key="none")

Reading on: `rules` decides what it says, `script` is how a test decides instead, `server` joins them, `serving` is the
HTTP around, `wire` the format, `usage` the counting. None of it knows a provider's SDK. Importing this loads nothing
else: pytest does so at every start, for the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.rehearsal.script import (
        Fault,
        Reply,
        broken_call,
        call,
        disconnect,
        http_error,
        stall,
        stream_error,
        thinking,
        too_long,
        truncate,
    )
    from agents.rehearsal.server import Rehearsal, shared

__all__ = [
    "Fault",
    "Rehearsal",
    "Reply",
    "broken_call",
    "call",
    "disconnect",
    "http_error",
    "shared",
    "stall",
    "stream_error",
    "thinking",
    "too_long",
    "truncate",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'agents.rehearsal' has no attribute {name!r}")
    from agents.rehearsal import script, server

    return getattr(server if name in {"Rehearsal", "shared"} else script, name)
