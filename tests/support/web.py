"""A web server on this machine whose pages a test writes, the odd ones too."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from typing import Any

Send = Callable[[bytes], Any]
Page = bytes | Callable[[Send], Any]


def page(body: str | bytes, kind: str = "text/html; charset=utf-8", *headers: str, status: int = 200) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    kinds = [f"Content-Type: {kind}"] if kind else []
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *kinds, *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def redirect(to: str, status: int = 302) -> bytes:
    return page("", "text/html", f"Location: {to}", status=status)


@dataclass
class Site:
    port: int
    requests: list[bytes] = field(default_factory=list[bytes])  # as they came, without what follows the headers
    sent: int = 0
    over: Event = field(default_factory=Event)

    @property
    def here(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.here}"

    @property
    def paths(self) -> list[str]:
        return [request.split(b" ")[1].decode() for request in self.requests]


@contextmanager
def site(pages: Mapping[str, Page]) -> Generator[Site]:
    """Serve these pages by their paths. A function is given what sends bytes; it may go on until that raises."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            request = b""
            while b"\r\n\r\n" not in request and (line := self.rfile.readline()):
                request += line
            found.requests.append(request)
            path = request.split(b" ")[1].decode() if request.count(b" ") > 1 else ""
            answer = pages.get(path, page("not here", status=404))

            def send(data: bytes) -> None:
                self.connection.sendall(data)
                found.sent += len(data)

            with suppress(OSError):
                answer(send) if callable(answer) else send(answer)

    class Server(ThreadingTCPServer):
        allow_reuse_address, daemon_threads, address_family = True, True, socket.AF_INET

    with Server(("127.0.0.1", 0), Handler) as server:
        found = Site(server.server_address[1])
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            found.over.set()
            server.shutdown()
            thread.join()
