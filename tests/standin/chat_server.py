"""The stand-in for Chat Completions over real HTTP, on a loopback port.

    with ChatServer(ChatStandin(limit_tokens=20_000)) as server:
        model = OpenAIModel("m", base_url=server.url)
        server.script(Reply("Hello."), http_error(529), [{"choices": []}])

It gives the scripted lines in order: replies, faults, or chunks that are sent as they are. Then it says "ok".
"""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from typing import Any

from agents.models.replies import Reply
from agents.testing.faults import Fault
from agents.testing.loopback import LoopbackHandler, LoopbackServer
from tests.standin.chat import ChatStandin
from tests.standin.errors import Rejected

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"


class ChatServer(LoopbackServer):
    """`rejected` are the refusals that no client should ever get. `models` is what GET /v1/models lists."""

    def __init__(self, api: ChatStandin, *, models: list[Json] | None = None) -> None:
        self.api = api
        self.models = models or []
        self.asked: list[Json] = []  # every request's body
        self.rejected: list[str] = []
        self.unsaid: deque[Reply | Fault | list[Json]] = deque()
        super().__init__(partial(_Handler, self))

    @property
    def url(self) -> str:
        return f"{self.base_url}/v1"

    def script(self, *lines: Reply | Fault | list[Json] | str) -> None:
        self.unsaid.extend(Reply(line) if isinstance(line, str) else line for line in lines)


class _Handler(LoopbackHandler):
    def __init__(self, server: ChatServer, *arguments: Any) -> None:
        self._server = server
        super().__init__(*arguments)

    def answer(self, method: str) -> None:
        if method == "GET":
            return self._send(200, {"object": "list", "data": self._server.models})
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._server.asked.append(body)
        line = self._server.unsaid.popleft() if self._server.unsaid else Reply("ok")
        if isinstance(line, Fault) and line.kind == "refuse":
            error = {"message": line.message, "type": line.error().type, "code": None}
            return self._send(line.status, {"error": error}, line.error().headers)
        try:
            said = line.reply if isinstance(line, Fault) else line
            chunks = said if isinstance(said, list) else self._server.api.create(body, said)
        except Rejected as error:
            self._server.rejected.append(error.message)
            self._server.unsaid.appendleft(line)
            return self._send(
                error.status, {"error": {"message": error.message, "type": error.type, "code": error.code}}
            )
        return self._stream(chunks, line if isinstance(line, Fault) else None)

    def _send(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        self.send_whole(status, "application/json", json.dumps(body).encode(), headers or {})

    def _stream(self, chunks: list[Json], fault: Fault | None) -> None:
        sent = chunks[: fault.sent(len(chunks))] if fault else chunks
        if fault and fault.kind == "error":
            sent = [*sent, {"error": {"message": fault.message, "code": fault.status}}]
        events = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in sent]
        self.send_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for event in [*events, *([] if fault else [DONE]), *([] if fault and fault.ends_early else [b""])]:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        self.close_connection = bool(fault and fault.ends_early)
