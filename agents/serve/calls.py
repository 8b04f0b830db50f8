"""One request as an endpoint gets it: who asks, for which agent, with what body.

@endpoint("write")
async def tell(call: Call) -> Response:
    body = await call.body(Told)
    await call.in_thread(lambda: call.server.instances.home.send(call.agent, "message", {"text": body.text}))
    return call.json({"sent": True}, status=202)
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

from anyio import to_thread
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agents.agent import Agent
from agents.config import embedders
from agents.explain import AnyMemory
from agents.serve.errors import ASK_AGAIN, ApiError, as_api_error, no_agent
from agents.serve.forward import CALLER, ELSEWHERE, WORKER, Forward, WorkerGoneError
from agents.serve.given import Failed
from agents.serve.keys import Caller, Scope
from agents.serve.server import Server
from pager.errors import PagerError
from pager.types import Json

Result = TypeVar("Result")
LOOK_AGAIN_SECONDS = 0.2
WAIT_FOR_LEASE_SECONDS = 60.0  # at most: an operator may choose long leases
NO_EMBEDDER: Mapping[str, Any] = {"embedder": None}
Body = TypeVar("Body", bound=BaseModel)
KEY = re.compile(r"[A-Za-z0-9._:~-]{1,200}")
KEYED = {"Idempotency-Key": "The same key gives the same answer, and nothing is done twice."}
Handler = Callable[["Call"], Awaitable[Response]]


class Call:
    """A request whose caller is known, and may do what it asks for."""

    def __init__(self, request: Request, server: Server, caller: Caller, agent: str) -> None:
        self.request = request
        self.server = server
        self.caller = caller
        self._raw: bytes | None = None
        self.agent = agent  # its name in the home; "" for a request that names none
        self.made_key = ""

    async def somewhere(self, handle: Handler, *, repeats: bool) -> Response:
        """Answer here, or let the worker answer that has the agent open. One that has died is waited for until its
        lease has ended. What does not `repeats` without harm is not asked for again if it may have been done."""
        if self.server.forward is None or not self.agent:
            return await handle(self)
        until, was_passed_on = monotonic() + WAIT_FOR_LEASE_SECONDS, WORKER in self.request.headers
        while True:
            url = None if was_passed_on else await to_thread.run_sync(self._elsewhere)
            try:
                return await (self._pass_on(self.server.forward, url, repeats=repeats) if url else handle(self))
            except (ApiError, PagerError) as error:
                if as_api_error(error).kind not in ("in_use", "gone", *(("lost",) if repeats else ())):
                    raise
                if was_passed_on:
                    raise ApiError(ELSEWHERE, "elsewhere", "another worker has this agent.", ASK_AGAIN) from error
                if monotonic() > until:
                    raise
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _pass_on(self, forward: Forward, url: str, *, repeats: bool) -> Response:
        body, has_it = await self.raw_body(), partial(self._is_at, url)
        try:
            return await forward.send(url, self.request, self.caller, body, key=self.key, has_it=has_it)
        except WorkerGoneError as error:
            kind, advice = "gone", ASK_AGAIN
            if error.was_sent and not repeats:
                kind, advice = "unknown", "It may have been done: look at the agent before you ask again."
            text = "the worker that has this agent open does not answer."
            raise ApiError(503, kind, text, advice, {"Retry-After": "2"}) from error

    def _elsewhere(self) -> str | None:
        """Return the address of another worker that has the agent open."""
        if self.server.workers.has_open(self.agent):
            return None
        owner = self.server.instances.home.owner(self.agent)
        url = str(owner.get("url") or "") if owner else ""
        return url if url and url != self.server.advertised else None

    async def _is_at(self, url: str) -> bool:
        """Return True as long as that worker has the agent, as far as anybody can say."""
        try:
            return await to_thread.run_sync(self._elsewhere) == url
        except PagerError:
            return True

    async def raw_body(self, most: int | None = None) -> bytes:
        """Return the body, of `most` bytes or as many as are usual. Raises ApiError (413, 408) if it is too large or
        too slow."""
        if self._raw is None:
            self._raw = await self._receive(most or self.server.limits.body_bytes)
        return self._raw

    async def _receive(self, most: int) -> bytes:
        seconds = self.server.limits.body_seconds
        received = bytearray()
        try:
            async with asyncio.timeout(seconds):
                async for piece in self.request.stream():
                    received += piece
                    if len(received) > most:
                        text = f"the body has more than {most} bytes."
                        raise ApiError(413, "too_large", text, "Send less, or in pieces.", {"Connection": "close"})
        except TimeoutError:
            text = f"the body was not here after {seconds:g} s."
            raise ApiError(408, "timeout", text, "Send it again.", {"Connection": "close"}) from None
        except ClientDisconnect:  # nobody reads this: it is for the log and the figures
            raise ApiError(400, "disconnected", "the client left before its body was here.") from None
        return bytes(received)

    async def body(self, shape: type[Body]) -> Body:
        """Return the body, read as JSON of this shape. Raises ApiError (400) that names what does not fit."""
        raw = await self.raw_body()
        try:
            return shape.model_validate_json(raw or b"{}")
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors()]
            advice = "GET /openapi.json has the shape of every body."
            raise ApiError(400, "invalid_body", "; ".join(faults[:5]), advice) from None

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Run a short call of a memory without holding other requests up."""
        return await to_thread.run_sync(work)

    @contextmanager
    def reading(self, *, searches: bool = False) -> Generator[AnyMemory]:
        """Yield the agent's memory to read. With `searches` it has the agent's embedder."""
        with self.server.workers.use_if_open(self.agent) as agent:
            if agent is not None:
                yield agent.memory
                return
        instances = self.server.instances
        if searches and instances.has_mounts(self.agent):  # which are known to the open agent alone
            with self.server.workers.use(self.agent) as agent:
                yield agent.memory
            return
        options = embedders.for_command(instances.home.place(self.agent), None) if searches else NO_EMBEDDER
        with instances.read(self.agent, **options) as reader:
            yield reader

    async def read(self, work: Callable[[AnyMemory], Result], *, searches: bool = False) -> Result:
        """Read from the agent's memory in a thread."""

        def run() -> Result:
            with self.reading(searches=searches) as memory:
                return work(memory)

        return await to_thread.run_sync(run)

    async def with_agent(self, work: Callable[[Agent], Result]) -> Result:
        """Run a short call on the open agent, beside the turn that it may be in."""

        def run() -> Result:
            with self.server.workers.use(self.agent) as agent:
                return work(agent)

        return await to_thread.run_sync(run)

    async def in_line(self, work: Callable[[Agent], Result], *, waits: bool = False) -> Result:
        """Run a job of the agent when those before it are done. A client that leaves does not end it."""
        future: Future[Result] = self.server.workers.submit(self.agent, work, waits=waits)
        return await asyncio.shield(asyncio.wrap_future(future))

    @property
    def key(self) -> str:
        """Return the Idempotency-Key, or the one that was made for this request; "" if there is none. Raises ApiError
        (400) if it is none."""
        key = self.request.headers.get("idempotency-key", "") or self.made_key
        if key and not KEY.fullmatch(key):
            text = "an Idempotency-Key is made of letters, digits, '.', '_', ':', '~' and '-', at most 200."
            raise ApiError(400, "rejected", text, "Use a UUID, for example.")
        return key

    def text(self, name: str) -> str:
        """Return what the address has for `name`; "" if it has nothing."""
        return self.request.query_params.get(name, "")

    def number(self, name: str, otherwise: int, most: int = 10**9, *, least: int = 0) -> int:
        """Return the same as a number, at most `most`. Raises ApiError (400) if it is none, or less than `least`."""
        given = self.text(name)
        if not given:
            return otherwise
        if not (given.isascii() and given.isdigit() and len(given) < 10):
            raise ApiError(400, "rejected", f"{name} is a whole number, not {given[:40]!r}.", "Change the address.")
        if int(given) < least:
            raise ApiError(400, "rejected", f"{name} is {given}; it is at least {least}.", "Change the address.")
        return min(most, int(given))

    def json(self, value: Json | BaseModel, status: int = 200, **headers: str) -> Response:
        """Return an answer in JSON."""
        data: Any = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        return JSONResponse(data, status, {name.replace("_", "-"): text for name, text in headers.items()})


class Endpoint(Route):
    """A route of the API, with what `/openapi.json` says of it: besides its types the headers that it `takes` and
    `gives`, and the parameters of its address (`query`), each with its help."""

    failed: type[BaseModel] = Failed  # the body of an answer that is an error

    def __init__(
        self, method: str, path: str, scope: Scope, handle: Handler, answers: type[BaseModel], *,
        body: type[BaseModel] | None = None, status: int = 200, streams: bool = False,
        query: Mapping[str, str] | None = None, takes: Mapping[str, str] | None = None,
        gives: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.scope: Scope = scope
        self.about, self._handle = handle.__doc__ or "", handle
        self.body, self.answers, self.status, self.streams = body, answers, status, streams
        self.query, self.takes, self.gives = query or {}, takes or {}, gives or {}
        super().__init__(path, self.respond, methods=[method], name=handle.__name__)

    @property
    def method(self) -> str:
        """Return the method that it answers."""
        return next(iter((self.methods or set()) - {"HEAD"}))

    async def respond(self, request: Request) -> Response:
        """Answer a request, here or by the worker that has the agent."""
        try:
            call = await let_in(request, self.scope)
            if unknown := sorted(request.query_params.keys() - self.query.keys()):
                advice = f"It takes {', '.join(self.query) or 'none'}: change the address."
                raise ApiError(400, "rejected", f"there is no parameter {unknown[0][:40]!r} here.", advice)
            if self.streams:
                call.made_key = uuid4().hex  # the same for whatever worker answers in the end
            is_keyed = bool(self.takes.keys() & KEYED and call.key)
            return await call.somewhere(self._handle, repeats=self.scope == "read" or is_keyed)
        except Exception as error:  # noqa: BLE001 - every error is answered, and logged in `app`
            return error_response(request, error)


def endpoint(
    method: str, path: str, scope: Scope, answers: type[BaseModel], **more: Any
) -> Callable[[Handler], Endpoint]:
    """Make an `Endpoint` of a function that takes a `Call`. The caller's key has to have this scope. An agent that is
    in the path as `{id}` has to exist, and to be the caller's."""
    return lambda handle: Endpoint(method, path, scope, handle, answers, **more)


async def let_in(request: Request, scope: Scope) -> Call:
    """Return the request as a call. Raises ApiError if its key is not valid, or may not do this."""
    server: Server = request.app.state.server
    caller = await caller_of(request, server)
    caller.need(scope)
    agent = request.path_params.get("id")
    name = "" if agent is None else caller.name_of(agent)
    if (
        name
        and not server.workers.has_open(name)
        and not await to_thread.run_sync(lambda: server.instances.home.exists(name))
    ):
        raise no_agent(str(agent))
    return Call(request, server, caller, name)


async def caller_of(request: Request, server: Server, *, is_browser: bool = False) -> Caller:
    """Return who asks, by the headers of the request; the log names who it was. Raises ApiError (401)."""

    def find() -> Caller:
        if WORKER in request.headers:
            return server.called_by_worker(request.headers[WORKER], request.headers.get(CALLER, ""))
        authorization, api_key = (request.headers.get(name, "") for name in ("authorization", "x-api-key"))
        return server.door.caller(authorization, api_key, is_browser=is_browser)

    caller = find() if server.keys.are_fresh else await to_thread.run_sync(find)
    request.state.caller = caller
    return caller


def error_response(request: Request, error: Exception) -> Response:
    """Return the answer that tells of an error, which the log has too if it is ours."""
    told = as_api_error(error)
    request.state.error = error
    return JSONResponse(told.body, told.status, told.headers)
