"""The debug view over HTTP, for one person on this machine.

It listens on 127.0.0.1 alone. The address carries a token, and whatever comes without it, or for another host (a page
elsewhere whose name was made to point here), is refused before anything is read. Nothing is loaded from elsewhere, and
the browser is told to run and to load nothing but the page's own files: texts of an agent stay texts.

    with ViewServer(readers, port=0) as server:
        print(server.address)
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from agents import palette
from agents.explain.json_form import to_json
from agents.loopback import HOST, LoopbackHandler, LoopbackServer
from agents.view.answers import answer
from agents.view.readers import Readers
from pager.errors import NotFoundError, PagerError, RejectedError

NAMES = (HOST, "localhost")
LARGEST_BODY = 4 << 20
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
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


class Forbidden(PagerError):
    """Who asks has no business here."""


class ViewServer:
    """Serves from the moment it is made until it is closed."""

    def __init__(self, readers: Readers, *, port: int = 0, read_only: bool = False) -> None:
        self.readers = readers
        self.read_only = read_only
        self.closed = False
        self.token = secrets.token_urlsafe(18)
        self._server = LoopbackServer(partial(_Handler, self), port=port, name="debug view").start()

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    def close(self) -> None:
        self.closed = True  # connections that are kept open hear nothing any more
        self._server.close()
        self.readers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # what is answered

    def guard(self, method: str, host: str, origin: str | None, path: str) -> list[str]:
        """The parts of the path behind the token, for a request that may be answered."""
        if host not in {f"{name}:{self.port}" for name in NAMES}:
            raise Forbidden("this page is for 127.0.0.1 only.")
        if method == "POST" and origin is not None and origin not in {f"http://{name}:{self.port}" for name in NAMES}:
            raise Forbidden("another page has no business here.")
        first, *rest = [unquote(part) for part in path.split("/")[1:]]
        if not compare_digest(first.encode(), self.token.encode()):
            raise Forbidden("the address needs its token: open the one that `selfpager view` printed.")
        return rest

    def looked_up(self, parts: list[str], query: Mapping[str, str]) -> Any:
        """What a GET under api/ answers."""
        home = self.readers.home
        match parts:
            case ["agents"]:
                return {"agents": home.names(), "read_only": self.read_only, "home": str(home.path)}
            case [name, "state"]:
                return {
                    "agents": home.names(),
                    "revision": self.readers.revision(name),
                    "running": home.owner(name),
                    "waiting": self.readers.pending(name, apply=not self.read_only),
                    "refused": to_json(self.readers.refused(name)),
                }
            case [name, what]:
                return answer(self.readers.reader(name), what, query)
            case _:
                raise NotFoundError(f"there is nothing at {'/'.join(parts)}.")

    def done(self, parts: list[str], body: bytes) -> Any:
        """What a POST under api/ does."""
        match parts:
            case [name, "edit"]:
                if self.read_only:
                    raise Forbidden("this view is read-only; start it without --read-only to edit.")
                kind, arguments = _command(body)
                return to_json(self.readers.edit(name, kind, arguments))
            case _:
                raise NotFoundError(f"nothing can be done at {'/'.join(parts)}.")


def _command(body: bytes) -> tuple[str, Mapping[str, Any]]:
    try:
        told = json.loads(body)
        return str(told["kind"]), dict(told["arguments"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RejectedError(f"the command cannot be read: {error}.") from None


def page_file(name: str) -> tuple[str, bytes]:
    """A file of the page: its type and what it holds."""
    if name == "palette.css":
        return KINDS["css"], palette.as_css().encode()
    folder = files("agents.view").joinpath("page")
    known = {entry.name for entry in folder.iterdir()}
    kind = KINDS.get(name.rpartition(".")[2])
    if name not in known or kind is None:
        raise NotFoundError(f"there is no {name!r}.")
    return kind, folder.joinpath(name).read_bytes()


class _Handler(LoopbackHandler):
    """One connection. Everything that is decided is decided by the `ViewServer`."""

    timeout = 60

    def __init__(self, view: ViewServer, *arguments: Any) -> None:
        self._view = view
        super().__init__(*arguments)

    def answer(self, method: str) -> None:
        if self._view.closed:
            raise ConnectionResetError
        try:
            kind, body = self._found(method)
            self._send(HTTPStatus.OK, kind, body)
        except PagerError as error:
            self._send(_status(error), "application/json", _json({"error": str(error)}))
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:  # noqa: BLE001 - told to the page; the view goes on
            told = f"{type(error).__name__}: {error}"
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "application/json", _json({"error": told}))

    def _found(self, method: str) -> tuple[str, bytes]:
        address = urlsplit(self.path)
        try:
            parts = self._view.guard(method, self.headers.get("Host", ""), self.headers.get("Origin"), address.path)
        except Forbidden:
            self.close_connection = True  # whatever else was sent is not read
            raise
        if method == "POST":
            told = self._view.done(parts[1:], self._body()) if parts[:1] == ["api"] else None
            if told is None:
                self.close_connection = True
                raise NotFoundError("nothing can be done there.")
            return "application/json", _json(told)
        if parts[:1] == ["api"]:
            query = dict(parse_qsl(address.query, keep_blank_values=True))
            return "application/json", _json(self._view.looked_up(parts[1:], query))
        return page_file("/".join(parts) or "index.html")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            self.close_connection = True
            raise RejectedError(f"a command has at most {LARGEST_BODY} bytes, and says how many.")
        body = self.rfile.read(int(length))
        if self.headers.get_content_type() != "application/json":  # what a form elsewhere cannot send
            raise RejectedError("a command is sent as application/json.")
        return body

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_whole(status, f"{kind}; charset=utf-8", body, HEADERS)


def _status(error: PagerError) -> HTTPStatus:
    if isinstance(error, Forbidden):
        return HTTPStatus.FORBIDDEN
    return HTTPStatus.NOT_FOUND if isinstance(error, NotFoundError) else HTTPStatus.BAD_REQUEST


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
