"""The first hour of somebody who has the wheel and `--help`: from `init` to the view, in an environment of their own.

Every command that the program prints on the way is executed as it was printed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import expect

from agents.testing import Reply, ScriptedServer, call, http_error, stall
from tests.browser.programs import NoBrowser, browser_program, started
from tests.support.cli import TIMEOUT_S, Done, Terminal
from tests.support.fresh import build_wheels, clean_environ, install

pytestmark = pytest.mark.long
DONE = call("task_done", summary="all is well")
PASTED = "my seat is at the window\nand my city is Porto"


@dataclass
class Newcomer:
    """Somebody at a shell: a working directory, what they have exported, and the program on their path."""

    folder: Path
    programs: Path
    model: ScriptedServer
    exported: dict[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        local = {"ANTHROPIC_BASE_URL": self.model.base_url, "NO_PROXY": "127.0.0.1"}
        server = local if self.exported else {}  # on this machine it asks for no key
        return {**clean_environ(self.folder), "PATH": path, **server, **self.exported}

    def types(self, line: str) -> Done:
        """Run a line of the shell. What it exports stays."""
        done = subprocess.run(
            ["bash", "-c", f"{line}\nstatus=$?; env -0 > .env; exit $status"], cwd=self.folder, env=self.environ,
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        after = dict(each.split("=", 1) for each in (self.folder / ".env").read_text().split("\0") if "=" in each)
        self.exported |= {name: value for name, value in after.items() if name.endswith("_API_KEY")}
        return Done(done.returncode, done.stdout, done.stderr)

    def terminal(self, line: str) -> Terminal:
        """Run a line of the shell on a terminal."""
        environ = {**self.environ, "TERM": "xterm-256color", "COLUMNS": "", "LINES": "", "PYTHONPATH": ""}
        program, *words = shlex.split(line, comments=True)
        return Terminal(*words, cwd=self.folder, program=[str(self.programs / program)], **environ)


def printed(text: str) -> list[str]:
    """The commands that a text names, to the ends of their lines."""
    found = re.findall(r"(?m)(?:^|[ :`])((?:selfpager (?!:)[a-z]+|export )[^`\n]*)", text)
    return [line.strip() for line in found]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newcomer")
    return install(build_wheels(folder), folder / "env")


@pytest.fixture
def newcomer(programs: Path, tmp_path: Path) -> Iterator[Newcomer]:
    with ScriptedServer() as model:
        yield Newcomer(tmp_path, programs, model)
    assert not model.errors
    assert model.unused == 0


def leave(terminal: Terminal) -> None:
    terminal.until("you>")
    terminal.type("\x04")
    assert terminal.end(insist="\x04")[0] == 0


def test_from_the_wheel_to_the_view(newcomer: Newcomer) -> None:
    export, chat = printed(newcomer.types("selfpager init").out)
    assert newcomer.types(chat).code == 1  # no key yet
    assert newcomer.types(export).code == 0
    assert "ANTHROPIC_API_KEY" in newcomer.exported
    talk(newcomer, chat)
    work(newcomer)
    look(newcomer)


def talk(newcomer: Newcomer, chat: str) -> None:
    """Lines are pasted, an answer is cut off and taken back, the window changes its size, and all is there again."""
    note = call("archive", text="prefers window seats", key="seat")
    newcomer.model.script(Reply("I note it.", note), "Both noted.", stall("One two three. " * 40, after=0.6))
    with newcomer.terminal(chat) as terminal:
        terminal.resize(100, 30)
        terminal.until("you>")
        terminal.type(f"\x1b[200~{PASTED}\x1b[201~\r")
        terminal.until("Both noted.")
        terminal.until("you>")
        terminal.resize(40, 20)
        terminal.type("Tell me more.\r")
        terminal.until("two")
        terminal.type("\x03")
        terminal.until("cut off")
        terminal.until("you>")
        terminal.type("/undo\r")
        terminal.until("withdrawn: Tell me more.")
        leave(terminal)
    assert newcomer.model.requests[0]["messages"][-1]["content"][-1]["text"] == PASTED
    newcomer.model.script("Good to see you.")
    with newcomer.terminal(chat) as terminal:
        terminal.until("you>")
        terminal.type("\x1b[A\x1b[A\r")  # what was said before the last
        terminal.until("Good to see you.")
        leave(terminal)
    sent = newcomer.model.requests[-1]["messages"]
    assert sent[-1]["content"][-1]["text"] == PASTED
    assert "Tell me more." not in str(sent)


def work(newcomer: Newcomer) -> None:
    """A task fails, goes on as it says, and is done."""
    newcomer.model.script(http_error(403, "this key may not do that"))
    failed = newcomer.types('selfpager run agent.yaml "Count the hats."')
    assert (failed.code, "this key may not do that" in failed.err) == (1, True)
    [again] = printed(failed.err)
    open_task = newcomer.types('selfpager run agent.yaml "Count the caps."')
    resume, drop = printed(open_task.err)
    assert resume == again
    newcomer.model.script(DONE)
    done = newcomer.types(again)
    assert (done.code, done.out) == (0, "done after 1 step: all is well\n")
    [talk_about_it] = printed(done.err)
    assert newcomer.types(talk_about_it).code == 0  # its input is empty
    newcomer.model.script(DONE)
    assert newcomer.types(drop).code == 0


def look(newcomer: Newcomer) -> None:
    assert "idle" in newcomer.types("selfpager list").out
    wrong = [newcomer.types(f"selfpager {each}") for each in ("purge agent s999 --yes", "forget agent f99", "init")]
    assert [done.code for done in wrong] == [1, 1, 1]
    named = [line for done in wrong for line in printed(done.err)]
    assert len(named) >= 6
    helped = printed(newcomer.types("selfpager --help").out)
    asked = [re.split(r" {2,}", line)[0] for line in helped]  # a command, and what it is for
    elsewhere = ("selfpager demo", "selfpager init", "selfpager view", "selfpager chat")
    named += [line for line in asked if line.startswith("selfpager ") and line not in elsewhere]
    for line in dict.fromkeys(named):
        done = newcomer.types(line)
        assert done.code == 0, f"{line}: {done.err}"
    assert "prefers window seats" in newcomer.types("selfpager facts agent").out
    view(newcomer)


def view(newcomer: Newcomer) -> None:
    try:
        browser_program()
    except NoBrowser as missing:
        pytest.skip(str(missing))
    with newcomer.terminal("selfpager view --no-browser") as terminal, started() as browser:
        terminal.until("http://")
        page = browser.new_page()
        page.goto("http://" + terminal.until("\r\n").split()[0])
        page.get_by_role("button", name="agent", exact=True).click()
        expect(page.get_by_text("The next request")).to_be_visible()
        page.get_by_text("Archive", exact=True).first.click()
        expect(page.get_by_text("prefers window seats").first).to_be_visible()
        terminal.type("\x03")
        terminal.end()
