"""An HTTP server on 127.0.0.1, in daemon threads of this process. Its answers can break off where a test wants them to,
which those of `agents.httpd` never do.

with LoopbackServer(Handler, port=0) as server:     # Handler is a LoopbackHandler
    print(server.base_url)
"""

from __future__ import annotations

import contextlib
import re
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, Self

from pager.errors import RejectedError

HOST = "127.0.0.1"
POLL_SECONDS = 0.02  # how soon `close` is noticed
_LENGTH = re.compile(r"[0-9]{1,18}")  # `isdigit` is true for more digits than `int` reads


class LoopbackServer:
    """Answers from its construction to `close`. Port 0 lets the system choose one."""

    def __init__(self, handler: Callable[..., LoopbackHandler], *, port: int = 0, name: str = "loopback") -> None:
        self._listener = _Listener(handler, port)
        serve = self._listener.serve_forever
        self._thread = threading.Thread(target=serve, args=(POLL_SECONDS,), name=name, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return self._listener.server_address[1]

    @property
    def base_url(self) -> str:
        """Return its address."""
        return f"http://{HOST}:{self.port}"

    def close(self) -> None:
        """Stop, and end the connections that clients keep open."""
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()
        self._listener.hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LoopbackHandler(BaseHTTPRequestHandler):
    """One connection. It logs nothing, and a client may leave at any moment."""

    protocol_version = "HTTP/1.1"
    server_version = "selfpager"
    sys_version = ""
    disable_nagle_algorithm = True
    server: _Listener  # pyright: ignore[reportIncompatibleVariableOverride]  the standard library's own way

    def setup(self) -> None:  # noqa: D102 - of the standard library
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:  # noqa: D102 - of the standard library
        self.server.connections.discard(self.connection)
        super().finish()

    def handle(self) -> None:  # noqa: D102 - of the standard library
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:  # noqa: D102 - of the standard library
        self.answer(self.command)

    do_POST = do_GET  # noqa: N815 - of the standard library

    def answer(self, method: str) -> None:
        """Answer the request in `path` and `headers`. Subclasses decide how."""
        raise NotImplementedError

    def read_body(self, most_bytes: int) -> bytes:
        """Return the body, empty without a Content-Length. Raise RejectedError, and end the connection after the
        answer, if two programs could disagree about where the body ends, or if it is larger than `most_bytes`."""
        lengths = self.headers.get_all("Content-Length", ["0"])
        self.close_connection, kept = True, self.close_connection  # what is refused is not read
        if self.headers.get_all("Transfer-Encoding") or len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0].strip()):
            raise RejectedError("send the body in one piece, with one Content-Length header in digits.")
        if (length := int(lengths[0])) > most_bytes:
            raise RejectedError(f"the body has {length} bytes; at most {most_bytes} are taken.")
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the client left in the middle of its request")
        self.close_connection = kept
        return body

    def send_head(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and the headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send_whole(self, status: int, kind: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Send an answer of a known length."""
        self.send_head(status, {**headers, "Content-Type": kind, "Content-Length": str(len(body))})
        self.wfile.write(body)

    def log_message(self, *_: object, **__: object) -> None:
        """Log nothing: an address may carry a token, and stderr belongs to the program around."""


class _Listener(ThreadingTCPServer):  # HTTPServer would ask the name service first, which can take seconds
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: Callable[..., LoopbackHandler], port: int) -> None:
        self.connections = set[socket.socket]()
        super().__init__((HOST, port), handler)

    def hang_up(self) -> None:
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # the connection was lost
            super().handle_error(request, client_address)
