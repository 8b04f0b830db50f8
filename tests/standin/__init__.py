"""A strict stand-in for the Messages API. Every request that a test renders goes through it.

    standin = Standin(limit_tokens=60_000)
    message = standin.create(params, Reply(thinking("hm"), call("archive", {"text": "..."})))

It raises `Rejected` where the real one answers 400, counts with a tokenizer that nobody else has, binds thinking
to everything before it, and bills as the prompt cache would. `GrowthWatch` is law 3 as a witness.
"""

from __future__ import annotations

from tests.standin.api import Standin
from tests.standin.errors import Rejected
from tests.standin.growth import GrowthWatch
from tests.standin.reply import Reply, call, redacted_thinking, search_result, server_call, thinking

__all__ = [
    "GrowthWatch",
    "Rejected",
    "Reply",
    "Standin",
    "call",
    "redacted_thinking",
    "search_result",
    "server_call",
    "thinking",
]
