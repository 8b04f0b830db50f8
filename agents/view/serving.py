"""The debug view over HTTP, for one person on this machine.

It listens on 127.0.0.1 alone. The address carries a token, and whatever comes without it, or for another host (a page
elsewhere whose name was made to point here), is refused before anything is read. Nothing is loaded from elsewhere, and
the browser is told to run and to load nothing but the page's own files: texts of an agent stay texts.

    with ViewServer(readers, port=0) as server:
        print(server.address)
"""

import json
import secrets
from collections.abc import Mapping
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from importlib.resources import files
from threading import Event
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from agents import palette
from agents.explain.json_form import to_json
from agents.loopback import ForbiddenError, LoopbackHandler, LoopbackServer, check_caller
from agents.view.answers import answer, find
from agents.view.readers import Readers
from pager.errors import NotFoundError, PagerError, RejectedError

LARGEST_BODY = 4 << 20
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


class ViewServer(LoopbackServer):
    """Answers from the moment it is made. The page is at `address`."""

    def __init__(self, readers: Readers, *, port: int = 0, read_only: bool = False) -> None:
        self.readers = readers
        self.read_only = read_only
        self.token = secrets.token_urlsafe(18)
        self.was_opened = Event()  # set by the first request with the token
        super().__init__(partial(_Handler, self), port=port, name="debug view")

    @property
    def address(self) -> str:
        """Return the address of the page, with its token."""
        return f"{self.base_url}/{self.token}/"

    def close(self) -> None:
        """Stop, and close the readers."""
        super().close()
        self.readers.close()

    def checked_path(self, path: str) -> list[str]:
        """Return the parts of the path behind the token. Raise ForbiddenError for other callers."""
        first, *rest = [unquote(part) for part in path.split("/")[1:]] or [""]  # `GET *` has no slash
        if not compare_digest(first.encode(), self.token.encode()):
            raise ForbiddenError("the address needs its token: open the one that `selfpager view` printed.")
        self.was_opened.set()
        return rest

    def get(self, parts: list[str], query: Mapping[str, str]) -> Any:
        """Return what a GET under api/ answers."""
        home = self.readers.home
        match parts:
            case ["agents"]:
                return {"agents": home.names(), "read_only": self.read_only, "home": home.address}
            case ["fleet"]:
                return {"agents": home.names(), "fleet": self.readers.fleet()}
            case [name, "state"]:
                return {
                    "agents": home.names(),
                    "revision": self.readers.revision(name),
                    "running": home.owner(name),
                    "waiting": self.readers.pending(name, apply=not self.read_only),
                    "refused": self.readers.refused(name),
                }
            case [name, "find"]:
                return find(self.readers.searcher(name), self.readers.reader(name), query)
            case [name, what]:
                return answer(self.readers.reader(name), what, query)
            case _:
                raise NotFoundError(f"there is nothing at {'/'.join(parts)}.")

    def edit(self, name: str, body: bytes) -> Any:
        """Send the command in `body` to an agent. Return its outcome."""
        if self.read_only:
            raise ForbiddenError("this view is read-only; start it without --read-only to edit.")
        try:
            command = json.loads(body)
            kind, arguments = str(command["kind"]), dict(command["arguments"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RejectedError(f"the command cannot be read: {error}.") from None
        return to_json(self.readers.edit(name, kind, arguments))


class _Handler(LoopbackHandler):
    """One connection. Everything that is decided is decided by the `ViewServer`."""

    timeout = 60

    def __init__(self, view: ViewServer, *arguments: Any) -> None:
        self._view = view
        super().__init__(*arguments)

    def answer(self, method: str) -> None:
        try:
            self._send(HTTPStatus.OK, *self._found(method))
        except PagerError as error:
            missing = HTTPStatus.NOT_FOUND if isinstance(error, NotFoundError) else HTTPStatus.BAD_REQUEST
            status = HTTPStatus.FORBIDDEN if isinstance(error, ForbiddenError) else missing
            self._send(status, "json", _json({"error": str(error)}))
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:  # noqa: BLE001 - the page shows it, and the view goes on
            text = _json({"error": f"{type(error).__name__}: {error}"})
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "json", text)

    def _found(self, method: str) -> tuple[str, bytes]:
        self.close_connection, kept = True, self.close_connection  # what is refused is not read
        check_caller(self._view.port, self.headers.get_all("Host", []), self.headers.get_all("Origin", []))
        try:
            address = urlsplit(self.path)
        except ValueError as error:
            raise RejectedError(f"the address cannot be read: {error}.") from None
        parts = self._view.checked_path(address.path)
        self.close_connection = kept
        body = self.read_body(LARGEST_BODY)
        if method == "POST":
            if len(parts) != 3 or (parts[0], parts[2]) != ("api", "edit"):
                raise NotFoundError("this address takes no commands.")
            if self.headers.get_content_type() != "application/json":  # what a form elsewhere cannot send
                raise RejectedError("a command is sent as application/json.")
            return "json", _json(self._view.edit(parts[1], body))
        if parts[:1] == ["api"]:
            query = dict(parse_qsl(address.query, keep_blank_values=True))
            return "json", _json(self._view.get(parts[1:], query))
        name = "/".join(parts) or "index.html"
        if name == "palette.css":
            return "css", palette.as_css().encode()
        folder, kind = files("agents.view").joinpath("page"), name.rpartition(".")[2]
        if kind not in KINDS or name not in {entry.name for entry in folder.iterdir()}:
            raise NotFoundError(f"there is no {name!r}.")
        return kind, folder.joinpath(name).read_bytes()

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_whole(status, f"{KINDS[kind]}; charset=utf-8", body, HEADERS)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
