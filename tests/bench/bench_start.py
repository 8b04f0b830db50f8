"""Measure what a newcomer waits for: `python -m tests.bench.bench_start [--quick]`

- install: from an empty directory to the first answer: a virtual environment, `pip install` of the wheel, `init`, and a
  message through `chat`. The dependencies are borrowed from this environment, so nothing is downloaded; the wheel is
  built before.
- prompt: `selfpager chat` on a terminal, until its prompt stands.
- token: from the moment at which the server begins to send an answer, until its first word stands on the terminal.

Times are medians. Exits with 1 when a limit does not hold; with `--quick` each is measured once, and no limit counts.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from agents.testing.messages_server import MessagesServer, Sending
from pager.types import Json
from tests.bench.figures import Figure, run, timed
from tests.bench.quick_server import ANSWER, Quick
from tests.support.cli import Terminal
from tests.support.fresh import build_wheels, clean_environ, install

ROUNDS, MESSAGES = 5, 20
FIRST_WORD = ANSWER.split()[0]
AGENT = "name: agent\nwindow: {limit_tokens: 40000}\n"
quick = "--quick" in sys.argv


class Noting(Quick):
    """Notes when an answer begins to be sent."""

    sent_at = 0.0

    def create(self, params: Json) -> Sending:
        sending = super().create(params)
        self.sent_at = time.perf_counter()
        return sending


def environ(base_url: str, home: Path) -> dict[str, str]:
    return {**clean_environ(home), "ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_API_KEY": "none", "NO_PROXY": "127.0.0.1"}


def first_answer(work: Path) -> list[Figure]:
    wheels = build_wheels(work)
    parts: list[tuple[float, float]] = []
    with MessagesServer(Quick()) as server:
        for number in range(1 if quick else ROUNDS):
            folder = work / str(number)
            folder.mkdir()
            begun = time.perf_counter()
            programs = install(wheels, folder / "env")
            installed = time.perf_counter()
            options = {"cwd": folder, "env": environ(server.base_url, folder), "capture_output": True}
            subprocess.run([programs / "selfpager", "init"], check=True, **options)
            chat = [programs / "selfpager", "chat", "agent.yaml"]
            done = subprocess.run(chat, input=b"hello\n", check=True, **options)
            assert FIRST_WORD.encode() in done.stdout
            parts.append((installed - begun, time.perf_counter() - installed))
    measured = "{:.1f} s to install, {:.1f} s from init to the answer".format(*map(median, zip(*parts, strict=True)))
    return [Figure("pip install to the first answer", measured, median(map(sum, parts)), limit(15), " s")]


def terminal(work: Path, base_url: str) -> Terminal:
    (work / "agent.yaml").write_text(AGENT, encoding="utf-8")
    given = {**environ(base_url, work), "TERM": "xterm-256color", "COLUMNS": "", "LINES": ""}
    chat = Terminal("chat", work / "agent.yaml", "--home", work / "home", cwd=work, **given)
    chat.resize(100, 30)
    return chat


def prompt(work: Path) -> list[Figure]:
    seconds: list[float] = []
    with MessagesServer(Quick()) as server:
        for _ in range((1 if quick else ROUNDS) + 1):
            begun = time.perf_counter()
            with terminal(work, server.base_url) as chat:
                chat.until("you>")
                seconds.append(time.perf_counter() - begun)
                chat.type("\x04")
                chat.end(insist="\x04")
    span = f"from {min(seconds):.2f} to {max(seconds):.2f} s"
    bare = timed(lambda: subprocess.run([sys.executable, "-c", ""], check=True))
    return [
        Figure("selfpager chat, to its prompt", span, median(seconds[1:]), limit(1), " s"),
        Figure("... Python alone, started and ended", "", bare, None, " s"),
    ]


def token(work: Path) -> list[Figure]:
    service, milliseconds = Noting(), list[float]()
    with MessagesServer(service) as server, terminal(work, server.base_url) as chat:
        for _ in range(2 if quick else MESSAGES):
            chat.until("you>")
            chat.type("hello\r")
            chat.until(FIRST_WORD)
            milliseconds.append(1000 * (time.perf_counter() - service.sent_at))
        chat.until("you>")
        chat.type("\x04")
        chat.end(insist="\x04")
    span = f"{min(milliseconds):.0f} to {max(milliseconds):.0f} ms"
    measured = f"the very first {milliseconds[0]:.0f} ms, all {span}"
    return [Figure("from the first token's arrival to the terminal", measured, median(milliseconds), limit(50), " ms")]


def limit(value: float) -> float | None:
    return None if quick else value


if __name__ == "__main__":
    os.environ.pop("COLUMNS", None)
    names = [name for name in sys.argv[1:] if name != "--quick"]
    sys.exit(run({"install": first_answer, "prompt": prompt, "token": token}, names, "anthropic", "prompt_toolkit"))
