"""Where the demo happens: its home, and its agents as processes of the real command line.

    >>> stage = Stage.make(tmp_path, os.environ)
    >>> with stage.chat("guide") as talk:
    ...     talk.say("My name is Dana.").answer

A process prints each event as a line of JSON; what it says on stderr goes into `demo.log` beside its agent.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, cast

from pager.errors import PagerError, RejectedError
from pager.reader import MemoryReader
from pager.types import Usage

Json = dict[str, Any]
AGENTS = ("guide", "everything", "errand")
LOG = "demo.log"
CHOICES = frozenset({"GUIDE_PROVIDER", "GUIDE_MODEL"})  # who goes on with a real model sets them, perhaps for good
LOG_TAIL_CHARS = 600


class DemoFailed(PagerError):
    """Something that the demo says is not so: the text says what."""


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call and its result."""

    name: str
    input: Json
    result: str

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.input.items())})"


@dataclass(frozen=True, slots=True)
class Turn:
    """What a process printed for one message."""

    asked: str
    events: tuple[Json, ...]

    @property
    def answer(self) -> str:
        """The text of the last reply that has one."""
        said, answer = "", ""
        for event in self.events:
            if event["event"] == "text":
                said += event["text"]
            elif event["event"] == "replied":
                said, answer = "", said or answer
        return answer

    @property
    def calls(self) -> list[Called]:
        started = {event["call_id"]: event for event in self._of("toolstarted")}
        return [
            Called(event["name"], started[event["call_id"]]["input"], event["text"])
            for event in self._of("toolfinished")
        ]

    @property
    def usages(self) -> list[tuple[str, Usage]]:
        """The replies in order, each with what its request cost."""
        return [(event["step"], Usage(**event["usage"])) for event in self._of("replied")]

    def moved(self, kind: str) -> list[Json]:
        """What moved in the memory: rows of the ledger."""
        return [event["movement"] for event in self._of("paged") if event["movement"]["event"] == kind]

    def _of(self, kind: str) -> list[Json]:
        return [event for event in self.events if event["event"] == kind]


class Process:
    """A command that runs. Leaving it in an orderly way wants exit code 0; leaving it by an error kills it."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                env=dict(environ),
                start_new_session=True,  # Ctrl-C is for the demo, which then ends its processes
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, line: str) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def events(self) -> Generator[Json]:
        assert self._process.stdout
        for line in self._process.stdout:
            yield cast(Json, json.loads(line))

    def say(self, text: str) -> Turn:
        """One message, and everything that happens until it is answered."""
        self.tell(text)
        events: list[Json] = []
        for event in self.events():
            events.append(event)
            if event["event"] == "stopped":
                return Turn(text, tuple(events))
        raise self._ended()

    def kill(self) -> int:
        """SIGKILL: nothing in the process gets another moment. Its return code."""
        self._process.kill()
        return self._reaped()

    def leave(self) -> None:
        """End its input, and wait until it has ended by itself."""
        assert self._process.stdin
        self._process.stdin.close()
        for _ in self.events():
            pass
        if self._reaped():
            raise self._ended()

    def _reaped(self) -> int:
        code = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        return code

    def _ended(self) -> DemoFailed:
        code = self._process.wait()
        tail = self._log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL_CHARS:]
        return DemoFailed(f"process {self.pid} ended with exit code {code}. The end of {self._log}:\n{tail}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
            self._reaped()
        elif self._process.returncode is None:
            self.leave()


@dataclass(frozen=True, slots=True)
class Stage:
    home: Path
    environ: Mapping[str, str]

    @classmethod
    def make(cls, home: Path, environ: Mapping[str, str]) -> Self:
        """The agents' files in a home that has none of these agents yet."""
        taken = [name for name in AGENTS if (home / name).exists() or (home / f"{name}.yaml").exists()]
        if taken:
            raise RejectedError(
                f"{home} already holds {', '.join(taken)} of another demo; give --home a fresh directory."
            )
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in AGENTS:
            (home / f"{name}.yaml").write_text(text_of(f"{name}.yaml"), encoding="utf-8")
        return cls(home, {**{name: value for name, value in environ.items() if name not in CHOICES}, "PYTHONUTF8": "1"})

    def file(self, name: str) -> Path:
        return self.home / f"{name}.yaml"

    def chat(self, name: str) -> Process:
        return self.start("chat", str(self.file(name)), "--json")

    def start(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Process:
        """`selfpager ...` in this home, with the interpreter that runs the demo."""
        return Process(self.command(*arguments), {**self.environ, **(environ or {})}, self.home / LOG)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "agents", *arguments, "--home", str(self.home)]

    def reading(self, name: str) -> MemoryReader:
        return MemoryReader.open(self.home / name)


def text_of(name: str) -> str:
    """A file of the demo."""
    return files("agents.demo").joinpath(name).read_text(encoding="utf-8")


def trip() -> list[str]:
    """What Dana says in the eighty turns: a message per line."""
    return text_of("trip.txt").splitlines()
