"""The debug view as an ASGI application: the page's own files, and the answers that the page asks for.

It can be mounted in any application. `access`, which its maker gives, is called before anything else is read. It
returns what this caller may see, or an answer that is sent instead, or raises ForbiddenError. Nothing is loaded from
elsewhere, and the browser is told to run and to load nothing but the page's own files: texts of an agent stay texts.

    app = Starlette(routes=[Mount("/view", View(access))])
"""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from importlib.resources import files
from itertools import islice
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from agents import palette
from agents.explain.json_form import to_json
from agents.httpd import ForbiddenError
from agents.view.answers import answer, find
from agents.view.readers import Readers
from pager.errors import NoAgentError, NotFoundError, PagerError, RejectedError
from pager.types import Json

LARGEST_BODY = 4 << 20
UNREADABLE = "the memory of this agent cannot be used now; ask who runs this server."
MOST_NAMES, PAGE = 1000, 100  # agents that can be chosen by name, and those that are shown with their figures at once
KINDS = {
    "html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml",
    "json": "application/json",
}  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Allowed(NamedTuple):
    """What a caller may see. By default that is every agent of the home, under its own name."""

    readers: Readers
    read_only: bool = False
    in_home: Callable[[str], str] = str  # the home's name of an agent, from the caller's; raises NotFoundError
    own: Callable[[str], str | None] = str  # the caller's name of an agent, from the home's; None of others' agents
    is_owner: bool = True  # of the home: nobody else is told where it is, or what is wrong with it

    def names(self, most: int, begin: str = "") -> dict[str, str]:
        """Return names of this caller's agents, from `begin` on, each with its name in the home."""
        names = self.readers.home.names(begin=self.in_home(begin) if begin else "")
        owned = ((own, name) for name in names if (own := self.own(name)) is not None)
        return dict(islice(owned, most))


Access = Callable[[Request], Awaitable[Allowed | Response]]


class View:
    """The application. A path of `scope` begins with `root_path`, which `access` may make longer."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._routes = Router(ROUTES, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. What goes wrong is an answer, too: the page shows it."""
        if scope["type"] != "http":
            await self._routes(scope, receive, send)
            return
        scope.setdefault("app", self)  # with one, the router raises HTTPException where nothing is found
        allowed = None
        try:
            allowed = await self._access(Request(scope))
            if isinstance(allowed, Response):
                await allowed(scope, receive, send)
            else:
                scope["allowed"] = allowed
                await self._routes(scope, receive, send)
            return
        except HTTPException as error:
            path = scope["path"].removeprefix(scope["root_path"])
            failed = _failed(error.status_code, f"there is nothing for {scope['method']} at {path}.")
        except Exception as error:  # noqa: BLE001 - the page shows it, and the view goes on
            is_owner = not isinstance(allowed, Allowed) or allowed.is_owner
            failed = _failed(_status(error), _told(error, is_owner=is_owner))
        await failed(scope, receive, send)


def _status(error: Exception) -> int:
    for kind, status in (
        (ForbiddenError, HTTPStatus.FORBIDDEN), (NotFoundError, HTTPStatus.NOT_FOUND),
        (PagerError, HTTPStatus.BAD_REQUEST),
    ):  # fmt: skip
        if isinstance(error, kind):
            return status
    return HTTPStatus.INTERNAL_SERVER_ERROR


def _told(error: Exception, *, is_owner: bool) -> str:
    """Return an error for the page. Texts about the machine, or about other agents, are for the owner of the home."""
    if isinstance(error, NoAgentError) and not is_owner:
        return "there is no such agent."
    if isinstance(error, ForbiddenError | RejectedError) or (is_owner and isinstance(error, PagerError)):
        return str(error)
    return f"{type(error).__name__}: {error}" if is_owner else UNREADABLE


def _agents(request: Request) -> Response:
    allowed: Allowed = request.scope["allowed"]
    home = allowed.readers.home.address if allowed.is_owner else ""
    names = list(allowed.names(MOST_NAMES))
    more = len(names) == MOST_NAMES  # then there may be others
    return _json({"agents": names, "more": more, "read_only": allowed.read_only, "home": home})


def _fleet(request: Request) -> Response:
    allowed: Allowed = request.scope["allowed"]
    page = allowed.names(PAGE + 1, request.query_params.get("from", ""))
    rows = [{**allowed.readers.summary(name), "name": own} for own, name in islice(page.items(), PAGE)]
    for row in rows:
        if "trouble" in row and not allowed.is_owner:
            row["trouble"] = UNREADABLE
        elif "running" in row:
            row["running"] = _process(row["running"], allowed)
    following = list(page)[PAGE] if len(page) > PAGE else None
    return _json({"agents": list(allowed.names(MOST_NAMES)), "fleet": rows, "next": following})


def _state(request: Request) -> Response:
    allowed, name = _agent(request)
    readers = allowed.readers
    state = {
        "agents": list(allowed.names(MOST_NAMES)),
        "revision": readers.revision(name),
        "running": _process(readers.home.owner(name), allowed),
        "waiting": readers.pending(name, apply=not allowed.read_only),
        "refused": readers.refused(name),
    }
    return _json(state)


def _process(running: Any, allowed: Allowed) -> Json | None:
    """Return what the page shows of the process that runs an agent. Where it takes requests is for the home's owner."""
    return running and {"pid": running["pid"], **({"url": running.get("url", "")} if allowed.is_owner else {})}


def _find(request: Request) -> Response:
    allowed, name = _agent(request)
    return _json(find(allowed.readers.searcher(name), allowed.readers.reader(name), request.query_params))


def _answer(request: Request) -> Response:
    allowed, name = _agent(request)
    return _json(answer(allowed.readers.reader(name), request.path_params["what"], request.query_params))


async def _edit(request: Request) -> Response:
    """Send the command in the body to an agent. Answer with its outcome."""
    allowed, name = _agent(request)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RejectedError("a command is sent as application/json.")  # which a form elsewhere cannot send
    if "transfer-encoding" in request.headers:
        raise RejectedError("send the body in one piece, with a Content-Length header.")
    if (length := int(request.headers.get("content-length", "0"))) > LARGEST_BODY:
        raise RejectedError(f"the body has {length} bytes; at most {LARGEST_BODY} are taken.")
    if allowed.read_only:
        raise ForbiddenError("this view is read-only; start it without --read-only to edit.")
    try:
        command = json.loads(await request.body())
        kind, arguments = str(command["kind"]), dict(command["arguments"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RejectedError(f"the command cannot be read: {error}.") from None
    return _json(to_json(await run_in_threadpool(allowed.readers.edit, name, kind, arguments)))


def _agent(request: Request) -> tuple[Allowed, str]:
    allowed: Allowed = request.scope["allowed"]
    own = request.path_params["name"]
    name = allowed.in_home(own)
    if not allowed.readers.home.exists(name):  # the home's own error would name the agents of others
        raise NotFoundError(f"there is no agent {own!r}.")
    return allowed, name


async def _file(request: Request) -> Response:
    """Answer with one of the page's own files."""
    name = request.path_params.get("file", "index.html")
    if name == "palette.css":
        return _whole("css", palette.as_css().encode())
    folder, kind = files("agents.view").joinpath("page"), name.rpartition(".")[2]
    if kind not in KINDS or name not in {entry.name for entry in folder.iterdir()}:
        raise NotFoundError(f"there is no {name!r}.")
    return _whole(kind, folder.joinpath(name).read_bytes())


ROUTES = [
    Route("/", _file),
    Route("/{file}", _file),
    Route("/api/agents", _agents),
    Route("/api/fleet", _fleet),
    Route("/api/{name}/state", _state),
    Route("/api/{name}/find", _find),
    Route("/api/{name}/edit", _edit, methods=["POST"]),
    Route("/api/{name}/{what}", _answer),
]


def _json(value: Any, status: int = HTTPStatus.OK) -> Response:
    return _whole("json", json.dumps(value, ensure_ascii=False).encode(errors="replace"), status)


def _failed(status: int, text: str) -> Response:
    """Return an answer after which the connection ends: what is refused is not read."""
    answer = _json({"error": text}, status)
    answer.headers["Connection"] = "close"
    return answer


def _whole(kind: str, body: bytes, status: int = HTTPStatus.OK) -> Response:
    return Response(body, status, {**HEADERS, "Content-Type": f"{KINDS[kind]}; charset=utf-8"})
