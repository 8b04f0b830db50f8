"""The Tab key: by click's own protocol, and once through a real bash."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.cli.main import COMMANDS, COMPLETION, run
from tests.support.cli import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def offered(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Press Tab behind the last word, by click's own protocol. Return `type,value` as bash gets them."""

    def offered(words: str, shell: str = "bash_complete", **environ: str) -> list[str]:
        index = len(words.split()) - (0 if words.endswith(" ") else 1)
        completion = {"_SELFPAGER_COMPLETE": shell, "COMP_WORDS": words, "COMP_CWORD": str(index)}
        for name, value in {**completion, **environ}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(folder)
        with pytest.raises(SystemExit):
            run([])
        output = capsys.readouterr()
        assert output.err == ""
        return [line for line in output.out.splitlines() if line]

    return offered


def plain(*words: str) -> list[str]:
    return [f"plain,{word}" for word in words]


def test_commands_and_options_are_offered(offered: Callable[..., Any]) -> None:
    assert offered("selfpager ") == plain(*COMMANDS)
    assert offered("selfpager sh") == plain("show")
    assert set(plain("--as", "--home", "--import", "--json")) <= set(offered("selfpager chat --"))


@pytest.mark.parametrize("command", ["show", "tell", "check", "export", "purge"])
def test_agents_of_the_home_are_offered(offered: Callable[..., Any], alice: Path, command: str) -> None:
    home = alice.parent
    shutil.copytree(alice, home / "bob")
    assert offered(f"selfpager {command} ", SELFPAGER_HOME=str(home)) == plain("alice", "bob")
    assert offered(f"selfpager {command} --home {home} b") == plain("bob")
    assert offered(f"selfpager --home {home} {command} al") == plain("alice")
    assert offered(f"selfpager {command} --home {home / 'none'} ") == []


def test_a_real_bash_completes_with_the_line_that_help_shows(folder: Path, alice: Path) -> None:
    line = next(line for line in COMPLETION.splitlines() if "bash_source" in line).split("bash ", 1)[1].strip()
    (folder / "selfpager").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m agents "$@"\n', "utf-8")
    (folder / "selfpager").chmod(0o755)
    script = f"""\
        shopt -s expand_aliases
        {line}
        complete -p selfpager
        COMP_WORDS=(selfpager show a); COMP_CWORD=2
        _selfpager_completion selfpager a show
        echo "${{COMPREPLY[@]}}"
        """
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SELFPAGER_HOME": str(alice.parent)}
    done = subprocess.run(["bash", "-c", script], env=environ, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["complete -o nosort -F _selfpager_completion selfpager", "alice"]
