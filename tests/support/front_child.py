"""A server in a process of its own, to be killed: `python -m tests.support.front_child FOLDER` prints its address."""

import sys
from pathlib import Path
from threading import Event

from agents.httpd import HttpServer
from agents.serve.app import make_app
from agents.serve.server import Server
from pager.home import Home


def main() -> None:
    folder = Path(sys.argv[1])
    server = Server(Home(folder / "home"), [folder / "clerk.yaml"])
    with HttpServer(make_app(server), port=0) as http:
        server.start()
        print(http.url, flush=True)  # noqa: T201 - the parent reads it
        Event().wait()


main()
