"""The view within another application: who may see what is for that application to say."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount

from agents.httpd import ForbiddenError, HttpServer
from agents.view.readers import Readers
from agents.view.routes import Allowed, View
from pager import Memory
from pager.errors import NotFoundError
from pager.home import Home
from tests.view.asking import ask

PREFIX = "acme.."


async def access(request: Request) -> Allowed | Response:
    """Let the tenant in, who sees only agents of its own."""
    key = request.headers.get("x-key", "")
    if not key:
        return PlainTextResponse("send a key", 401, {"WWW-Authenticate": "Bearer"})
    if key != "acme":
        raise ForbiddenError("this key sees no agents.")
    return Allowed(request.app.state.readers, read_only=True, in_home=in_home, own=own)


def in_home(name: str) -> str:
    if ".." in name:
        raise NotFoundError("there is no such agent.")
    return PREFIX + name


def own(name: str) -> str | None:
    return name.removeprefix(PREFIX) if name.startswith(PREFIX) else None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServer]:
    for name in ("acme..notes", "other..notes", "mine"):
        with Memory.open(tmp_path / name, embedder=None) as memory:
            memory.archive(f"is {name}")
    app = Starlette(routes=[Mount("/view", View(access))])
    app.state.readers = Readers(Home(tmp_path))
    with HttpServer(app) as server:
        yield server
    app.state.readers.close()


def told(server: HttpServer, path: str, **headers: str) -> tuple[int, str]:
    status, _, body = ask(server, f"/view/{path}", body=None, **headers)
    return status, body.decode()


def test_without_what_the_application_asks_for_nothing_is_answered(server: HttpServer) -> None:
    for path in ("", "view.js", "api/agents", "nothing"):
        assert told(server, path) == (401, "send a key")
        assert told(server, path, x_key="other")[0] == 403


def test_a_caller_sees_its_own_agents_alone(server: HttpServer) -> None:
    assert "<title>selfpager</title>" in told(server, "", x_key="acme")[1]
    assert json.loads(told(server, "api/agents", x_key="acme")[1])["agents"] == ["notes"]
    [row] = json.loads(told(server, "api/fleet", x_key="acme")[1])["fleet"]
    assert (row["name"], row["facts"]) == ("notes", 1)
    [fact] = json.loads(told(server, "api/notes/facts", x_key="acme")[1])["rows"]
    assert fact["text"] == "is acme..notes"
    for other in ("mine", "other..notes", "acme..notes", ".."):
        for what in ("state", "facts", "find?text=x"):
            status, text = told(server, f"api/{other}/{what}", x_key="acme")
            assert (status, "is mine" in text, "other" in text.replace(other, "")) == (404, False, False), text
    status, _, body = ask(server, "/view/api/notes/edit", method="POST", body=b"{}", x_key="acme")
    assert (status, b"read-only" in body) == (403, True)
