"""A port for a process that has to be told which one."""

from __future__ import annotations

import socket


def hold_port() -> socket.socket:
    """Return a socket whose port the system gives to nobody else, until it is closed.

    It does not listen, so a server may listen at that port: all of them set SO_REUSEADDR. A port that was only looked
    up may be another test's before the process that was told of it begins to listen.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held
