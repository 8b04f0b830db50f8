"""`builtin: shell`: one command in a directory.

A person is asked before each command, but for those whose words `allow` names: these run without a shell. Where
bubblewrap works, commands run inside of it (`sandbox`). In any case they get few variables and none of the agent's
secrets, no input, bounded output, processes and memory, and they end, with all that they have started, at the time-out,
when the turn is interrupted, and with the agent (`supervisor`). Nothing that a command started stays behind it.
"""

import os
import select
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Lock

from agents.builtin import sandbox, supervisor
from agents.builtin.protected import Protected
from agents.config.tool_sections import ANY, ShellTool
from agents.logs import log
from agents.tools.functions import Json, Tool, ToolConfigError
from pager import RejectedError

MAX_PROCESSES = 256
MAX_MEMORY_MB = 4_096
HEAD_BYTES = TAIL_BYTES = 200_000  # of the output; what is between them is dropped
MAX_OUTPUT_BYTES = 64 << 20  # then the command is ended
MAX_COMMAND_CHARS = 20_000
GRACE_SECONDS = 10.0
PASSED_ON = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "VIRTUAL_ENV"})
ADDED = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1"}
_OF_SHELLS = frozenset(";&|<>$()`\n\r\0")


def words_of(command: str) -> list[str]:
    """Return the words of one simple command; none if it needs a shell, or cannot be read."""
    if _OF_SHELLS & set(command):
        return []
    try:
        return shlex.split(command)
    except ValueError:  # a quote that is never closed
        return []


def allows(patterns: Sequence[Sequence[str]], command: str) -> bool:
    """Return True if the words of a simple command are those of a pattern, whose last may stand for any words."""
    words = words_of(command)
    for pattern in patterns if words else ():
        if [*pattern] == words or (pattern[-1:] == (ANY,) and [*pattern[:-1]] == words[: len(pattern) - 1]):
            return True
    return False


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a command gets: some that are known to be no secrets, and none else."""
    kept = {name: value for name, value in environ.items() if name in PASSED_ON or name.startswith("LC_")}
    places = [place for place in kept.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(place)]  # noqa: PTH117
    return {**kept, **ADDED, "PATH": os.pathsep.join(places)}


def shell_tool(section: ShellTool, folder: Path, protected: Protected, opened: ExitStack | None) -> Tool:
    """Return run_command in the section's directory, relative to `folder`. Raise ToolConfigError if there is none, or
    if there is no sandbox where one is required."""
    directory = folder / Path(section.directory).expanduser()
    if not directory.is_dir():
        raise ToolConfigError(f"directory: there is no directory {directory}. Create it, or correct the path.")
    against = "" if section.sandbox == "off" else sandbox.reason_against()
    if against and section.sandbox == "required":
        raise ToolConfigError(f"sandbox: it is required, but {against}. Install it, or write 'sandbox: if_available'.")
    if against:
        log.warning("commands run without a sandbox: %s", against)
    shell = Shell(directory.resolve(), section, protected, inside=section.sandbox != "off" and not against)
    if opened:
        opened.callback(shell.end)

    def unasked(raw: Json) -> bool:
        command = raw.get("command")
        return isinstance(command, str) and allows(section.allow, command)

    tool = Tool.of(
        shell.run_command, approve=section.approve, trust=section.trust, unasked=unasked, leave=shell.end,
        timeout_seconds=section.timeout_seconds + GRACE_SECONDS,
    )  # fmt: skip
    if not shell.inside:
        return tool
    network = "" if section.network else ", and there is no network"
    sandboxed = f"Commands run in a sandbox: they can write in that directory and in /tmp alone{network}."
    return replace(tool, description=f"{tool.description}\n{sandboxed}")


class Shell:
    """Commands in one directory."""

    def __init__(self, directory: Path, section: ShellTool, protected: Protected, *, inside: bool) -> None:
        self._directory = directory
        self._section = section
        self._protected = protected
        self.inside = inside
        self._running = set["_Running"]()
        self._lock = Lock()

    def run_command(self, command: str) -> str:
        """Run a command in the agent's directory and return its exit code and what it printed. It gets no input, and
        nothing that it starts stays behind it. Each call begins in that directory again.

        Args:
            command: A simple command, such as git status, or a line for a shell.
        """
        if len(command) > MAX_COMMAND_CHARS or "\0" in command:
            raise RejectedError(f"the command is longer than {MAX_COMMAND_CHARS:,} characters, or has a NUL.")
        if not self._directory.is_dir():
            raise RejectedError(
                f"{self._directory}, in which commands run, is not there any more. Say so to the person."
            )
        words = words_of(command) if allows(self._section.allow, command) else ["/bin/sh", "-c", command]
        if self.inside:
            words = sandbox.command_inside(
                words, self._directory, network=self._section.network, hidden=self._protected.memories(),
                fixed=self._protected.files(),
            )  # fmt: skip
        running = _Running(words, self._directory)
        with self._lock:
            self._running.add(running)
        try:
            return running.finish(self._section.timeout_seconds)
        finally:
            with self._lock:
                self._running.discard(running)

    def end(self) -> None:
        """End all commands that run."""
        with self._lock:
            for each in self._running:
                each.end()


class _Running:
    """A command below its supervisor."""

    def __init__(self, words: Sequence[str], directory: Path) -> None:
        limits = [str(MAX_PROCESSES), str(MAX_MEMORY_MB)]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, *limits, *words], cwd=directory,
            env=environment(os.environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        self._lock = Lock()

    def end(self) -> None:
        """Make the supervisor end everything."""
        with self._lock:
            if self._process.stdin:
                self._process.stdin.close()

    def finish(self, timeout_seconds: float) -> str:
        """Return the exit code and the output of the command when it has ended, which it does at the time-out."""
        output = _Output()
        assert self._process.stdout
        ended = ""
        try:
            for piece in _pieces(self._process.stdout.fileno(), time.monotonic() + timeout_seconds):
                if piece is None:
                    ended = f"was ended after {timeout_seconds:g} s"
                    break
                output.add(piece)
                if output.size > MAX_OUTPUT_BYTES:
                    ended = f"was ended after it had printed {MAX_OUTPUT_BYTES >> 20} MB"
                    break
        finally:
            self.end()
            self._process.stdout.close()
            code = self._wait()
        return output.told(ended or f"exit code {code}")

    def _wait(self) -> int:
        try:
            return self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # a process that the system cannot end; what is below ends with its parents
            self._process.kill()
            return self._process.wait()


class _Output:
    """The beginning and the end of what a command prints."""

    def __init__(self) -> None:
        self.size = 0
        self._head = b""
        self._tail = deque[bytes]()
        self._in_tail = 0

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        room = HEAD_BYTES - len(self._head)
        self._head += piece[:room]
        if rest := piece[room:]:
            self._tail.append(rest)
            self._in_tail += len(rest)
            while self._in_tail - len(self._tail[0]) >= TAIL_BYTES:
                self._in_tail -= len(self._tail.popleft())

    def told(self, how: str) -> str:
        tail = b"".join(self._tail)[-TAIL_BYTES:]
        dropped = self.size - len(self._head) - len(tail)
        between = f"\n[{dropped:,} bytes are left out here]\n".encode() if dropped else b""
        text = (self._head + between + tail).decode("utf-8", "replace").replace("\r\n", "\n").rstrip("\n")
        return f"{how}; it printed {self.size:,} bytes:\n{text}" if text else f"{how}; it printed nothing."


def _pieces(descriptor: int, deadline: float) -> Generator[bytes | None]:
    """Yield what can be read until the end; None when the time is over."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            yield None
            return
        if not (piece := os.read(descriptor, 1 << 16)):
            return
        yield piece
