"""A server in this process, over a home in a folder of the test, with a scripted model. Requests are real ones."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.httpd import HttpServer
from agents.serve.app import make_app
from agents.serve.keys import Scope
from agents.serve.limits import ServeLimits
from agents.serve.server import Server
from agents.testing import ScriptedServer
from pager.clock import Clock
from pager.home import Home
from pager.types import Json

CONFIG = """\
name: {name}
model: {{id: m, base_url: "{base_url}", api_key: none, max_output_tokens: 1000}}
window: {{limit_tokens: 60000}}
archival: {{embedder: none, prefetch: {{budget_tokens: 0}}}}
core: {{blocks: {{human: {{limit_tokens: 200}}}}}}
{more}"""


@dataclass
class Api:
    """A running server, and whoever asks it."""

    server: Server
    url: str
    log: io.StringIO
    opened: ExitStack = field(default_factory=ExitStack)

    def client(self, tenant: str = "", scope: Scope = "admin") -> httpx.Client:
        _, key = self.server.keys.add(f"{tenant}-{scope}", tenant, scope, None)
        return self.opened.enter_context(httpx.Client(base_url=self.url, headers={"x-api-key": key}, timeout=30))

    @property
    def lines(self) -> list[Json]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@dataclass
class Place:
    folder: Path
    model: ScriptedServer
    address: str = ""  # of a home in Postgres

    @property
    def home(self) -> Home:
        return Home(self.address or self.folder / "home")

    def config(self, name: str = "clerk", more: str = "") -> Path:
        file = self.folder / f"{name}.yaml"
        file.write_text(CONFIG.format(name=name, base_url=self.model.base_url, more=more))
        return file

    @contextmanager
    def serving(self, *files: Path, clock: Clock | None = None, **limits: Any) -> Iterator[Api]:
        log = io.StringIO()
        given = ServeLimits(**{"grace_seconds": 5.0, **limits})
        server = Server(self.home, files or [self.config()], limits=given, clock=clock, log_to=log)
        with HttpServer(make_app(server)) as http:
            server.start()
            api = Api(server, http.url, log)
            with api.opened:
                try:
                    yield api
                finally:
                    server.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with ScriptedServer() as model:
        yield Place(tmp_path, model)
        assert [str(error) for error in model.errors] == []


@pytest.fixture
def api(place: Place) -> Iterator[Api]:
    with place.serving() as api:
        yield api


@pytest.fixture
def client(api: Api) -> httpx.Client:
    """A caller who may do all, with an agent `notes`."""
    client = api.client()
    assert client.post("/v1/agents", json={"id": "notes"}).status_code == 201
    return client


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for what another thread or process does, and no longer than that."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.01)


def events(response: httpx.Response) -> list[tuple[str, str, Any]]:
    """The events of an answer: id, name, data."""
    return list(_events(response.text.splitlines()))


def arriving(response: httpx.Response) -> Iterator[tuple[str, str, Any]]:
    """The same of one that is still coming."""
    return _events(response.iter_lines())


def _events(lines: Iterable[str]) -> Iterator[tuple[str, str, Any]]:
    found: dict[str, str] = {}
    for line in lines:
        if not line and found:
            yield found["id"], found["event"], json.loads(found["data"])
            found = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            found[name] = value
