"""The runner of ASGI applications."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import httpd
from agents.httpd import ForbiddenError, HttpServer, check_caller
from pager.errors import RejectedError

ROOT = Path(__file__).parents[2]
ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class App:
    """Answers with what `answer` returns; notes its own start and end."""

    def __init__(self, answer: Callable[[Any], bytes] = lambda scope: b"hello", *, fails: bool = False) -> None:
        self.answer, self.fails = answer, fails
        self.noted: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for stage in ("startup", "shutdown"):
                await receive()
                self.noted.append(stage)
                await send({"type": f"lifespan.{stage}.{'failed' if self.fails else 'complete'}"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": self.answer(scope)})


def asked(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read()


@pytest.mark.parametrize("before", [b"", ASK])
@pytest.mark.parametrize("part", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_request_that_does_not_come_is_not_waited_for(
    before: bytes, part: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not before:
        monkeypatch.setattr(httpd, "HEAD_SECONDS", 0.2)
    elif not part:
        monkeypatch.setattr(httpd, "IDLE_SECONDS", 1)
    with HttpServer(App()) as server, socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(before)
        answer = b""
        while before and not answer.endswith(b"0\r\n\r\n"):
            answer += connection.recv(1000) or pytest.fail("it is closed before it has answered")
        monkeypatch.setattr(httpd, "HEAD_SECONDS", 0.2)  # not before: the first request may be slow to come
        connection.sendall(part)
        assert connection.recv(1000) == b""  # it is closed


def test_it_answers_when_it_has_started_and_ends_its_application() -> None:
    app = App()
    with HttpServer(app) as server:
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert (asked(server.url), app.noted) == (b"hello", ["startup"])
    assert app.noted == ["startup", "shutdown"]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port), timeout=60)


def test_its_connections_send_at_once() -> None:
    """The head and the body of an answer are two packets. The second must not wait until the first is acknowledged."""
    noted: list[int] = []

    class Looking(App):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                transport = send.__self__.transport
                noted.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            await super().__call__(scope, receive, send)

    with HttpServer(Looking()) as server:
        asked(server.url)
    assert noted == [1]


def test_a_port_that_cannot_be_used_says_what_to_do() -> None:
    with HttpServer(App()) as server, pytest.raises(RejectedError, match=r"Address already in use\. Choose another"):
        HttpServer(App(), port=server.port)
    with pytest.raises(RejectedError, match="there is no port 65536"):
        HttpServer(App(), port=65_536)
    for host in ("192.0.2.1", "no.such.invalid"):
        with pytest.raises(RejectedError, match=rf"{host}:0 cannot be served: (?!Unknown).*Give an address of this"):
            HttpServer(App(), host=host)


def test_an_application_that_cannot_start_is_an_error() -> None:
    with pytest.raises(RejectedError, match="could not start"):
        HttpServer(App(fails=True)).start()


def test_closing_ends_connections_that_clients_keep_open() -> None:
    with HttpServer(App()) as server:
        client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(20).startswith(b"HTTP/1.1 200")
    with client:
        while client.recv(1000):
            pass


def test_an_answer_that_does_not_end_is_given_up() -> None:
    class Endless(App):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "lifespan":
                await super().__call__(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            await asyncio.Event().wait()

    app = Endless()
    with HttpServer(app, stop_seconds=1) as server, urllib.request.urlopen(server.url, timeout=60) as response:
        assert response.read(5) == b"first"
        server.close()
    assert app.noted == ["startup", "shutdown"]


@pytest.mark.parametrize(
    ("host", "origin", "refused"),
    [
        ("127.0.0.1:80", None, False),
        ("localhost:80", "http://127.0.0.1:80", False),
        ("127.0.0.1", None, True),
        ("evil.example:80", None, True),
        ("127.0.0.1:80", "http://evil.example", True),
        ("127.0.0.1:80", "null", True),
        (None, None, True),
    ],
)
def test_callers_from_elsewhere_are_refused(host: str | None, origin: str | None, refused: bool) -> None:
    headers = [(name, text.encode()) for name, text in ((b"host", host), (b"origin", origin)) if text is not None]
    scope = {"server": ("127.0.0.1", 80), "headers": headers}
    if refused:
        with pytest.raises(ForbiddenError):
            check_caller(scope)
    else:
        check_caller(scope)
    with pytest.raises(ForbiddenError):
        check_caller({**scope, "headers": [*headers, (b"host", b"127.0.0.1:80")] * 2})


PROGRAM = """
from agents.httpd import HttpServer
from tests.httpd.test_httpd import App
app = App()
server = HttpServer(app)
print(server.url, flush=True)
try:
    server.run()
except KeyboardInterrupt:
    app.noted.append("Ctrl-C")
print(*app.noted)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "ended"), [(signal.SIGTERM, ""), (signal.SIGINT, " Ctrl-C")])
def test_signals_end_it_in_order(number: signal.Signals, ended: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        assert asked(running.stdout.readline().strip()) == b"hello"
        os.kill(running.pid, number)
        assert running.stdout.read().strip() == f"startup shutdown{ended}"
    assert running.returncode == 0
