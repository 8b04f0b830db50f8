"""The demo's home, and its agents as processes of the real command line.

A process prints each event as a line of JSON. Its stderr goes into `demo.log` in the home.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Self

from pager.errors import PagerError, RejectedError, StorageError
from pager.reader import MemoryReader
from pager.types import Json, Usage

AGENTS = ("guide", "everything", "errand")
FILES = (*(f"{name}.yaml" for name in AGENTS), "guide.replies.yaml", "errand.replies.yaml", "railway.py")
LOG = "demo.log"
CHOICES = frozenset({"GUIDE_PROVIDER", "GUIDE_MODEL"})  # a person who has tried a real model may still have them set


class DemoError(PagerError):
    """Something that the demo says is not so. The text says what."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message, and the output of a process for it."""

    asked: str
    events: tuple[Json, ...]

    @property
    def answer(self) -> str:
        """Return the text of the last reply."""
        replies = [index for index, event in enumerate(self.events) if event["event"] == "replied"]
        start = replies[-2] if len(replies) > 1 else 0
        return "".join(event["text"] for event in self.events[start:] if event["event"] == "text")

    @property
    def calls(self) -> list[tuple[str, Json, str]]:
        """Return the tool calls: name, arguments, result."""
        inputs = {event["call_id"]: event["input"] for event in self.events if event["event"] == "toolstarted"}
        done = [event for event in self.events if event["event"] == "toolfinished"]
        return [(event["name"], inputs[event["call_id"]], event["text"]) for event in done]

    @property
    def usages(self) -> list[tuple[str, Usage]]:
        """Return each reply's step and what its request cost."""
        return [(event["step"], Usage(**event["usage"])) for event in self.events if event["event"] == "replied"]

    def paged(self, kind: str) -> list[Json]:
        """Return the movements of this kind, as the ledger has them."""
        paged = [event["movement"] for event in self.events if event["event"] == "paged"]
        return [movement for movement in paged if movement["event"] == kind]


class Process:
    """A running command. An orderly exit from `with` requires exit code 0; an exception kills it."""

    def __init__(self, command: list[str], environ: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8",
                env=dict(environ), start_new_session=True,  # Ctrl-C is for the demo, which then ends its processes
            )  # fmt: skip
        self.pid = self._process.pid

    def events(self) -> Iterator[Json]:
        """Yield what the process prints."""
        assert self._process.stdout
        return map(json.loads, self._process.stdout)

    def say(self, text: str) -> Exchange:
        """Send a message and return everything that happens until it is answered."""
        with suppress(BrokenPipeError):  # it has ended: there are no events then
            print(text, file=self._process.stdin, flush=True)
        events: list[Json] = []
        for event in self.events():
            events.append(event)
            if event["event"] == "stopped":
                return Exchange(text, tuple(events))
        raise self._failed()

    def kill(self) -> int:
        """Send SIGKILL, and return the exit code."""
        self._process.kill()
        self._process.communicate()
        return self._process.returncode

    def _failed(self) -> DemoError:
        code = self._process.wait()
        tail = self._log.read_text(encoding="utf-8", errors="replace")[-600:]
        return DemoError(f"process {self.pid} ended with exit code {code}. The end of {self._log}:\n{tail}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.kill()
        elif self._process.returncode is None:
            self._process.communicate()
            if self._process.returncode:
                raise self._failed()


@dataclass(frozen=True, slots=True)
class Stage:
    """The demo's home, and the environment of its processes."""

    home: Path
    environ: Mapping[str, str]

    @classmethod
    def make(cls, home: Path, environ: Mapping[str, str]) -> Self:
        """Write the agents' files into a home that has none of these agents yet."""
        taken = [name for name in AGENTS if (home / name).exists() or (home / f"{name}.yaml").exists()]
        if taken:
            raise RejectedError(f"{home} already holds {', '.join(taken)} of a demo; give --home a fresh directory.")
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in FILES:
                (home / name).write_text(text_of(name), encoding="utf-8")
        except OSError as error:
            way = "Give --home a directory that you may write to, on a disk with free space"
            raise StorageError(f"the demo cannot be written into {home}: {error.strerror}. {way}.") from None
        return cls(home, {**{name: value for name, value in environ.items() if name not in CHOICES}, "PYTHONUTF8": "1"})

    def start(self, command: str, name: str, *arguments: str) -> Process:
        """Start `chat` or `run` with an agent."""
        file = str(self.home / f"{name}.yaml")
        return Process(self.command(command, file, *arguments, "--json"), self.environ, self.home / LOG)

    def command(self, *arguments: str) -> list[str]:
        """Return a command of this command line in the home, with the interpreter that runs the demo."""
        return [sys.executable, "-m", "agents", *arguments, "--home", str(self.home)]

    def memory(self, name: str) -> MemoryReader:
        """Open the memory of an agent to look something up."""
        return MemoryReader.open(self.home / name)


def text_of(name: str) -> str:
    """Return a file of the demo."""
    return files("agents.demo").joinpath(name).read_text(encoding="utf-8")
