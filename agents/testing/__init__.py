"""Test your own agents without a model, a key or a network. For users' tests, and for this project's.

`Reply` and `call` also serve the functions of `provider: scripted`. The pytest fixture `scripted` (see `fixture`) is a
`ScriptedServer`: the Messages API on a loopback port, so a test runs the real SDK over real HTTP. The other names are
faults that it can be told to make. `messages_server` is the HTTP around any answers, `wire` the
format, `faults` the faults.

Importing this loads nothing else until a name is used: pytest imports it at every start, for the fixture.
"""

from typing import TYPE_CHECKING

from agents.lazy import lazy_names

if TYPE_CHECKING:
    from agents.models.replies import Reply, broken_call, call, thinking
    from agents.testing.faults import Fault, disconnect, http_error, stall, stream_error, too_long, truncate
    from agents.testing.scripted_server import ScriptedServer
    from agents.testing.wire import ApiError

__all__ = [
    "ApiError", "Fault", "Reply", "ScriptedServer", "broken_call", "call", "disconnect", "http_error", "stall",
    "stream_error", "thinking", "too_long", "truncate",
]  # fmt: skip

__getattr__ = lazy_names(
    "agents", __all__, ("models.replies", "testing.faults", "testing.wire", "testing.scripted_server")
)
