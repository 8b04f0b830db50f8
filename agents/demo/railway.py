"""The errand's own tool, and the slow server that it asks. As in any YAML file, `use:` names a plain function.

The demo plays the server: it keeps a first question waiting for as long as it likes, and answers the next one.
"""

from __future__ import annotations

import os
import socket
from typing import Self

from agents.demo.stage import DemoFailed

LOOPBACK = "127.0.0.1"
PORT_VARIABLE = "SELFPAGER_DEMO_RAILWAY_PORT"
PATIENCE_SECONDS = 120.0


def timetable(route: str) -> str:
    """Departures on a route, from the railway's server."""
    with socket.create_connection((LOOPBACK, int(os.environ[PORT_VARIABLE]))) as line:
        line.sendall(f"{route}\n".encode())
        return line.makefile(encoding="utf-8").read()


class Railway:
    """Listens; each question waits until it is answered. `asked` counts them."""

    def __init__(self) -> None:
        self._listener = socket.create_server((LOOPBACK, 0))
        self._listener.settimeout(PATIENCE_SECONDS)
        self._waiting: socket.socket | None = None
        self.asked = 0

    @property
    def environ(self) -> dict[str, str]:
        """Where the tool finds it."""
        return {PORT_VARIABLE: str(self._listener.getsockname()[1])}

    def wait(self) -> str:
        """Until a tool asks; its route. It gets no answer yet."""
        self._hang_up()
        try:
            self._waiting, _ = self._listener.accept()
        except TimeoutError:
            raise DemoFailed(f"nobody asked the railway within {PATIENCE_SECONDS:.0f} seconds.") from None
        self._waiting.settimeout(PATIENCE_SECONDS)
        self.asked += 1
        return self._waiting.makefile(encoding="utf-8").readline().strip()

    def answer(self, text: str) -> None:
        assert self._waiting is not None
        self._waiting.sendall(text.encode())
        self._hang_up()

    def _hang_up(self) -> None:
        if self._waiting:
            self._waiting.close()
            self._waiting = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()
        self._listener.close()
