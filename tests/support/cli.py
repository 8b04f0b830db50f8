"""The command line in a process of its own, as a person or a script starts it.

selfpager("show", "x", "--home", home).out               # to its end
with Running("run", file, "task") as running: ...        # at work: signals, lines of standard error
with Terminal("chat", file) as terminal: ...             # on a pseudo-terminal: what is shown, what is typed
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from agents.cli.main import run

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "agents"]
SCRIPTED = "provider: scripted, script: ok.yaml, id: m"
INSIST_S = 2
TIMEOUT_S = 120
# The terminal becomes that of the process, so that its keys send signals; then the process becomes the command.
OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


def environment(**more: str) -> dict[str, str]:
    """Without whatever the person who runs the tests has set for agents of their own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SELFPAGER", "ANTHROPIC"))}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


def selfpager(*arguments: str | Path, said: str = "", cwd: Path | None = None, **environ: str) -> Done:
    """Run it to its end; `said` is its standard input."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], input=said, cwd=cwd, env=environment(**environ), timeout=TIMEOUT_S,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def command_line(*arguments: str | Path, said: str = "") -> Done:
    """Run it in this process; `said` is its standard input."""
    out, err, before = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(said)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = run([*map(str, arguments)])
    finally:
        sys.stdin = before
    return Done(code, out.getvalue(), err.getvalue())


def write_agent(folder: Path, more: str = "", *, name: str = "x", model: str = SCRIPTED) -> Path:
    """A small agent's YAML file. `more` are further lines."""
    (folder / "ok.yaml").write_text("- {otherwise: true, say: ok}\n", encoding="utf-8")
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\nmodel: {{{model}}}\nwindow: {{limit_tokens: 20000}}\n{more}", encoding="utf-8")
    return path


class Running:
    """The command line at work in a process of its own; what it says is read line by line."""

    def __init__(self, *arguments: str | Path, cwd: Path | None = None, **environ: str) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)], cwd=cwd, env=environment(**environ), text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with self._process:
            pass

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def tells(self, text: str) -> str:
        """Wait for a line of its standard error that has `text` in it."""
        assert self._process.stderr
        seen: list[str] = []
        for line in self._process.stderr:
            seen.append(line)
            if text in line:
                return line
        raise AssertionError(f"it ended without {text!r}: {''.join(seen)}")

    def read(self, count: int) -> str:
        """Wait for so many characters of its standard output."""
        assert self._process.stdout
        return self._process.stdout.read(count)

    def line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> Done:
        """No more input; wait for its end."""
        out, err = self._process.communicate(timeout=TIMEOUT_S)
        return Done(self._process.returncode, out, err)


class Terminal:
    """The command line in a terminal: what it shows, what is typed, Ctrl-C as the keyboard sends it."""

    def __init__(
        self, *arguments: str | Path, cwd: Path | None = None, program: Sequence[str] = COMMAND, **environ: str
    ) -> None:
        self._screen, keyboard = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, *program, *map(str, arguments)], cwd=cwd, stdin=keyboard,
            env=environment(**{"TERM": "dumb", **environ}), stdout=keyboard, stderr=keyboard, start_new_session=True,
        )  # fmt: skip
        os.close(keyboard)
        self._seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._screen)

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def resize(self, columns: int, lines: int) -> None:
        """The window has another size now, of which the terminal tells the process."""
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, text: str) -> str:
        """Return the output since the last call, up to and with `text`."""
        while text not in self._seen:
            assert self._read(), f"it ended without {text!r}: {self._seen}"
        shown, found, self._seen = self._seen.partition(text)
        return shown + found

    def end(self, insist: str = "") -> tuple[int, str]:
        """Its exit code, and the rest of what it showed. `insist` is typed again when nothing comes of it: Python does
        not see a Ctrl-C that arrives in the moment before it begins to wait for a line."""
        while self._read(insist):
            pass
        return self._process.wait(TIMEOUT_S), self._seen

    def _read(self, insist: str = "") -> bool:
        ready, _, _ = select.select([self._screen], [], [], INSIST_S if insist else TIMEOUT_S)
        if insist and not ready:
            self.type(insist)
            return True
        assert ready, f"nothing more for {TIMEOUT_S} s: {self._seen}"
        try:
            data = os.read(self._screen, 65536)
        except OSError:  # how Linux says that nobody holds the other end any more
            return False
        self._seen += data.decode(errors="replace")
        return bool(data)
