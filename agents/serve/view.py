"""The debug view at /view: of all agents of the caller's tenant. A browser asks for a key as for a password."""

from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from agents.httpd import ForbiddenError
from agents.serve.calls import caller_of, error_response
from agents.serve.errors import ApiError
from agents.serve.keys import Caller
from agents.serve.server import Server
from agents.view.readers import Readers
from agents.view.routes import Allowed, View
from pager.errors import NotFoundError


def view_routes(server: Server) -> list[BaseRoute]:
    """Return the routes of the view. Its readers are closed with the server."""
    readers = Readers(server.instances.home)
    server.at_end(readers.close)

    async def access(request: Request) -> Allowed | Response:
        try:
            caller = await caller_of(request, server, is_browser=True)
        except ApiError as error:
            error.headers["WWW-Authenticate"] = 'Basic realm="selfpager"'
            return error_response(request, error)
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        if origin is not None and origin.partition("://")[2] != host:
            raise ForbiddenError("requests from other pages are refused.")
        return Allowed(readers, caller.scope == "read", partial(_name, caller), caller.own, not caller.tenant)

    return [Route("/view", _to_page), Mount("/view", View(access))]


async def _to_page(_: Request) -> Response:
    return RedirectResponse("view/")


def _name(caller: Caller, agent: str) -> str:
    try:
        return caller.name_of(agent)
    except ApiError as error:
        raise NotFoundError(error.message) from None
