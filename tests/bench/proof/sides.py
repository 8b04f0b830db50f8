"""The sides of a comparison as processes: started with the interpreter that each needs, driven by JSON lines.

    with Side.start("mem0", base_url, directory) as side: side.ask("turn", text="hello")

`available` says which there are; a peer is there when its environment is (`environments`).
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.bench.proof import environments

ROOT = Path(__file__).parents[3]
OURS, WORDS, SAME = "ours", "ours, without an embedder", "bare SDK, our requests"
BARE, RUNNER, MEM0, LANGGRAPH = "bare SDK", "SDK tool runner + file memory", "mem0", "langgraph + SQLite"
DELTA = "langgraph + SQLite, its delta channel (beta)"
_OUR_SIDE = "tests.bench.proof.our_side"
COMMANDS = {
    OURS: [_OUR_SIDE],
    WORDS: [_OUR_SIDE, "words"],
    SAME: [_OUR_SIDE, "again"],
    BARE: ["tests.bench.peers.bare_sdk"],
    RUNNER: ["tests.bench.peers.tool_runner"],
    MEM0: ["tests.bench.peers.mem0_side"],
    LANGGRAPH: ["tests.bench.peers.langgraph_side"],
    DELTA: ["tests.bench.peers.langgraph_side", "delta"],
}
_SCALE = "tests.bench.proof.scale_sides"
ARCHIVES = {"ours": [_SCALE, "ours"], "ours, words only": [_SCALE, "words"], "bare Chroma": [_SCALE, "chroma"]}
AGENTS = [_SCALE, "agents"]
OWN_ENVIRONMENT = {MEM0: "mem0", LANGGRAPH: "langgraph", DELTA: "langgraph"}
START_SECONDS = 120.0


class TooSlow(Exception):
    """A side has not answered in its time."""


class Ended(Exception):
    """A side's process is gone."""


class Failed(Exception):
    """What a side raised, as it told it."""


WRONG = (Failed, Ended, TooSlow)


def available(cache: Path) -> list[str]:
    return [
        name for name in COMMANDS if name not in OWN_ENVIRONMENT or environments.python(cache, OWN_ENVIRONMENT[name])
    ]


class Side:
    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.process = process
        self._rest = b""

    @classmethod
    def start(
        cls, name: str, base_url: str, directory: Path, cache: Path, *more: str, command: Sequence[str] = ()
    ) -> Self:
        """`command`: a module of ours and its words, for a side that is not among `COMMANDS`."""
        directory.mkdir(parents=True, exist_ok=True)
        own = OWN_ENVIRONMENT.get(name)
        python = (environments.python(cache, own) if own else None) or sys.executable
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        module, *own_words = command or COMMANDS[name]
        with (directory.parent / f"{directory.name}.stderr").open("ab") as errors:
            process = subprocess.Popen(
                [python, "-m", module, base_url, str(directory), *own_words, *more],
                cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0,
            )  # fmt: skip
        side = cls(name, process)
        try:
            side.answer(START_SECONDS)
        except BaseException:
            side.close()
            raise
        return side

    def ask(self, name: str, *, seconds: float | None = None, **arguments: Any) -> Any:
        self.say(name, **arguments)
        return self.answer(seconds)

    def say(self, name: str, **arguments: Any) -> None:
        """Ask without waiting; whoever kills it next needs no answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write((json.dumps({"do": name, **arguments}) + "\n").encode())
        except BrokenPipeError:
            raise Ended(f"{self.name} ended with {self.process.wait()}") from None

    def has_answered(self) -> bool:
        """Whether an answer lies there already."""
        assert self.process.stdout is not None
        return b"\n" in self._rest or bool(select.select([self.process.stdout], [], [], 0)[0])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.close()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, seconds: float | None) -> Any:
        answer = json.loads(self._line(seconds))
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer["did"]

    def _line(self, seconds: float | None) -> bytes:
        assert self.process.stdout is not None
        while b"\n" not in self._rest:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                raise TooSlow(f"{self.name} has not answered for {seconds:g} s")
            more = os.read(self.process.stdout.fileno(), 1 << 20)
            if not more:
                raise Ended(f"{self.name} ended with {self.process.wait()}")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line
