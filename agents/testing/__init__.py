"""Test your own agents without a model, a key or a network. For users' tests, and for this project's.

`Reply` and `call` also serve the functions of `provider: scripted`. The pytest fixture `scripted` (see `fixture`) is a
`ScriptedServer`: the Messages API on a loopback port, so a test runs the real SDK over real HTTP. The other names are
faults that it can be told to make. `messages_server` is the HTTP around any answers, `wire` the
format, `faults` the faults.

Importing this loads nothing else until a name is used: pytest imports it at every start, for the fixture.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.models.replies import Reply, broken_call, call, thinking
    from agents.testing.faults import Fault, disconnect, http_error, stall, stream_error, too_long, truncate
    from agents.testing.scripted_server import ScriptedServer

__all__ = [
    "Fault",
    "Reply",
    "ScriptedServer",
    "broken_call",
    "call",
    "disconnect",
    "http_error",
    "stall",
    "stream_error",
    "thinking",
    "too_long",
    "truncate",
]

_MODULES = ("models.replies", "testing.faults", "testing.scripted_server")


def __getattr__(name: str) -> Any:
    """Load the module that has the name, at its first use."""
    for module in _MODULES if name in __all__ else ():
        found = getattr(import_module(f"agents.{module}"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'agents.testing' has no attribute {name!r}")
