"""An agent to look at, a server over its home, and requests to that server."""

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from agents.httpd import HttpServer
from agents.view.readers import Readers
from agents.view.serving import ViewServer
from pager import Limits, Memory
from pager.home import Home
from tests.support.clock import HandClock

LIMITS = Limits.for_window(20_000)


def opened(home: Path, **more: Any) -> Memory:
    return Memory.open(home / "guide", embedder=None, limits=LIMITS, clock=HandClock(), **more)


def serving(home: Path, **options: Any) -> ViewServer:
    return ViewServer(Readers(Home(home, clock=HandClock())), **options)


def ask(
    server: HttpServer, path: str, *, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.putrequest(method, path, skip_host=True)
        given = {"Host": f"127.0.0.1:{server.port}", **{name.replace("_", "-"): text for name, text in headers.items()}}
        if body is not None:
            given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **given}
        for name, text in given.items():
            connection.putheader(name, text)
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


def api(server: ViewServer, what: str) -> Any:
    status, _, body = ask(server, f"/{server.token}/api/{what}")
    assert status == 200, body
    return json.loads(body)
