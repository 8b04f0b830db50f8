"""Run an ASGI application on uvicorn: `selfpager view`, `serve` and `mcp --http`. Import it only when one of them runs.

The port is taken when the server is made, so that a taken one is an error of the caller and `url` is known before
anything runs. Nothing is logged about requests: an address may carry a token.

    with HttpServer(app, port=0) as server:     # in a thread of its own
        print(server.url)

    HttpServer(app, host="0.0.0.0", port=8000).run()     # in the foreground
"""

import errno
import signal
import socket
from asyncio import TimerHandle
from collections.abc import MutableMapping
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from agents.logs import adopt
from pager.errors import PagerError, RejectedError

HOST = "127.0.0.1"
IDLE_SECONDS = 60  # after which a connection without a request is closed
HEAD_SECONDS = 20.0  # in which the line and the headers of a request have to be here
STOP_SECONDS = 5  # for answers under way when the server is closed
LARGEST_PORT = 65_535
Scope = MutableMapping[str, Any]  # of ASGI: a request's line and headers


class ForbiddenError(PagerError):
    """The request comes from elsewhere, lacks its token, or asks for what this server does not allow."""


def check_caller(scope: Scope) -> None:
    """Raise ForbiddenError if a request to a server on this machine, by its headers Host and Origin, is meant for
    another one (a page elsewhere whose name was made to point here) or was sent by another page."""

    def sent(wanted: bytes) -> list[str]:
        return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]

    port, hosts = scope["server"][1], sent(b"host")
    ours = {f"{name}:{port}" for name in (HOST, "localhost")}
    if len(hosts) != 1 or hosts[0] not in ours:
        raise ForbiddenError(f"this server answers as {HOST}:{port} only.")
    if not {f"http://{each}" for each in ours}.issuperset(sent(b"origin")):
        raise ForbiddenError("requests from other pages are refused.")


class _Connection(H11Protocol):
    """A connection that is closed when the head of a request does not come.

    uvicorn limits only the time from the end of one to the beginning of the next.
    """

    _deadline: TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._limit()

    def data_received(self, data: bytes) -> None:
        """Wait no longer if a request has come, else for the rest of it."""
        super().data_received(data)
        if self.cycle and not self.cycle.response_complete:
            self._cancel()
        elif self._deadline is None:
            self._limit()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._cancel()
        super().connection_lost(exc)

    def _limit(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _cancel(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None


class HttpServer:
    """An ASGI application on a port, 0 for any free one. Raise RejectedError if the port cannot be used."""

    def __init__(self, app: Any, *, host: str = HOST, port: int = 0, stop_seconds: int = STOP_SECONDS) -> None:
        self.host = host
        self._listening = _listening(host, port)
        self.port: int = self._listening.getsockname()[1]
        self._stop_seconds = stop_seconds
        self._ready = Event()  # or failed: `start` asks which
        config = uvicorn.Config(
            app, http=_Connection, loop="asyncio", ws="none", log_config=None, log_level="warning", access_log=False,
            proxy_headers=False, server_header=False, timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=stop_seconds, callback_notify=self._on_tick,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._run_in_thread, name="http server", daemon=True)
        adopt("uvicorn")

    @property
    def url(self) -> str:
        """Return its address, without a slash at its end."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def start(self) -> Self:
        """Serve in a thread. Return when requests are answered. Raise RejectedError if the application cannot start."""
        self._thread.start()
        self._ready.wait()
        self._check_started()
        return self

    def run(self) -> None:
        """Serve in the foreground, which must be the main thread, until SIGTERM, or until Ctrl-C, which raises
        KeyboardInterrupt. Answers under way are finished first, for `stop_seconds` at most. Raise RejectedError if the
        application cannot start."""
        before = signal.signal(signal.SIGTERM, self._stop)  # uvicorn raises it again when it has stopped
        try:
            self._serve()
        finally:
            signal.signal(signal.SIGTERM, before)
            self._listening.close()
        self._check_started()

    def close(self) -> None:
        """Stop, and end the connections that clients keep open. Answers under way have `stop_seconds`."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(self._stop_seconds + 1)
        self._listening.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run_in_thread(self) -> None:
        try:
            self._serve()
        finally:
            self._ready.set()

    def _serve(self) -> None:
        with suppress(SystemExit):  # so uvicorn ends if the application cannot start
            self._server.run(sockets=[self._listening])

    def _check_started(self) -> None:
        if not self._server.started:
            self._listening.close()
            raise RejectedError("the server could not start; the log says why.")

    def _stop(self, *_: object) -> None:
        self._server.should_exit = True

    async def _on_tick(self) -> None:
        self._ready.set()


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port <= LARGEST_PORT:
        raise RejectedError(f"there is no port {port}; give one from 1 to {LARGEST_PORT}, or 0 for any free one.")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        is_taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
        why = (error.strerror or str(error)).partition(" (while")[0]  # of what is no error of the system, too: a name
        way = "Choose another port; 0 is a free one" if is_taken else "Give an address of this machine"
        raise RejectedError(f"{host}:{port} cannot be served: {why}. {way}.") from None
    # Connections inherit it. uvicorn sends the head and the body of an answer as two pieces; asyncio does not set it
    # on sockets that it did not make: without it an answer can wait 40 ms for the client's acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
