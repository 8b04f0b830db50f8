"""A server of the Messages API in a process of its own, whatever answers: the stand-in, or a bench's quick server.

with ServerProcess("tests.bench.quick_server:Quick") as server:      # a factory of a `Service`, and its arguments
    client = Anthropic(base_url=server.base_url, api_key="none")
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]


def named(reference: str) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


class ServerProcess:
    """The process runs as long as the `with` block: it ends when its standard input closes."""

    def __init__(self, factory: str, **arguments: Any) -> None:
        self._command = [sys.executable, "-m", __name__, factory, json.dumps(arguments)]
        self.base_url = ""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        self.base_url = self._process.stdout.readline().strip()
        if not self.base_url:
            self.__exit__()
            raise RuntimeError(f"the server did not start: {' '.join(self._command)}")
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            assert process.stdin
            process.stdin.close()

    def control(self, command: str, **body: Any) -> Any:
        request = urllib.request.Request(
            f"{self.base_url}/control/{command}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return json.load(answer)


def main(factory: str, arguments: str) -> None:
    from agents.testing.messages_server import MessagesServer

    with MessagesServer(named(factory)(**json.loads(arguments))) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
