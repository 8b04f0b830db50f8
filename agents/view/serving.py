"""The server of `selfpager view`, for one person on this machine.

It listens on 127.0.0.1 alone. The address carries a token, and whatever comes without it, or for another host (a page
elsewhere whose name was made to point here), is refused before anything is read.

    with ViewServer(readers, port=0) as server:
        print(server.address)
"""

import secrets
from hmac import compare_digest
from threading import Event

from starlette.requests import Request

from agents.httpd import ForbiddenError, HttpServer, check_caller
from agents.view.readers import Readers
from agents.view.routes import Allowed, View


class ViewServer(HttpServer):
    """Answers while its block lasts. The page is at `address`."""

    def __init__(self, readers: Readers, *, port: int = 0, read_only: bool = False) -> None:
        self.token = secrets.token_urlsafe(18)
        self.was_opened = Event()  # set by the first request with the token
        self._allowed = Allowed(readers, read_only)
        super().__init__(View(self._access), port=port)

    @property
    def address(self) -> str:
        """Return the address of the page, with its token."""
        return f"{self.url}/{self.token}/"

    def close(self) -> None:
        """Stop, and close the readers."""
        super().close()
        self._allowed.readers.close()

    async def _access(self, request: Request) -> Allowed:
        """Let in whoever has the token. It is the beginning of the path, and no part of it for the page's routes."""
        check_caller(request.scope)
        first = request.scope["path"].split("/")[1:2] or [""]  # `GET *` has no slash
        if not compare_digest(first[0].encode(), self.token.encode()):
            raise ForbiddenError("the address needs its token: open the one that `selfpager view` printed.")
        self.was_opened.set()
        request.scope["root_path"] = f"/{self.token}"
        return self._allowed
