"""Processes that may die: forked in a millisecond, heard message by message, ended by kill -9 where the test wants it.

    life = run(live, directory, 7)       # to its end; `Life(live, directory, 7)` for one that talks while it lasts
    life.said                            # what it has told: a list per call of `say`
    life.signal                          # 9 when it was killed, 0 when it ended by itself

A job is a function of a module. It runs in a fork of a server that holds nothing but imports: no file, no database.
"""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

FAILED = "__failed__"
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.crash.preloaded"])
_parent: Connection  # in a child


class Life:
    """One child: what it has said so far, and how it ended."""

    def __init__(self, job: Callable[..., None], *args: Any) -> None:
        self.said: list[list[Any]] = []
        self.signal: int | None = None
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = _context.Process(target=_live, args=(theirs, job, args), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def next(self) -> list[Any] | None:
        """Return the next thing it says, None when it has ended."""
        if self.signal is not None:
            return None
        try:
            line = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            self._pipe.close()
            self.signal = -(self._process.exitcode or 0)
            return None
        if line[0] == FAILED:
            raise AssertionError(f"a child failed:\n{line[1]}")
        self.said.append(line)
        return line

    def until(self, kind: str) -> list[Any]:
        while (line := self.next()) is not None:
            if line[0] == kind:
                return line
        raise AssertionError(f"the child ended ({self.signal}) without saying {kind!r}; it said {self.said[-5:]}")

    def kill(self) -> None:
        self._process.kill()
        self.end()

    def end(self) -> None:
        while self.next() is not None:
            pass


def run(job: Callable[..., None], *args: Any) -> Life:
    life = Life(job, *args)
    life.end()
    return life


# In a child:


def say(*what: Any) -> None:
    """Tell whoever started this process. It is in the pipe when this returns."""
    _parent.send(list(what))


def heard() -> None:
    """Wait until the test ends this process."""
    _parent.recv()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _live(parent: Connection, job: Callable[..., None], args: tuple[Any, ...]) -> None:
    global _parent  # noqa: PLW0603  a process has one
    _parent = parent
    try:
        job(*args)
    except BaseException:  # noqa: BLE001  whatever it was, the test has to see it
        say(FAILED, traceback.format_exc())
    finally:
        os._exit(0)
