"""A Messages API that answers any number of requests at once, each after so many seconds: `PlayedModel(seconds=1)`.

It runs in a process of its own and tells how much CPU time it took. `QuickServer` answers one request at a time.
"""

import asyncio
import sys
import time

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from agents.httpd import HttpServer
from agents.testing import wire
from tests.bench.figures import Child
from tests.bench.quick_server import ANSWER

MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": ANSWER}], "stop_sequence": None,
    "usage": {"input_tokens": 2000, "output_tokens": 40},
}  # fmt: skip
EVENTS = b"".join(map(wire.encode, wire.events(MESSAGE)))


class PlayedModel(Child):
    def __init__(self, seconds: float) -> None:
        super().__init__("-m", __name__, seconds)
        self.base_url = self.line()

    def spent(self) -> float:
        """Return the seconds of CPU time that it has taken since it began."""
        return float(self.ask().split()[0])

    def asked(self) -> int:
        """Return how many requests it got."""
        return int(self.ask().split()[1])


def app(seconds: float, asked: list[int]) -> Starlette:
    async def answer(request: Request) -> Response:
        await request.body()
        asked[0] += 1
        await asyncio.sleep(seconds)
        return StreamingResponse(iter([EVENTS]), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/messages", answer, methods=["POST"])])


if __name__ == "__main__":
    asked = [0]
    with HttpServer(app(float(sys.argv[1]), asked)) as server:
        print(server.url, flush=True)
        for _ in sys.stdin:
            print(time.process_time(), *asked, flush=True)
