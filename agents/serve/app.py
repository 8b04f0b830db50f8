"""The ASGI application of `selfpager serve`: its routes, and what stands around every request."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from time import perf_counter

from anyio import to_thread
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agents.serve.calls import Endpoint, error_response, let_in
from agents.serve.errors import ApiError
from agents.serve.memory import MEMORY
from agents.serve.messages import MESSAGES
from agents.serve.openapi import as_page, describe
from agents.serve.roster import AGENTS
from agents.serve.server import Server
from agents.serve.sleeps import SLEEPS
from agents.serve.turns import TURNS
from agents.serve.view import view_routes
from pager.errors import PagerError, UnavailableError
from pager.types import Json

ENDPOINTS: list[Endpoint] = [*AGENTS, *TURNS, *MEMORY, *SLEEPS, *MESSAGES]
METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"})  # others would have no end
NO_SCRIPTS = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


def make_app(server: Server) -> Starlette:
    """Return the application. `server` is closed by whoever made it, before the application stops answering."""
    routes: list[BaseRoute] = [
        Route("/healthz", _health), Route("/metrics", _metrics), Route("/openapi.json", _openapi),
        Route("/docs", _docs), *ENDPOINTS, *view_routes(server),
    ]  # fmt: skip

    @asynccontextmanager
    async def until_the_end(_: Starlette) -> AsyncGenerator[None]:
        yield
        if server.forward:
            await server.forward.close()

    app = Starlette(routes=routes, lifespan=until_the_end, exception_handlers={404: _nothing_here, 405: _nothing_here})
    app.state.server = server
    app.add_middleware(Observed, server=server)
    return app


class Observed:
    """Logs and counts every request when its answer has ended, and ends a stream when its key has ended."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, is_over = perf_counter(), 500, False

        async def note(message: Message) -> None:
            nonlocal status, is_over
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update({"X-Content-Type-Options": "nosniff"})
                MutableHeaders(scope=message).setdefault("Cache-Control", "no-store")
            elif message.get("more_body") and not is_over and await self._has_ended(scope):
                is_over, message = True, {"type": "http.response.body", "body": b""}
            elif is_over:
                return  # until the stream notices that nobody reads it
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            self._log(scope, status, perf_counter() - began)

    async def _has_ended(self, scope: Scope) -> bool:
        """Return True if the key of a request is not valid any more."""
        keys, caller = self._server.keys, scope.get("state", {}).get("caller")
        if caller is None or keys.are_fresh:
            return caller is not None and keys.has_ended(caller)
        try:
            return await to_thread.run_sync(keys.has_ended, caller)
        except PagerError:
            return False  # nobody knows; its agent cannot be read either

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        route, state = scope.get("route"), scope.get("state", {})
        path = route.path if isinstance(route, Route) else "other"
        caller, error = state.get("caller"), state.get("error")
        who = {"key": caller.name, "tenant": caller.tenant} if caller else {}
        if error is not None and status >= 500:
            self._server.log.trouble("a request failed", error)
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._server.metrics.request(method, path, status, seconds)
        self._server.log.write("request", method=method, route=path, status=status, ms=round(seconds * 1000, 1), **who)


async def _health(request: Request) -> Response:
    """Say whether the home can be used: it can be read, and what was committed last was stored. Everybody may ask, so
    nothing else is said."""
    server: Server = request.app.state.server
    home = server.instances.home
    try:
        await to_thread.run_sync(lambda: home.value("keys"))
        failure = home.failure()
    except (PagerError, OSError) as error:
        failure = error.reason if isinstance(error, UnavailableError) else "it cannot be read"
    if failure:
        return JSONResponse({"status": "down", "home": failure}, 503)
    return JSONResponse({"status": "ok"})


async def _metrics(request: Request) -> Response:
    try:
        call = await let_in(request, "read")
        if call.caller.tenant:
            raise ApiError(403, "forbidden", "figures are for a key without a tenant.", "")
        return Response(call.server.metrics.text(), media_type="text/plain; version=0.0.4")
    except Exception as error:  # noqa: BLE001 - it is answered, and logged in `app`
        return error_response(request, error)


@cache
def _api() -> Json:
    return describe(ENDPOINTS)


async def _openapi(_: Request) -> Response:
    return JSONResponse(_api())


async def _docs(_: Request) -> Response:
    return HTMLResponse(as_page(_api()), headers={"Content-Security-Policy": NO_SCRIPTS})


async def _nothing_here(*_: object) -> Response:
    error = ApiError(404, "not_found", "there is nothing at this address for this method.", "GET /docs lists all.")
    return JSONResponse(error.body, error.status)
