"""README and docs/, tried as a newcomer would: every file in them is written, every command and program runs, in order.

Each page has a folder of its own, in which the files of all pages lie. The model is a scripted server, reached as any
other server would be, by ANTHROPIC_BASE_URL. What cannot run is listed, with the reason, in `pages.NOT_RUN`.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from agents.cli.main import COMMANDS, cli
from agents.config import agent_config
from agents.testing import Reply, ScriptedServer, call
from docs import keys
from pager import Home
from pager.types import Json
from tests.project import pages
from tests.project.pages import ENDLESS, NOT_RUN, ROOT, Block, blocks, name_of
from tests.support.cli import TIMEOUT_S, command_line, environment

AGENTS = ("assistant", "clerk")  # a reader who comes to a page has them from another one
SAID = "y\n"  # to whatever asks: a message in a conversation, or leave to purge
OTHER_SHELLS = ("zsh:", "fish:")
PLAIN = re.compile(r"[^|<>$&;*`~]+")  # a line without a shell's own syntax
KINDS = {"sh", "python", "yaml", "json", "toml", "text", "typescript", "{toctree}"}  # `text` is output
ALL = {name_of(page): page for page in pages.pages()}
OUTPUT = {
    "README.md": ["prefers aisle seats since the knee operation", "is the harbour ferry"],
    "docs/tutorial.md": ["helpdesk.yaml is valid: the agent 'helpdesk'", "It says: order 17: two hats", "1 passed"],
    "docs/memory.md": ["prefers aisle seats since the knee operation", "Dana"],
    "docs/agents.md": ["I found order 17: two hats, on its way.", "Mara, who collects hats."],
    "docs/testing.md": ["It says: order 17: two hats, on its way", "1 passed"],
    "docs/operations.md": ["s1 was purged"],
}  # what a reader is promised to see


class Newcomer:
    """A folder with what a clone and the pages have, and a shell in it."""

    def __init__(self, page: Path, folder: Path, base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "configs", folder / "configs")
        (folder / "Makefile").symlink_to(ROOT / "Makefile")
        for name, text in pages.files(page).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        programs = folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        (programs / "activate").write_text("", encoding="utf-8")
        for name in ("selfpager", "pytest", "python"):
            module = {"selfpager": "-m agents", "pytest": "-m pytest", "python": ""}[name]
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
        own = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"),
            "ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_API_KEY": "none",
        }  # fmt: skip
        self.environ = environment(**own)
        for name, value in own.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("SELFPAGER_HOME", raising=False)
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(str(folder))
        for name in AGENTS:
            with Home.locate().open(name, embedder=None) as memory:
                memory.archive("the ferry leaves at noon", key="ferry")

    def types(self, line: str) -> str:
        """Type a line: in this process if that is the same, else in a shell."""
        if ENDLESS.match(line):
            return parsed(line)
        if line.startswith("selfpager ") and not line.startswith("selfpager mcp ") and PLAIN.fullmatch(line):
            done = command_line(*shlex.split(line)[1:], said=SAID)
            assert done.code == 0, f"{line}\n{done.out}\n{done.err}"
            return done.out
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
def newcomer(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Newcomer]:
    with ScriptedServer() as server:
        server.otherwise(answer)
        yield Newcomer(ALL[page], tmp_path, server.base_url, monkeypatch)
    for name, module in list(sys.modules.items()):  # another page has files of the same names
        if str(getattr(module, "__file__", None)).startswith(f"{tmp_path}/"):
            del sys.modules[name]


def parsed(line: str) -> str:
    """Check the arguments of a command without running it, those for all commands included."""
    name, *arguments = shlex.split(line)[1:]
    command = cli.get_command(cli.make_context("selfpager", ["--help"], resilient_parsing=True), name)
    assert command, line
    command.make_context(name, arguments)
    return ""


def typed(line: str) -> str:
    """A line as it is tried: targets of make are looked up, nothing is installed, other shells' words are left out."""
    command, _, remark = line.partition("  #")
    if remark.strip().startswith(OTHER_SHELLS):
        return f"{re.findall('_SELFPAGER_COMPLETE=[a-z_]+ selfpager', command)[0]} | grep -c selfpager"
    if made := re.match(r"make (.*)", command):
        return f"make --dry-run --file {ROOT / 'Makefile'} --directory {ROOT} {made[1]}"
    if installed := re.match(r"(?:python -m )?pip install (.*)", command):
        named = re.findall(r"selfpager\[([\w,-]+)\]", installed[1])
        assert {extra for found in named for extra in found.split(",")} <= pages.extras(), line
        return "true"
    return command.strip()


def test_every_block_is_of_a_kind_that_is_tried_and_every_exception_is_of_a_block() -> None:
    all_blocks = [block for page in ALL.values() for block in blocks(page)]
    assert {block.kind for block in all_blocks} <= KINDS
    known = {(block.page, line) for block in all_blocks for line in (block.text.splitlines()[0], *block.lines)}
    assert set(NOT_RUN) <= known


@pytest.mark.slow
@pytest.mark.parametrize("page", ALL)
def test_whoever_types_it_all_gets_what_it_says(page: str, newcomer: Newcomer) -> None:
    printed: list[str] = []
    for block in filter(Block.is_run, blocks(ALL[page])):
        if block.kind == "python" and not block.file:
            printed.append(newcomer.run(sys.executable, "-c", block.text))
        elif block.kind == "sh":
            printed += [newcomer.types(typed(line)) for line in block.lines if block.is_run(line)]
    everything = "\n".join(printed)
    assert [text for text in OUTPUT.get(page, []) if text not in everything] == []


@pytest.mark.parametrize("page", ALL)
def test_files_on_a_page_can_be_loaded(page: str, newcomer: Newcomer) -> None:
    for block in filter(Block.is_run, blocks(ALL[page])):
        if block.kind == "json":
            json.loads(block.text)
        elif block.kind == "toml":
            tomllib.loads(block.text)
        elif block.kind == "yaml":
            loads(block, newcomer.folder)


def loads(block: Block, folder: Path) -> None:
    """Load an agent's file, or a piece of one. A file of replies is loaded with its agent."""
    content = yaml.safe_load(block.text)
    if isinstance(content, dict):
        named = block.file or "piece.yaml"
        start = "" if {"name", "extends"} & set(content) else "name: piece\n"
        (folder / named).write_text(start + block.text, encoding="utf-8")
        agent_config.load(folder / named, os.environ)


@pytest.mark.parametrize("page", ALL)
def test_commands_and_paths_in_the_text_exist(page: str) -> None:
    text = ALL[page].read_text(encoding="utf-8")
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", text, re.MULTILINE), "a merge was left in the middle"
    assert set(re.findall(r"`selfpager ([a-z]+)", text)) <= set(COMMANDS)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets
    for path in re.findall(r"`((?:pager|agents|tests|configs|docs)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path
    here = ALL[page].parent
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (here / link).exists(), link


def test_readme_is_short() -> None:
    assert len(ALL["README.md"].read_text(encoding="utf-8").splitlines()) <= 200


def test_the_page_of_all_keys_is_that_of_the_schema() -> None:
    made = keys.page(json.loads(keys.SCHEMA.read_text(encoding="utf-8")))
    assert keys.PAGE.read_text(encoding="utf-8") == made, "run `python docs/keys.py`"
