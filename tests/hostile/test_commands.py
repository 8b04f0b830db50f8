"""`builtin: shell` against commands that will not end, that multiply, flood, hide, spy and write where they must not.

A test knows that a process has ended when the last writer of a pipe is gone: nothing is polled.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from agents.builtin import sandbox, shell, supervisor
from tests.support.builtins import BuiltIns
from tests.support.cli import ROOT

WITHOUT, WITHIN = "sandbox: 'off'", "sandbox: required"
DAEMON = "(trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; echo up; exec sleep 1000' > pipe 2>&1 &)"
# A bomb of a size: each of them ignores signals, leads a session of its own, and has lost its parent.
BOMB = f"for number in {' '.join(map(str, range(50)))}; do {DAEMON}; done"
needs_sandbox = pytest.mark.skipif(bool(sandbox.reason_against()), reason=sandbox.reason_against())
both = pytest.mark.parametrize("where", [WITHOUT, pytest.param(WITHIN, marks=needs_sandbox)])


def shell_in(folder: Path, options: str, *, timeout_seconds: float = 60, more: str = "") -> BuiltIns:
    return BuiltIns(folder, f"builtin: shell, approve: never, timeout_seconds: {timeout_seconds}, {options}", more=more)


def those_in(folder: Path) -> list[int]:
    """Return the processes that work in a directory."""
    found = list[int]()
    for each in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended, or is another user's
            if each.name.isdigit() and (each / "cwd").readlink() == folder:
                found.append(int(each.name))
    return found


class Ends:
    """Reads a pipe until whatever writes to it has ended."""

    def __init__(self, folder: Path, ups: int = 1) -> None:
        self._ups = ups
        os.mkfifo(folder / "pipe")
        self._path = folder / "pipe"
        self.is_up = Event()
        self.text = b""
        self._thread = Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with self._path.open("rb") as pipe:
            while piece := pipe.read1():
                self.text += piece
                if self.text.count(b"up\n") >= self._ups:
                    self.is_up.set()

    def wait(self) -> bytes:
        self._thread.join()
        return self.text


@both
def test_at_the_time_out_all_ends_also_what_ignores_signals_and_has_forked_twice(tmp_path: Path, where: str) -> None:
    ends = Ends(tmp_path)
    run = shell_in(tmp_path, where, timeout_seconds=2)
    answer = run("run_command", command=f"trap '' TERM INT HUP; echo begun; {BOMB}; sleep 1000")
    assert answer == "was ended after 2 s; it printed 6 bytes:\nbegun"
    assert set(ends.wait().split()) == {b"up"}
    assert not those_in(tmp_path)


@both
def test_nothing_stays_behind_a_command(tmp_path: Path, where: str) -> None:
    ends = Ends(tmp_path)
    run = shell_in(tmp_path, where)
    bomb = BOMB.replace("echo up;", "echo up; echo > go;")
    assert run("run_command", command=f"mkfifo go; {bomb}; read line < go").startswith("exit code 0")
    assert set(ends.wait().split()) == {b"up"}
    assert not those_in(tmp_path)


@both
def test_an_agent_that_closes_or_is_interrupted_ends_its_commands(tmp_path: Path, where: str) -> None:
    ends = Ends(tmp_path, 50)
    run = shell_in(tmp_path, where)
    answers: list[str] = []
    thread = Thread(target=lambda: answers.append(run("run_command", command=f"{BOMB}; sleep 1000")))
    thread.start()
    ends.is_up.wait()
    run.opened.close()  # as `Agent.close` does; `Tool.leave` is the same function
    thread.join()
    assert ends.wait() == b"up\n" * 50
    assert not those_in(tmp_path)
    assert answers == ["exit code 137; it printed nothing."]


@both
def test_a_command_ends_with_an_agent_that_is_killed(tmp_path: Path, where: str) -> None:
    ends = Ends(tmp_path, 50)
    program = (
        "import sys; from pathlib import Path; from tests.hostile.test_commands import shell_in\n"
        f"shell_in(Path({str(tmp_path)!r}), {where!r})('run_command', command={f'{BOMB}; sleep 1000'!r})"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) as agent:
        ends.is_up.wait()
        agent.send_signal(signal.SIGKILL)
    assert ends.wait() == b"up\n" * 50


def test_the_system_refuses_to_start_more_but_for_root() -> None:
    """Threads stand for the processes of a bomb: the system counts both alike, and these end with their process."""
    program = f"""
import os, runpy, threading
bound = runpy.run_path({supervisor.__file__!r})["bound"]
if not os.getuid():
    os.setuid(65534)
bound(80)
wait, started = threading.Event(), 0
try:
    for _ in range(1000):
        threading.Thread(target=wait.wait, daemon=True).start()
        started += 1
except RuntimeError:
    print(started)
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert 60 <= int(done.stdout) <= 80


@needs_sandbox  # without one a bomb may take every number of the machine before it is ended
@pytest.mark.parametrize("where", [WITHIN])
@pytest.mark.parametrize("bomb", ["perl -e 'fork while 1'", "f() { f | f & }; f; sleep 1000"])
def test_a_fork_bomb_is_ended(tmp_path: Path, where: str, bomb: str) -> None:
    ends = Ends(tmp_path)
    answer = shell_in(tmp_path, where)("run_command", command=f"exec 9> pipe; echo up >&9; {bomb}")
    assert answer.startswith("exit code 137")
    assert f"selfpager: it had more than {shell.MAX_PROCESSES} processes, and was ended" in answer
    assert ends.wait().startswith(b"up\n")


@both
def test_what_fills_the_memory_is_ended(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "MAX_MEMORY_MB", 200)
    answer = shell_in(tmp_path, where)("run_command", command="perl -e '$x = q(a) x (400 << 20); sleep 1000'")
    assert answer.endswith(f"{supervisor.MARK}it took more than 200 MB of memory, and was ended")


@both
def test_a_flood_is_bounded(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "MAX_OUTPUT_BYTES", 4 << 20)
    answer = shell_in(tmp_path, where)("run_command", command="cat /dev/zero")
    assert answer.startswith("was ended after it had printed 4 MB")
    assert len(answer) < 500_000


@needs_sandbox
def test_inside_only_the_directory_is_written_and_nothing_that_is_protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = tmp_path / "person"
    (person / ".ssh").mkdir(parents=True)
    (person / ".ssh" / "id").write_text("a private key", encoding="utf-8")
    monkeypatch.setenv("HOME", str(person))
    folder = tmp_path / "folder"
    for name in ("x", "other"):
        (folder / "home" / name).mkdir(parents=True)
        (folder / "home" / name / "pager.db").write_text("a memory", encoding="utf-8")
    (folder / "base.yaml").write_text("instructions: x\n", encoding="utf-8")
    (tmp_path / "beside").write_text("beside", encoding="utf-8")
    run = shell_in(folder, WITHIN, more="extends: base.yaml\n")
    before = run.file.read_bytes()

    def does(command: str) -> bool:
        return run("run_command", command=command).startswith("exit code 0")

    assert does("echo new > file && mkdir -p a/b")
    assert (folder / "file").read_text() == "new\n"
    for path in ("/usr/x", "/etc/x", str(person / "x"), str(tmp_path / "beside"), "../beside"):
        assert not does(f"echo bad > {path}") or not (tmp_path / "x").exists()
    assert (tmp_path / "beside").read_text(encoding="utf-8") == "beside"
    for path in ("x.yaml", "base.yaml"):
        assert not does(f"echo bad > {path}")
        assert not does(f"rm -f {path}")
        assert not does(f"mv file {path}")
    assert run.file.read_bytes() == before
    read = run("run_command", command=f"cat {person}/.ssh/id home/*/pager.db {folder}/home/other/pager.db")
    assert "a private key" not in read
    assert "a memory" not in read


@needs_sandbox
def test_inside_what_the_agents_python_imports_is_not_written(tmp_path: Path) -> None:
    look = 'def look() -> str:\n    "Look."\n    return ""\n'
    for path, text in {
        "own_seen/__init__.py": "", "own_seen/inner/__init__.py": "", "own_seen/inner/tools.py": look,
        "own_seen_helper.py": "x = 1\n", "own_plain/inner/other.py": "x = 1\n", "notes/a.md": "a",
    }.items():  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    uses = "builtin: shell, approve: never, sandbox: required}\n  - {use: 'own_seen.inner.tools:look'"
    run = BuiltIns(tmp_path, uses)
    importlib.import_module("own_plain.inner.other")  # a tool of its may do that

    def writes(path: str) -> bool:
        return run("run_command", command=f"echo bad > {path}").startswith("exit code 0")

    assert [writes(path) for path in ("notes/a.md", "new.txt", "own_new/x.md; mkdir own_new")] == [True] * 3
    for path in (
        "own_seen/inner/tools.py", "own_seen/inner/new.py", "own_seen/__pycache__/x", "own_seen_helper.py",
        "own_plain/inner/other.py", "__pycache__/own_seen_helper.cpython-311.pyc",
    ):  # fmt: skip
        assert not writes(path), path


@needs_sandbox
def test_inside_there_is_no_network_no_service_and_no_other_process(tmp_path: Path) -> None:
    run = shell_in(tmp_path, WITHIN)
    with subprocess.Popen(
        [sys.executable, "-c", "import socket, sys; s = socket.create_server(('127.0.0.1', 0));"
         "print(s.getsockname()[1], flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdout
        command = f"bash -c 'echo > /dev/tcp/127.0.0.1/{int(server.stdout.readline())}'"
        assert "exit code 1;" in run("run_command", command=command)
        assert shell_in(tmp_path, f"{WITHIN}, network: true")("run_command", command=command).startswith("exit code 0")
        server.communicate()
    assert "it printed nothing" in run("run_command", command="ls -A /run")
    processes = run("run_command", command="ls /proc | grep -c '^[0-9]'").splitlines()[1]
    assert int(processes) < 8
    assert f"/{os.getpid()}/" not in run("run_command", command=f"ls -d /proc/{os.getpid()}/ 2>&1 | grep -v cannot")
