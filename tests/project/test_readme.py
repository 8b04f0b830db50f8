"""README, tried as a newcomer would: every file in it is written, every command and every program in it runs, in order.

The model is a scripted server, reached as any other server would be, by ANTHROPIC_BASE_URL.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.testing import Reply, ScriptedServer, call
from pager.types import Json
from tests.support.cli import TIMEOUT_S, environment

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SAID = "y\n"  # to whatever asks: a message in a conversation, or leave to purge
OTHER_SHELLS = ("zsh:", "fish:")


@dataclass(frozen=True)
class Block:
    kind: str
    text: str

    @property
    def file(self) -> str | None:
        """Its name, when it is a file: the first line says so."""
        named = re.match(r"# (\S+\.(?:py|yaml))\n", self.text)
        return named[1] if named else None


BLOCKS = [Block(*found) for found in re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)]


class Newcomer:
    """A folder with what a clone has, and a shell in it."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "configs", folder / "configs")
        (folder / "Makefile").symlink_to(ROOT / "Makefile")
        programs = folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        (programs / "activate").write_text("", encoding="utf-8")
        for name in ("selfpager", "pytest"):
            module = "agents" if name == "selfpager" else name
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
        self.environ = environment(
            PATH=f"{programs}:{os.environ['PATH']}", HOME=str(folder), XDG_DATA_HOME=str(folder / "data"),
            ANTHROPIC_BASE_URL=base_url, ANTHROPIC_API_KEY="none",
        )  # fmt: skip

    def shell(self, line: str) -> str:
        return self.run("bash", "-c", f"set -euo pipefail; {line}", said=SAID)

    def run(self, *command: str, said: str = "") -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environ, input=said, capture_output=True, text=True, check=False,
            timeout=TIMEOUT_S,
        )  # fmt: skip
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout


def answer(request: Json) -> Reply:
    """End a task that has just begun; answer anything else with a sentence."""
    names = {tool.get("name") for tool in request.get("tools") or ()}
    answered = "tool_result" in str(request["messages"][-1])
    return Reply(calls=[call("task_done", summary="Done.")]) if "task_done" in names and not answered else Reply("Yes.")


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    with ScriptedServer() as server:
        server.otherwise(answer)
        yield Newcomer(tmp_path, server.base_url)


def test_every_block_is_of_a_kind_that_is_tried() -> None:
    """`text` is output: that of the demo is compared in test_demo."""
    assert {block.kind for block in BLOCKS} == {"sh", "python", "yaml", "text"}
    assert all(block.file for block in BLOCKS if block.kind == "yaml")
    assert README.count("```") == 2 * len(BLOCKS)


@pytest.mark.slow
def test_whoever_types_it_all_gets_what_it_says(newcomer: Newcomer) -> None:
    printed: list[str] = []
    for block in BLOCKS:
        if block.file:
            (newcomer.folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.kind == "python":
            printed.append(newcomer.run(sys.executable, "-c", block.text))
        elif block.kind == "sh":
            printed += [newcomer.shell(typed(line)) for line in block.text.splitlines() if line.strip()]
    everything = "\n".join(printed)
    for text in (
        "clerk.yaml is valid: the agent 'clerk'", "prefers aisle seats since the knee operation", "Dana",
        "It says: order 17: two hats, on its way", "1 passed", "s1 was purged",
        "I found order 17: two hats, on its way.", "Mara, who collects hats.",
    ):  # fmt: skip
        assert text in everything


def typed(line: str) -> str:
    """A line as it is tried: targets of make are only looked up, other shells' own words are left out."""
    command, _, remark = line.partition("  #")
    if command.startswith("make "):
        return f"make --dry-run --file {ROOT / 'Makefile'} --directory {ROOT} {command.removeprefix('make ')}"
    if remark.strip().startswith(OTHER_SHELLS):
        return f"{re.findall('_SELFPAGER_COMPLETE=[a-z_]+ selfpager', command)[0]} | grep -c selfpager"
    return command.strip()


def test_commands_in_the_text_exist(newcomer: Newcomer) -> None:
    for command in re.findall(r"`(selfpager [a-z]+|make [a-z-]+)", README):
        newcomer.shell(f"{command} --help" if command.startswith("selfpager") else typed(command))


def test_paths_in_the_text_exist() -> None:
    for path in re.findall(r"`((?:pager|agents|tests|configs)/[\w./-]*)`", README):
        assert (ROOT / path).exists(), path
