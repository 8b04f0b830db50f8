"""A Messages API that thinks of nothing: one fixed answer, its usage guessed from the length.

A message that begins with "Remember: " is answered with a call of the memory tool that was offered, ours or the
provider's. It tells how much of the processor's time it took, so that a measurement can leave that out. For the same
reason it runs in a process of its own.

    with QuickServer() as server: server.base_url
"""

from __future__ import annotations

import time
from itertools import count
from typing import Any

from agents.testing.messages_server import Sending, model_record
from agents.testing.wire import ApiError
from pager.types import Json
from tests.bench.peers.lines import MARK
from tests.standin.process import ServerProcess

ANSWER = (
    "That sounds like a good plan. The train at nine gets you there before noon, and the hotel keeps a room until "
    "six. Shall I also look for a way back on Sunday evening?"
)
CHARACTERS_PER_TOKEN = 4.2


class Quick:
    def __init__(self) -> None:
        self._numbers = count(1)

    def create(self, params: Json) -> Sending:
        usage = {"input_tokens": self.count_tokens(params), "output_tokens": 40}
        number = next(self._numbers)
        call = _call(params, number)
        return Sending(
            {
                "id": f"msg_{number}", "type": "message", "role": "assistant", "model": params["model"],
                "content": [call or {"type": "text", "text": ANSWER}],
                "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None, "usage": usage,
            }
        )  # fmt: skip

    def count_tokens(self, params: Json) -> int:
        parts = (params.get("tools") or [], params.get("system") or [], params["messages"])
        return int(sum(map(_characters, parts)) / CHARACTERS_PER_TOKEN)

    def model(self, model_id: str) -> Json:
        return model_record(model_id, max_input_tokens=200_000)

    def control(self, command: str, body: Json) -> Json:
        if command == "spent":
            return {"seconds": time.process_time()}
        raise ApiError(404, f"Not found: POST /control/{command}")


def _call(params: Json, number: int) -> Json | None:
    """A call that keeps what the last message says, when it asks for that."""
    content = params["messages"][-1]["content"]
    said = content if isinstance(content, str) else content[0].get("text", "")
    if not said.startswith(MARK):
        return None
    names = {tool["name"] for tool in params.get("tools") or []}
    if "archive" in names:
        return {"type": "tool_use", "id": f"toolu_{number}", "name": "archive", "input": {"text": said}}
    if "memory" in names:
        given = {"command": "create", "path": f"/memories/note_{number}.md", "file_text": said}
        return {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": given}
    return None


def _characters(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_characters, value.values()))
    if isinstance(value, list):
        return sum(map(_characters, value))
    return len(value) if isinstance(value, str) else 0


class QuickServer(ServerProcess):
    def __init__(self) -> None:
        super().__init__(f"{__name__}:Quick")

    def spent(self) -> float:
        """The seconds of the processor's time that it has taken since it began."""
        return self.control("spent")["seconds"]
