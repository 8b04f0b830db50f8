"""The Tab key, as a shell asks for it: click's own protocol, and once through a real bash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.cli.main import COMMANDS
from pager import Memory

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("alice", "bob"):
        Memory.open(tmp_path / "home" / name, embedder=None).close()
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("agent.yaml", "notes.txt", "more/other.yml", "more/deep/far.yaml", "empty/x.txt", ".hidden/a.yaml"):
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("name: x\n", encoding="utf-8")
    return tmp_path / "work"


def offered(words: str, cwd: Path, **environ: str) -> list[str]:
    """What stands behind the last of these words when Tab is pressed there; `type,value` as bash gets them."""
    index = len(words.split()) - (0 if words.endswith(" ") else 1)
    asked = {"_SELFPAGER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(index)}
    done = subprocess.run(
        [sys.executable, "-m", "agents"], env={**os.environ, "PYTHONPATH": str(ROOT), **asked, **environ}, cwd=cwd,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def plain(*words: str) -> list[str]:
    return [f"plain,{word}" for word in words]


def test_commands_are_offered(folder: Path) -> None:
    assert offered("selfpager ", folder) == plain(*COMMANDS)
    assert offered("selfpager sh", folder) == plain("show")


@pytest.mark.parametrize("command", ["show", "tell", "check", "export", "purge"])
def test_agents_of_the_home_are_offered(folder: Path, home: Path, command: str) -> None:
    assert offered(f"selfpager {command} ", folder, SELFPAGER_HOME=str(home)) == plain("alice", "bob")
    assert offered(f"selfpager {command} --home {home} b", folder) == plain("bob")
    assert offered(f"selfpager --home {home} {command} al", folder) == plain("alice")
    assert offered(f"selfpager {command} --home {home / 'none'} ", folder) == []


@pytest.mark.parametrize("command", ["chat", "run", "validate", "render"])
def test_yaml_files_are_offered(folder: Path, command: str) -> None:
    assert offered(f"selfpager {command} ", folder) == plain("agent.yaml", "more/other.yml")
    assert offered(f"selfpager {command} more/", folder) == plain("more/deep/far.yaml", "more/other.yml")
    assert offered(f"selfpager {command} {folder}/ag", folder) == plain(f"{folder}/agent.yaml")


def test_where_there_is_no_yaml_file_the_shell_goes_on(folder: Path) -> None:
    assert offered("selfpager chat empty/", folder) == ["file,empty/"]


def test_options_are_offered(folder: Path) -> None:
    assert set(plain("--as", "--home", "--history", "--json")) <= set(offered("selfpager chat --", folder))


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_shell_gets_its_script(shell: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agents"], env={**os.environ, "_SELFPAGER_COMPLETE": f"{shell}_source"}, cwd=ROOT,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"_SELFPAGER_COMPLETE={shell}_complete" in done.stdout


def test_a_real_bash_completes_with_the_line_that_help_shows(folder: Path, home: Path, tmp_path: Path) -> None:
    help_text = [sys.executable, "-m", "agents", "--help"]
    shown = subprocess.run(help_text, cwd=ROOT, capture_output=True, text=True, check=True)
    line = next(line for line in shown.stdout.splitlines() if "bash_source" in line).split("bash ", 1)[1].strip()
    command = tmp_path / "bin" / "selfpager"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m agents "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    script = f"""\
        shopt -s expand_aliases
        {line}
        complete -p selfpager
        COMP_WORDS=(selfpager show a); COMP_CWORD=2
        _selfpager_completion selfpager a show
        echo "${{COMPREPLY[@]}}"
        """
    environ = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "SELFPAGER_HOME": str(home)}
    done = subprocess.run(["bash", "-c", script], env=environ, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["complete -o nosort -F _selfpager_completion selfpager", "alice"]
