"""A Messages API that thinks of nothing: one fixed answer, its usage guessed from the length.

A message that begins with "Remember: " is answered with a call of the memory tool that was offered, ours or the
provider's. It runs in a process of its own and tells how much CPU time it took, so that a measurement can leave that
out.

    with QuickServer() as server: server.base_url
"""

import sys
import time
from itertools import count

from agents.testing.messages_server import MessagesServer, Sending, model_record
from pager.types import Json
from tests.bench.figures import Child
from tests.bench.peers.lines import MARK
from tests.bench.texts import CHARACTERS_PER_TOKEN, characters

ANSWER = (
    "That sounds like a good plan. The train at nine gets you there before noon, and the hotel keeps a room until "
    "six. Shall I also look for a way back on Sunday evening?"
)


class Quick:
    def __init__(self) -> None:
        self._numbers = count(1)

    def create(self, params: Json) -> Sending:
        number = next(self._numbers)
        call = _call(params, number)
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": params["model"]}
        usage = {"input_tokens": self.count_tokens(params), "output_tokens": 40}
        stop_reason = "tool_use" if call else "end_turn"
        content = [call or {"type": "text", "text": ANSWER}]
        ending = {"stop_reason": stop_reason, "stop_sequence": None, "usage": usage}
        return {**message, "content": content, **ending}, None

    def count_tokens(self, params: Json) -> int:
        parts = [params.get("tools"), params.get("system"), params["messages"]]
        return int(characters(parts) / CHARACTERS_PER_TOKEN)

    def model(self, model_id: str) -> Json:
        return model_record(model_id, max_input_tokens=200_000)


def _call(params: Json, number: int) -> Json | None:
    """Keep what the last message says, when it asks for that."""
    content = params["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[0].get("text", "")
    if not text.startswith(MARK):
        return None
    inputs = {
        "archive": {"text": text},
        "memory": {"command": "create", "path": f"/memories/note_{number}.md", "file_text": text},
    }
    offered = {tool["name"] for tool in params.get("tools") or []}
    for name, given in inputs.items():
        if name in offered:
            return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
    return None


class QuickServer(Child):
    def __init__(self) -> None:
        super().__init__("-m", __name__)
        self.base_url = self.line()

    def spent(self) -> float:
        """Return the seconds of CPU time that it has taken since it began."""
        return float(self.ask())


if __name__ == "__main__":
    with MessagesServer(Quick()) as server:
        print(server.base_url, flush=True)
        for _ in sys.stdin:
            print(time.process_time(), flush=True)
