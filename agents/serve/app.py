"""The ASGI application of `selfpager serve`: its routes, and what stands around every request."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agents.serve.errors import ApiError
from agents.serve.server import Server
from agents.serve.turns import TURNS


def make_app(server: Server) -> Starlette:
    """Return the application. `server` is closed by whoever made it, before the application stops answering."""
    routes: list[BaseRoute] = [Route("/healthz", health), *TURNS]
    app = Starlette(routes=routes, exception_handlers={404: _nothing_here, 405: _nothing_here})
    app.state.server = server
    return app


async def health(_: Request) -> Response:
    """Say that the server is up."""
    return JSONResponse({"status": "ok"})


async def _nothing_here(*_: object) -> Response:
    error = ApiError(404, "not_found", "there is nothing at this address for this method.", "GET /docs lists all.")
    return JSONResponse(error.body, error.status)
