"""A TCP proxy in front of a Unix socket, which can be far away, be cut off, or swallow what it is sent."""

from __future__ import annotations

import contextlib
import select
import socket
from threading import Event, Lock, Thread
from time import sleep


class Proxy:
    """Passes bytes on in both directions until `lose_answers` or `cut`."""

    def __init__(self, target: str, *, delay_seconds: float = 0) -> None:
        self._target = target
        self._delay_seconds = delay_seconds  # of what is passed on, in each direction
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.attempts = 0  # to connect, refused ones too
        self.requests = 0  # pieces that clients have sent
        self._open: list[socket.socket] = []
        self._lock = Lock()
        self._drops_answers, self._drops_all, self._refuses, self._closed = Event(), Event(), Event(), Event()
        Thread(target=self._accept, daemon=True).start()

    def lose_answers(self) -> None:
        """From now on what clients send arrives, and what they are answered does not: a black hole."""
        self._drops_answers.set()

    def lose_everything(self) -> None:
        """From now on nothing arrives, and nobody is told."""
        self._drops_all.set()

    def cut(self) -> None:
        """End every connection; new ones are refused until `heal`."""
        self._drops_all.set()
        with self._lock:
            self._refuses.set()
            opened, self._open = self._open, []
        for each in opened:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def turn_to(self, target: str) -> None:
        """Pass new connections on to another socket."""
        self._target = target

    def heal(self) -> None:
        """Pass everything on again, for new connections."""
        self.cut()
        self._drops_all.clear()
        self._drops_answers.clear()
        self._refuses.clear()

    def close(self) -> None:
        self._closed.set()
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.attempts += 1
                if self._refuses.is_set():
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._target)
                except OSError:  # nobody is there
                    client.close()
                    server.close()
                    continue
                self._open += [client, server]
            Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._pass_on_all(client, server)
        with self._lock:
            self._open = [each for each in self._open if each not in (client, server)]
        for each in (client, server):
            each.close()

    def _pass_on_all(self, client: socket.socket, server: socket.socket) -> None:
        """Return when one of them has ended."""
        readable = select.poll()
        sides = {each.fileno(): each for each in (client, server)}
        for number in sides:
            readable.register(number, select.POLLIN)
        while True:
            for number, _ in readable.poll():
                each = sides[number]
                data = each.recv(1 << 16)
                if not data:
                    return
                self.requests += each is client
                if self._drops_all.is_set() or (each is server and self._drops_answers.is_set()):
                    continue
                if self._delay_seconds:
                    sleep(self._delay_seconds)
                (server if each is client else client).sendall(data)
