"""A fleet on this machine: workers as processes of `selfpager serve`, other commands, and requests.

with TemporaryDirectory() as folder:
    fleet = Fleet.make(Path(folder), address, os.environ)
    with fleet.worker() as worker:
        worker.wait_until_it_answers()
        worker.post("/v1/agents", {"id": "dana", "config": "desk"})
"""

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError

from agents.demo.stage import LOG, DemoError, text_of
from pager.home import Home
from pager.types import Json

FILES = ("desk.yaml", "desk.replies.yaml", "railway.py")
LEASE_SECONDS = 3
WAIT_SECONDS = 120  # for an answer; a lease of a worker that died ends long before


@dataclass(frozen=True, slots=True)
class Fleet:
    """The folder of the agent's files and of all caches, the home, and the environment and key of its processes."""

    folder: Path
    address: str
    environ: Mapping[str, str]
    key: str

    @classmethod
    def make(cls, folder: Path, database: str, environ: Mapping[str, str]) -> Self:
        """Write the agent's files, and make a key. What a person has set for agents of their own is left out."""
        for name in FILES:
            (folder / name).write_text(text_of(name), encoding="utf-8")
        others = ("SELFPAGER_", "PG")
        kept = {name: value for name, value in environ.items() if not name.startswith(others)}
        address = f"{database}&lease_seconds={LEASE_SECONDS}"
        fleet = cls(folder, address, {**kept, "PYTHONUTF8": "1", "TMPDIR": str(folder)}, "")
        made = json.loads(fleet.run("keys", "add", "demo", "--scope", "admin", "--json"))
        return cls(folder, address, fleet.environ, made["key"])

    @property
    def home(self) -> Home:
        """Return the home, to look something up."""
        return Home(self.address)

    def worker(self) -> "Worker":
        """Start a worker."""
        return Worker(self._command("serve", str(self.folder / "desk.yaml")), self.environ, self.folder / LOG, self.key)

    def run(self, *arguments: str) -> str:
        """Run a command to its end, and return what it prints. Raises DemoError if it fails."""
        done = subprocess.run(
            self._command(*arguments), env=dict(self.environ), capture_output=True, encoding="utf-8", check=False
        )
        if done.returncode:
            raise DemoError(f"selfpager {' '.join(arguments)} ended with exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "agents", *arguments, "--home", self.address]


class LostError(Exception):
    """The worker died before it answered."""


class Worker:
    """A worker, inside of `with`. It answers when it is made. An exception kills it; else it is let go in order."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: Path, key: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:  # free again at once, and nobody is given it so soon
            port = taken.getsockname()[1]
        self.url, self._key, self._log = f"http://127.0.0.1:{port}", key, log
        options = ("--port", str(port), "--advertise", self.url, "--json")
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                env=dict(environ), start_new_session=True,  # Ctrl-C is for the demo, which then ends its processes
            )  # fmt: skip
        self.pid = self._process.pid

    def wait_until_it_answers(self) -> None:
        """Return when requests are answered: then it has printed its address. Raises DemoError if it has ended."""
        assert self._process.stdout
        if not self._process.stdout.readline():
            code = self._process.wait()
            tail = self._log.read_text(encoding="utf-8", errors="replace")[-600:]
            raise DemoError(f"worker {self.pid} ended with exit code {code}. The end of {self._log}:\n{tail}")

    def post(self, path: str, body: Json, **headers: str) -> Json:
        """Send a request and return its answer. Raises LostError if the worker dies meanwhile."""
        given = {"x-api-key": self._key, "content-type": "application/json", **headers}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), given)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(request, timeout=WAIT_SECONDS) as answer:
                return json.load(answer)
        except HTTPError as error:
            text = error.read().decode("utf-8", "replace")[:300]
            raise DemoError(f"POST {path} was answered with {error.code}: {text}") from None
        except (OSError, HTTPException) as error:
            raise LostError(str(error)) from error

    def kill(self) -> int:
        """Send SIGKILL, and return the exit code."""
        self._process.kill()
        return self._end()

    def stop(self) -> int:
        """Send SIGTERM, wait until it has given back its agents, and return the exit code."""
        self._process.terminate()
        return self._end()

    def _end(self) -> int:
        code = self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()
