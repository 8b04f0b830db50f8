"""A rule-based stand-in for a model, which is not a language model, behind the Messages API on a loopback port.

    >>> from agents.rehearsal import Rehearsal, call
    >>> with Rehearsal() as rehearsal:
    ...     rehearsal.script(call("archive", text="prefers window seats"), "Noted.")
    ...     client = anthropic.Anthropic(base_url=rehearsal.base_url, api_key="none")

Reading on: `rules` decides what it says, `script` is how a test decides instead, `server` joins them, `serving` is the
HTTP around, `wire` the format, `usage` the counting. None of it knows a provider's SDK.
"""

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
