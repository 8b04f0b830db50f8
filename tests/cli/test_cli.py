"""What all commands have in common: help, exit codes, where errors go, where agents live."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.cli.main import COMMANDS, run
from agents.config import embedders
from pager import Memory
from tests.support.cli import COMMAND, Done, environment, selfpager, write_agent

ARGUMENTS: dict[str, list[str]] = {  # what makes each command fail for want of an agent or a file
    "chat": ["nowhere.yaml"],
    "run": ["nowhere.yaml", "a task"],
    "tell": ["nobody", "hello"],
    "show": ["nobody"],
    "check": ["nobody"],
    "validate": ["nowhere.yaml"],
    "render": ["nowhere.yaml"],
    "export": ["nobody", "file"],
    "import": ["nowhere.db"],
    "purge": ["nobody", "f1", "--yes"],
}


class Here:
    """Runs a command in this process, in an empty folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Done:
        self._capsys.readouterr()
        code = run([str(each) for each in arguments])
        said = self._capsys.readouterr()
        return Done(code, said.out, said.err)


@pytest.fixture
def here(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SELFPAGER_HOME", str(tmp_path / "home"))
    return Here(tmp_path, capsys)


@pytest.fixture
def alice(here: Here) -> Memory:
    memory = Memory.open(here.home / "alice", embedder=None)
    memory.archive("prefers window seats")
    memory.save_value(embedders.STORED_AS, "null")
    memory.close()
    return memory


def test_help_tells_a_newcomer_where_to_start(here: Here) -> None:
    told = here("--help").out
    assert "selfpager chat configs/assistant.yaml" in told
    for name, (_, about) in COMMANDS.items():
        assert f"{name} " in told
        assert about in " ".join(told.split())
    assert here("-h").out == told


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_the_common_options(here: Here, command: str) -> None:
    done = here(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert all(option in done.out for option in ("--home", "--as", "--debug"))
    about = COMMANDS[command][1].split(";")[0].rstrip(".")
    assert about
    assert len(done.out.split("Options:")[0].split()) > 10


def test_the_version_is_told(here: Here) -> None:
    assert here("--version").out.startswith("selfpager, version ")


def test_a_mistyped_command_is_a_usage_error_with_a_hint(here: Here) -> None:
    done = here("shwo")
    assert (done.code, done.out) == (2, "")
    assert "Did you mean 'show'?" in done.err


@pytest.mark.parametrize("arguments", [["show"], ["show", "--nothing", "x"], ["run", "x.yaml"], ["tell", "x"]])
def test_wrong_usage_is_exit_code_2(here: Here, arguments: list[str]) -> None:
    done = here(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Error:" in done.err
    assert "Usage:" in done.err


@pytest.mark.parametrize("command", ARGUMENTS)
def test_an_error_is_a_sentence_on_stderr_and_a_trace_only_with_debug(here: Here, command: str) -> None:
    done = here(command, *ARGUMENTS[command])
    assert done.code == (2 if ARGUMENTS[command][0] == "nowhere.yaml" else 1)
    assert done.out == ""
    assert "nobody" in done.err or "nowhere" in done.err
    assert "Traceback" not in done.err
    shown = here(command, *ARGUMENTS[command], "--debug")
    assert (shown.code, shown.out) == (done.code, "")
    assert "Traceback" in shown.err
    assert shown.err.endswith(done.err)


def test_debug_may_stand_before_the_command(here: Here) -> None:
    assert "Traceback" in here("--debug", "show", "nobody").err


def test_an_unknown_name_is_answered_with_those_that_are_there(here: Here, alice: Memory) -> None:
    assert "there are: alice" in here("show", "alcie").err


def test_what_nobody_thought_of_is_a_sentence_too(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.config.schema.rendered", lambda: 1 / 0)
    done = here("schema")
    assert done.code == 1
    assert done.err == "selfpager: ZeroDivisionError: division by zero (--debug shows where)\n"
    assert "Traceback" in here("schema", "--debug").err


def test_the_home_is_named_by_option_before_or_behind_or_by_the_environment(here: Here, alice: Memory) -> None:
    other = here.folder / "elsewhere"
    here.home.rename(other)
    assert here("check", "alice").code == 1
    assert here("check", "alice", "--home", other).code == 0
    assert here("--home", other, "check", "alice").code == 0


@pytest.mark.slow
def test_the_home_is_the_data_directory_of_the_user_otherwise(tmp_path: Path) -> None:
    Memory.open(tmp_path / "selfpager" / "alice", embedder=None).close()
    done = selfpager("check", "alice", XDG_DATA_HOME=str(tmp_path))
    assert (done.code, done.out) == (0, "alice: everything holds.\n")


@pytest.mark.parametrize("command", ["tell", "show", "check", "export", "purge"])
def test_another_instance_is_meant_by_as(here: Here, alice: Memory, command: str) -> None:
    arguments = {"tell": ["hello"], "export": ["alice.db"], "purge": ["f1", "--yes"]}.get(command, [])
    assert here(command, "bob", *arguments).code == 1
    assert here(command, "bob", *arguments, "--as", "alice").code == 0
    assert "alice" in here("show", "bob", "--as", "alice", "--json").out


def test_a_name_that_leads_elsewhere_is_refused(here: Here) -> None:
    for name in ("../x", "a/b", ""):
        for arguments in (["show", name], ["show", "alice", "--as", name], ["chat", "x.yaml", "--as", name]):
            done = here(*arguments)
            assert done.code == 2
            assert "cannot be an agent's name" in done.err


@pytest.mark.slow
def test_whoever_reads_along_may_stop_reading(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "schema"], stdout=writing, stderr=subprocess.PIPE, env=environment(), check=False, text=True
    )
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.slow
def test_the_command_and_the_module_are_the_same(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("selfpager")
    done = subprocess.run([command, "schema"], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout == selfpager("schema").out


@pytest.mark.slow
def test_help_and_schema_load_nothing_heavy(tmp_path: Path) -> None:
    for arguments in (["--help"], ["schema"], ["validate", str(write_agent(tmp_path))], ["show", "x"]):
        code = (
            "import sys; from agents.cli.main import run; run(sys.argv[1:]); "
            "print(*sorted({'anthropic', 'chromadb', 'onnxruntime', 'numpy'} & set(sys.modules)), file=sys.stderr)"
        )
        command = [sys.executable, "-c", code, *arguments, "--home", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
        assert done.stderr.splitlines()[-1] == "", arguments
