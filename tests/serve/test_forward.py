"""What is passed on to another worker: as it came, once, and what breaks off there breaks off here."""

from __future__ import annotations

import http.client
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agents.httpd import HttpServer
from agents.serve import forward as forward_module
from agents.serve.calls import Call
from agents.serve.errors import ApiError
from agents.serve.forward import CALLER, WORKER, Forward, WorkerGoneError
from agents.serve.keys import Caller
from pager.errors import RejectedError
from pager.types import Json
from tests.serve.conftest import Api, Place

ANN = Caller("ann", "acme", "write", "k")
ALL = ["GET", "POST", "DELETE"]
FACTS, TURNS = "/v1/agents/notes/facts", "/v1/agents/notes/turns"


class Pair:
    """A worker that passes everything on, and another one that `answers`."""

    def __init__(self, opened: ExitStack) -> None:
        self.answers: Any = None
        self.has_it = True
        self.failure: Exception | None = None
        self._forward: Forward
        other = Starlette(routes=[Route("/{rest:path}", self._answer, methods=ALL)])
        self.url = opened.enter_context(HttpServer(other)).url
        first = Starlette(routes=[Route("/{rest:path}", self._pass_on, methods=ALL)], lifespan=self._forwarding)
        self.first = opened.enter_context(HttpServer(first)).url

    @asynccontextmanager
    async def _forwarding(self, _: Starlette) -> AsyncGenerator[None]:
        self._forward = Forward("secret")
        yield
        await self._forward.close()

    async def _answer(self, request: Request) -> Response:
        return await self.answers(request)

    async def _pass_on(self, request: Request) -> Response:
        async def has_it() -> bool:
            return self.has_it

        try:
            return await self._forward.send(self.url, request, ANN, await request.body(), key="k1", has_it=has_it)
        except (WorkerGoneError, ApiError) as error:
            self.failure = error
            return Response(status_code=599)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with ExitStack() as opened:
        yield Pair(opened)


def was_sent(pair: Pair) -> bool:
    assert httpx.get(pair.first).status_code == 599
    assert isinstance(pair.failure, WorkerGoneError)
    return pair.failure.was_sent


@pytest.mark.parametrize("target", ["/a%2F..%2Fb", "/a/../b", "/%253Fx%23", "/a?b=%26&c=%2B+", "/%C3%A4", "/a//b"])
def test_the_address_arrives_as_it_was_sent(pair: Pair, target: str) -> None:
    seen: dict[str, Any] = {}

    async def answers(request: Request) -> Response:
        seen.update(path=request.scope["raw_path"], query=request.scope["query_string"], headers=dict(request.headers))
        return JSONResponse({"body": (await request.body()).decode()}, 201, {"selfpager-x": "1", "set-cookie": "no"})

    pair.answers = answers
    at = urlsplit(pair.first)
    with closing(http.client.HTTPConnection(str(at.hostname), at.port)) as connection:
        connection.request("POST", target, b"{}", {"x-api-key": "sp_key", "accept": "x/y", "idempotency-key": "other"})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (201, b'{"body":"{}"}')
    assert (answer.headers["selfpager-x"], answer.headers["set-cookie"]) == ("1", None)
    assert seen["path"] + b"?" * ("?" in target) + seen["query"] == target.encode()
    headers = seen["headers"]
    assert (headers[WORKER], headers["idempotency-key"], headers["accept"]) == ("secret", "k1", "x/y")
    assert "sp_key" not in str(headers)
    assert '"tenant": "acme"' in headers[CALLER]


def test_a_worker_that_has_not_got_it_is_not_one_that_may_have_done_it(pair: Pair) -> None:
    async def elsewhere(_: Request) -> Response:
        return Response(status_code=421)

    pair.answers = elsewhere
    assert not was_sent(pair)
    pair.url = "http://127.0.0.1:1"
    assert not was_sent(pair)


def test_a_worker_that_dies_before_it_answers_may_have_done_it(pair: Pair) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def die() -> None:
            connection, _ = listening.accept()
            connection.recv(10_000)
            connection.close()

        dying = Thread(target=die)
        dying.start()
        pair.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert was_sent(pair)
        dying.join()


def test_one_that_says_nothing_is_waited_for_as_long_as_it_has_the_agent(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward_module, "LOOK_SECONDS", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        pair.url, pair.has_it = f"http://127.0.0.1:{listening.getsockname()[1]}", False
        assert was_sent(pair)


def test_a_worker_with_another_key_is_no_fault_of_the_caller(pair: Pair) -> None:
    async def refuses(_: Request) -> Response:
        return Response(status_code=401)

    pair.answers = refuses
    assert httpx.get(pair.first).status_code == 599
    assert isinstance(pair.failure, ApiError)
    assert (pair.failure.status, pair.failure.kind) == (502, "worker")


def test_an_answer_that_breaks_off_does_not_look_whole(pair: Pair) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"half":'
        raise OSError

    async def breaks(_: Request) -> Response:
        return StreamingResponse(pieces(), headers={"content-type": "application/json"})

    pair.answers = breaks
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(pair.first)


# what a request becomes that another worker did not answer


class Gone:
    """A worker that has left, once."""

    def __init__(self, *, sent: bool) -> None:
        self.sent, self.keys = sent, list[str]()

    async def close(self) -> None: ...

    async def send(self, *_: Any, key: str, **__: Any) -> Response:
        self.keys.append(key)
        raise WorkerGoneError("it is gone", was_sent=self.sent)


def passing_on(api: Api, monkeypatch: pytest.MonkeyPatch, *, sent: bool) -> Gone:
    gone, places = Gone(sent=sent), ["http://10.0.0.1"]
    monkeypatch.setattr(api.server, "forward", gone)
    monkeypatch.setattr(Call, "_elsewhere", lambda _: places.pop() if places else None)
    return gone


def test_what_was_not_sent_is_done_here(api: Api, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    passing_on(api, monkeypatch, sent=False)
    assert client.post(FACTS, json={"text": "once"}).status_code == 201


def test_what_may_have_been_done_is_not_done_again(
    api: Api, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing_on(api, monkeypatch, sent=True)
    told = client.post(FACTS, json={"text": "once"})
    assert (told.status_code, told.json()["error"]["type"]) == (503, "unknown")
    assert "may have been done" in told.json()["error"]["advice"]
    assert client.get(FACTS).json()["total"] == 0
    passing_on(api, monkeypatch, sent=True)
    assert client.get(FACTS).status_code == 200


def test_a_turn_that_may_have_begun_is_asked_for_again_with_its_key(
    place: Place, api: Api, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.model.otherwise("Hello.")
    gone = passing_on(api, monkeypatch, sent=True)
    answer: Json = client.post(TURNS, json={"text": "hi"}).json()
    assert (answer["text"], gone.keys) == ("Hello.", [answer["key"]])


def test_a_worker_says_that_it_has_not_got_what_was_passed_on(place: Place, api: Api, client: httpx.Client) -> None:
    api.server.advertise(api.url)
    headers = {WORKER: str(place.home.value("worker-key")), CALLER: '{"name": "x", "tenant": "", "scope": "write"}'}
    with api.server.workers.put_away("notes"):
        pass
    with place.home.open("notes", embedder=None):
        for path, more in ((FACTS, {}), (TURNS, {}), (TURNS, {"accept": "text/event-stream"})):
            answer = httpx.post(f"{api.url}{path}", json={"text": "x"}, headers={**headers, **more}, timeout=30)
            assert answer.status_code == 421


@pytest.mark.parametrize("url", ["own", "ftp://a", "http://", "http://a/b", "http://ann@a", "//a"])
def test_an_address_of_a_worker_is_checked(api: Api, url: str) -> None:
    with pytest.raises(RejectedError, match="is no address of a worker"):
        api.server.advertise(url)


def test_a_key_of_workers_is_long(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SELFPAGER_WORKER_KEY", "secret")
    with pytest.raises(RejectedError, match="has 6 characters; it needs 32"):
        api.server.advertise("http://a:1")
