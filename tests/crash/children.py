"""Processes that may die: started in a millisecond, heard line by line, ended by kill -9 where the test wants it.

    nursery = Nursery()                                  # one Python, its imports done
    life = nursery.run("tests.crash.load:live", directory, 7, kill_after_s=0.05)
    life.said                                            # what it printed: one JSON value per line
    life.signal                                          # 9 when it was killed, 0 when it ended by itself

A job is a function of this repository with JSON arguments. It runs in a fork of a process that holds nothing but
imports: no file, no thread, no database. `Nursery.begin` and `Life.next` are for lives that talk while they last.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pager import tokens
from tests.support.embedders import Words

ROOT = Path(__file__).resolve().parents[2]
STARTED, ENDED, FAILED = "__started__", "__ended__", "__failed__"


def say(*what: Any) -> None:
    """One line to whoever started this process, in the pipe when this returns. Short ones arrive whole or not."""
    os.write(1, (json.dumps(what) + "\n").encode())


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Life:
    """One child: what it has said so far, and how it ended."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self.said: list[list[Any]] = []
        self.signal: int | None = None
        started, self.pid = nursery.read()
        assert started == STARTED

    def next(self) -> list[Any] | None:
        """The next thing it says; None when it has ended."""
        while self.signal is None:
            line = self._nursery.read()
            if line[0] == FAILED:
                self.end()
                raise AssertionError(f"a child failed:\n{line[1]}")
            if line[0] == ENDED:
                self.signal = line[1]
            else:
                self.said.append(line)
                return line
        return None

    def until(self, kind: str) -> list[Any]:
        while (line := self.next()) is not None:
            if line[0] == kind:
                return line
        raise AssertionError(f"the child ended ({self.signal}) without saying {kind!r}; it said {self.said[-5:]}")

    def tell(self) -> None:
        """Let a child go on that waits in `heard`."""
        self._nursery.write("")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        while self.next() is not None:
            pass


def heard() -> None:
    """In a child: wait until the test tells it to go on."""
    sys.stdin.buffer.raw.readline()  # type: ignore[union-attr]


class Nursery:
    """A process that forks children, one at a time."""

    def __init__(self, *preload: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.children", *preload],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, function: str, *args: Any, kill_after_s: float | None = None) -> Life:
        arguments = [str(each) if isinstance(each, Path) else each for each in args]
        self.write(json.dumps({"run": function, "args": arguments, "kill_after_s": kill_after_s}))
        return Life(self)

    def run(self, function: str, *args: Any, kill_after_s: float | None = None) -> Life:
        life = self.begin(function, *args, kill_after_s=kill_after_s)
        life.end()
        return life

    def read(self) -> list[Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the process that forks children has ended with {self._process.wait()}")
        return json.loads(line)

    def write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- the other side


def _jobs() -> Iterator[dict[str, Any]]:
    """Unbuffered: a line that is meant for a child must not be read here."""
    while line := sys.stdin.buffer.raw.readline():  # type: ignore[union-attr]
        yield json.loads(line)


def _live(job: dict[str, Any]) -> None:
    code = 1
    try:
        module, _, name = job["run"].partition(":")
        getattr(import_module(module), name)(*job["args"])
        code = 0
    except BaseException:  # noqa: BLE001  whatever it was, the test has to see it
        say(FAILED, traceback.format_exc())
    finally:
        os._exit(code)


def _attend(child: int, alive: int, kill_after_s: float | None) -> int:
    """Wait for the child, or until its time is over; the signal that ended it. `alive` is readable when it is dead."""
    if kill_after_s is not None and not select.select([alive], [], [], kill_after_s)[0]:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def main() -> None:
    for module in ("pager.memory", "numpy", "tests.standin", "tests.crash.load", *sys.argv[1:]):
        import_module(module)
    tokens.total("the table of tokens, read once for all")
    Words().embed(["what it imports"])  # a child that is somebody else may not read these files any more
    for job in _jobs():
        alive, kept_by_child = os.pipe()
        gate, opens = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(opens)
            os.read(gate, 1)  # until its number has been said
            _live(job)
        os.close(kept_by_child)
        os.close(gate)
        say(STARTED, child)
        os.close(opens)
        ended_by = _attend(child, alive, job["kill_after_s"])
        os.close(alive)
        say(ENDED, ended_by)


if __name__ == "__main__":
    main()
