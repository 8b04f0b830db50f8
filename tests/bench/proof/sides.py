"""The sides of a comparison as processes: started with the interpreter that each needs, driven by JSON lines.

    with Side.start("mem0", base_url, directory, cache) as side: side.ask("turn", text="hello")

`available` says which there are; a peer is there when its environment is (`environments`).
"""

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from tests.bench.figures import ROOT
from tests.bench.proof import environments

OURS, WORDS, SAME = "ours", "ours, without an embedder", "bare SDK, our requests"
BARE, RUNNER, MEM0, LANGGRAPH = "bare SDK", "SDK tool runner + file memory", "mem0", "langgraph + SQLite"
DELTA = "langgraph + SQLite, its delta channel (beta)"
COMMANDS = {  # modules of tests.bench, and their arguments
    OURS: "proof.our_side",
    WORDS: "proof.our_side words",
    SAME: "proof.our_side again",
    BARE: "peers.bare_sdk",
    RUNNER: "peers.tool_runner",
    MEM0: "peers.mem0_side",
    LANGGRAPH: "peers.langgraph_side",
    DELTA: "peers.langgraph_side delta",
}
OF_SCALE = {  # no conversations
    "archive": "proof.scale_sides ours",
    "archive on a server": "proof.scale_sides server",
    "archive, words only": "proof.scale_sides words",
    "bare Chroma": "proof.scale_sides chroma",
    "agents": "proof.scale_sides agents",
}
OWN_ENVIRONMENT = {MEM0: "mem0", LANGGRAPH: "langgraph", DELTA: "langgraph"}
START_SECONDS = 120.0


class Ended(Exception):
    """A side's process is gone."""


class Failed(Exception):
    """What a side raised, in its words, or that it has not answered in its time."""


FAILURES = (Failed, Ended)


def available(cache: Path) -> list[str]:
    return [
        name for name in COMMANDS if name not in OWN_ENVIRONMENT or environments.python(cache, OWN_ENVIRONMENT[name])
    ]


class Side:
    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        self.name, self.process = name, process
        self._in, self._out = process.stdin, process.stdout
        self._rest = b""

    @classmethod
    def start(cls, name: str, base_url: str, directory: Path, cache: Path, *more: str) -> Self:
        directory.mkdir(parents=True, exist_ok=True)
        own = OWN_ENVIRONMENT.get(name)
        python = (environments.python(cache, own) if own else None) or sys.executable
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        module, *words = (COMMANDS | OF_SCALE)[name].split()
        command = [python, "-m", f"tests.bench.{module}", base_url, directory, *words, *more]
        pipe = subprocess.PIPE
        with (directory.parent / f"{directory.name}.stderr").open("ab") as errors:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environ, stdin=pipe, stdout=pipe, stderr=errors, bufsize=0
            )
        side = cls(name, process)
        try:
            side.answer(START_SECONDS)
        except BaseException:
            side.close()
            raise
        return side

    def ask(self, name: str, *, seconds: float | None = None, **arguments: Any) -> Any:
        self.send(name, **arguments)
        return self.answer(seconds)

    def send(self, name: str, **arguments: Any) -> None:
        """Ask without waiting for the answer."""
        try:
            self._in.write((json.dumps({"do": name, **arguments}) + "\n").encode())
        except BrokenPipeError:
            raise Ended(f"{self.name} ended with {self.process.wait()}") from None

    def answer(self, seconds: float | None) -> Any:
        while b"\n" not in self._rest:
            if not self.has_answered(seconds):
                raise Failed(f"{self.name} has not answered for {seconds:g} s")
            more = os.read(self._out.fileno(), 1 << 20)
            if not more:
                raise Ended(f"{self.name} ended with {self.process.wait()}")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        answer = json.loads(line)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer["did"]

    def has_answered(self, seconds: float | None = 0) -> bool:
        return b"\n" in self._rest or bool(select.select([self._out], [], [], seconds)[0])

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> None:
        self._in.close()
        try:
            self.process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
