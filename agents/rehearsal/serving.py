"""HTTP around anything that answers like the Messages API, on a loopback port, in daemon threads of this process.

A `Service` says what is answered; this file puts it on the wire: POST /v1/messages (streamed or not), POST
/v1/messages/count_tokens, GET /v1/models/{id}, and whatever the service takes under /control/. A `Break` is how an
answer goes wrong on its way. Calls of the service come one after the other.

    with MessagesServer(service) as server:
        client = Anthropic(base_url=server.base_url, api_key="none")
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Literal, Protocol, Self, TypeVar, cast
from urllib.parse import unquote, urlsplit

from agents.logs import log
from agents.rehearsal import wire
from agents.rehearsal.wire import ApiError, Json

Answer = TypeVar("Answer")
LOOPBACK = "127.0.0.1"
POLL_SECONDS = 0.02  # how soon `close` is noticed


@dataclass(frozen=True, slots=True)
class Break:
    """An answer that does not arrive whole: `after` is the share of it that does (0: not even the headers).

    disconnect closes the connection, truncate ends the stream as if it were complete, stall sends nothing more until
    the client goes, error says so inside the stream.
    """

    kind: Literal["disconnect", "truncate", "stall", "error"]
    after: float = 0.5
    error: ApiError | None = None

    def sent(self, length: int) -> int:
        """How many of so many events or bytes are sent; the last two events always belong to what is missing."""
        return min(int(self.after * length), max(0, length - 2))


@dataclass(frozen=True, slots=True)
class Sending:
    """A finished message on its way to the client."""

    message: Json
    broken: Break | None = None


class Service(Protocol):
    """What is answered. Each may raise `ApiError`."""

    def create(self, params: Json) -> Sending: ...

    def count_tokens(self, params: Json) -> int: ...

    def model(self, model_id: str) -> Json:
        """The record of a model, as GET /v1/models/{id} answers it."""
        ...

    def control(self, command: str, body: Json) -> Json:
        """A command from a test, POST /control/{command}."""
        ...


def model_record(model_id: str, *, max_input_tokens: int, max_tokens: int) -> Json:
    return {
        "type": "model",
        "id": model_id,
        "display_name": model_id,
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": max_input_tokens,
        "max_tokens": max_tokens,
    }


class MessagesServer:
    """Listens from its construction on; answers between `start` and `close`. Port 0 lets the system choose."""

    def __init__(self, service: Service, *, port: int = 0) -> None:
        self._listener = _Listener(service, port)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(POLL_SECONDS,), name="messages server", daemon=True
        )

    @property
    def port(self) -> int:
        return self._listener.server_address[1]

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        if self._thread.is_alive():
            self._listener.shutdown()
            self._thread.join()
        self._listener.server_close()
        self._listener.hang_up()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, service: Service, port: int) -> None:
        self.service = service
        self.turn = threading.Lock()  # the service is asked by one thread at a time
        self.request_ids = (f"req_{number:012}" for number in count(1))
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__((LOOPBACK, port), _Handler)

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks the name service for the name of this machine: that may take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def opened(self, connection: socket.socket) -> None:
        with self._open_lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._open_lock:
            self._open.discard(connection)

    def hang_up(self) -> None:
        """End the connections that clients keep, and with them their threads."""
        with self._open_lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client may leave whenever it likes
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener  # pyright: ignore[reportIncompatibleVariableOverride]  the standard library's own way

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        self.server.closed(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the standard library's
        """Say nothing: stderr belongs to the program around."""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, method: Any) -> None:
        self._request_id = next(self.server.request_ids)
        try:
            method(unquote(urlsplit(self.path).path))
        except ApiError as error:
            self._send_json(error.status, error.body(self._request_id), error.headers)

    def _get(self, path: str) -> None:
        model_id = path.removeprefix("/v1/models/")
        if not model_id or model_id == path:
            raise ApiError(404, f"Not found: GET {path}")
        self._send_json(200, self._ask(self.server.service.model, model_id))

    def _post(self, path: str) -> None:
        body = self._read_body()
        service = self.server.service
        if path == "/v1/messages":
            self._send_message(self._ask(service.create, body), streams=bool(body.get("stream")))
        elif path == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": self._ask(service.count_tokens, body)})
        elif path.startswith("/control/"):
            self._send_json(200, self._ask(service.control, path.removeprefix("/control/"), body))
        else:
            raise ApiError(404, f"Not found: POST {path}")

    def _ask(self, method: Callable[..., Answer], *arguments: Any) -> Answer:
        """What the service says. What it raises beside its own errors is a defect in it: logged, and not retried."""
        try:
            with self.server.turn:
                return method(*arguments)
        except ApiError:
            raise
        except Exception as error:
            log.exception("the service behind %s failed", self.path)
            said = f"this server failed: {type(error).__name__}: {error}"
            raise ApiError(500, said, headers={"x-should-retry": "false"}) from error

    def _read_body(self) -> Json:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise ApiError(400, f"The request body is not valid JSON: {error}") from None
        if not isinstance(body, dict):
            raise ApiError(400, "Input should be a valid dictionary")
        return cast(Json, body)

    def _send_json(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(body).encode()
        self._send_head(
            status, {"content-type": "application/json", "content-length": str(len(raw)), **(headers or {})}
        )
        self.wfile.write(raw)

    def _send_head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"request-id": self._request_id, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_message(self, sending: Sending, *, streams: bool) -> None:
        broken = sending.broken
        if broken and broken.error and not streams:
            raise broken.error
        if broken and broken.after <= 0 and broken.kind in {"disconnect", "stall"}:
            self._end_early(broken)
        elif streams:
            self._send_events(sending.message, broken)
        else:
            self._send_whole(sending.message, broken)

    def _send_events(self, message: Json, broken: Break | None) -> None:
        self._send_head(
            200,
            {
                "content-type": "text/event-stream; charset=utf-8",
                "cache-control": "no-cache",
                "transfer-encoding": "chunked",
            },
        )
        events = list(wire.events(message))
        for event in events[: broken.sent(len(events))] if broken else events:
            self._send_chunk(wire.encode(event))
        if broken and broken.error:
            self._send_chunk(wire.encode(wire.error_event(broken.error)))
        if broken and broken.kind in {"disconnect", "stall"}:
            self._end_early(broken)
        else:
            self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _send_whole(self, message: Json, broken: Break | None) -> None:
        raw = json.dumps(wire.whole(message)).encode()
        self._send_head(200, {"content-type": "application/json", "content-length": str(len(raw))})
        if not broken:
            self.wfile.write(raw)
        else:
            self.wfile.write(raw[: broken.sent(len(raw))])
            self._end_early(broken)

    def _end_early(self, broken: Break) -> None:
        """Leave the answer as it is. The connection closes without its end, now or when the client has gone."""
        if broken.kind == "stall":
            with contextlib.suppress(OSError):
                self.connection.recv(1)
        self.close_connection = True
