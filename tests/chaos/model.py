"""The played model, in a process of its own: `with PlayedModel() as model: model.base_url`."""

from __future__ import annotations

import sys
import time
from itertools import count
from random import Random

from agents.testing.messages_server import MessagesServer, Sending, model_record
from pager.types import Json
from tests.bench.figures import Child
from tests.chaos.script import reply

SECONDS = 0.05  # at most, for a reply: a worker may die meanwhile
CHARACTERS_PER_TOKEN = 4


class Played:
    def __init__(self) -> None:
        self._numbers = count(1)
        self._random = Random(1)

    def create(self, params: Json) -> Sending:
        time.sleep(self._random.uniform(0, SECONDS))
        content = reply(params["messages"])
        usage = {"input_tokens": self.count_tokens(params), "output_tokens": 20}
        stop_reason = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
        number = next(self._numbers)
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": params["model"]}
        ending = {"stop_reason": stop_reason, "stop_sequence": None, "usage": usage}
        return {**message, "content": content, **ending}, None

    def count_tokens(self, params: Json) -> int:
        return len(str([params.get("tools"), params.get("system"), params["messages"]])) // CHARACTERS_PER_TOKEN

    def model(self, model_id: str) -> Json:
        return model_record(model_id, max_input_tokens=200_000)


class PlayedModel(Child):
    def __init__(self) -> None:
        super().__init__("-m", __name__)
        self.base_url = self.line()


if __name__ == "__main__":
    with MessagesServer(Played()) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()
