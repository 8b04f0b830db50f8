"""What all commands have in common: help, exit codes, where errors go, where agents live."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.cli.main import COMMANDS
from pager import Memory
from tests.cli.conftest import Command
from tests.support.cli import COMMAND, environment, selfpager, write_agent

ARGUMENTS: dict[str, list[str]] = {  # what makes each command fail for want of an agent or a file
    **{name: ["nowhere.yaml"] for name in ("chat", "validate", "render", "tools")},
    **{name: ["nobody"] for name in ("show", "check", "view", "facts")},
    "run": ["nowhere.yaml", "a task"],
    "tell": ["nobody", "hello"],
    "trace": ["nobody", "hello"],
    "search": ["nobody", "hello"],
    "export": ["nobody", "file"],
    "import": ["nowhere.db"],
    "purge": ["nobody", "f1", "--yes"],
    "erase": ["nobody", "--yes"],
    "restore": ["nobody", "--at", "2026-05-03", "--as", "other"],
    "rekey": ["nobody"],
}


def test_help_shows_a_newcomer_where_to_start(command: Command) -> None:
    shown = command("--help").out
    assert "selfpager init" in shown
    assert "selfpager chat agent.yaml" in shown
    for name, (_, about) in COMMANDS.items():
        assert f"{name} " in shown
        assert about in " ".join(shown.split())
    assert command("-h").out == shown
    assert command("--version").out.startswith("selfpager, version ")


HOME, INSTANCE = "Default: $SELFPAGER_HOME, or your data directory.", "Another instance of the same agent"
TAKES = {  # what is said of --home and of --as; None where the command does not take the option
    **dict.fromkeys(COMMANDS, (HOME, "in place of NAME")),
    **dict.fromkeys(("chat", "run"), (HOME, INSTANCE)),
    **dict.fromkeys(("init", "tools", "validate", "render", "schema"), (None, None)),
    **dict.fromkeys(("list", "serve", "keys", "rekey"), (HOME, None)),
    "restore": (HOME, "The name of the agent that is made."),
    "demo": ("Default: a temporary one.", None),
    "import": (HOME, "that of FILE up to the first dot."),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_the_common_options_that_it_takes(command: Command, name: str) -> None:
    done = command(name, "--help")
    assert (done.code, done.err) == (0, "")
    about, options = done.out.split("Options:")
    assert len(about.split()) > 10
    assert "--debug" in options
    for option, told in zip(("--home", "--as"), TAKES[name], strict=True):
        shown = " ".join(options.partition(f" {option} ")[2].partition(" --")[0].split())
        assert (told in shown) if told else not shown
        assert (command(name, option, "x", "--help").code == 0) == bool(told)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        *((line.split(), "Usage:") for line in ("facts", "show --nothing x", "run x.yaml", "tell x")),
        (["shwo"], "Did you mean 'show'?"),
    ],
)
def test_wrong_usage_is_exit_code_2(command: Command, arguments: list[str], hint: str) -> None:
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Error:" in done.err
    assert hint in done.err


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_error_is_a_sentence_on_stderr_and_a_traceback_only_with_debug(command: Command, name: str) -> None:
    done = command(name, *ARGUMENTS[name])
    assert done.code == (2 if ARGUMENTS[name][0] == "nowhere.yaml" else 1)
    assert done.out == ""
    assert "nobody" in done.err or "nowhere" in done.err
    assert "Traceback" not in done.err
    shown = command(name, *ARGUMENTS[name], "--debug")
    assert (shown.code, shown.out) == (done.code, "")
    assert "Traceback" in shown.err
    assert shown.err.endswith(done.err)


def test_an_unknown_name_is_answered_with_those_that_exist(command: Command, alice: Path) -> None:
    assert "there are: alice" in command("show", "alcie").err
    assert "Traceback" in command("--debug", "show", "alcie").err


def test_an_unexpected_error_is_a_sentence_too(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.config.schema.rendered", lambda: 1 / 0)
    done = command("schema")
    assert done.code == 1
    assert done.err == "selfpager: ZeroDivisionError: division by zero (--debug shows where)\n"
    assert "Traceback" in command("schema", "--debug").err


def test_an_interrupted_demo_promises_nothing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.cli.demo.Stage.make", interrupted)
    done = command("demo")
    assert done.code == 130
    assert "everything done so far is saved. A turn or a task can be resumed." in done.err


def test_the_home_is_given_before_or_after_the_command_or_by_the_environment(command: Command, alice: Path) -> None:
    other = alice.parent.rename("elsewhere")
    assert command("check", "alice").code == 1
    assert command("check", "alice", "--home", other).code == 0
    assert command("--home", other, "check", "alice").code == 0


@pytest.mark.parametrize("name", ["tell", "show", "check", "export", "purge"])
def test_as_names_another_instance(command: Command, alice: Path, name: str) -> None:
    arguments = {"tell": ["hello"], "export": ["alice.db"], "purge": ["f1", "--yes"]}.get(name, [])
    assert command(name, "bob", *arguments).code == 1
    assert command(name, "bob", *arguments, "--as", "alice").code == 0
    assert "alice" in command("show", "bob", "--as", "alice", "--json").out


def test_a_name_that_leads_elsewhere_is_refused(command: Command) -> None:
    for name in ("../x", "a/b", ""):
        for arguments in (["show", name], ["show", "alice", "--as", name], ["chat", "x.yaml", "--as", name]):
            done = command(*arguments)
            assert done.code == 2
            assert "cannot be an agent's name" in done.err


def test_a_closed_pipe_is_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "schema"], stdout=writing, stderr=subprocess.PIPE, env=environment(), check=False, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_console_script_and_the_module_are_the_same(tmp_path: Path) -> None:
    Memory.open(tmp_path / "selfpager" / "alice", embedder=None).close()
    script, environ = Path(sys.executable).with_name("selfpager"), environment(XDG_DATA_HOME=str(tmp_path))
    done = subprocess.run([script, "check", "alice"], capture_output=True, text=True, check=True, env=environ)
    module = selfpager("check", "alice", XDG_DATA_HOME=str(tmp_path))
    assert done.stdout == module.out == "alice: no problems found.\n"


@pytest.mark.parametrize("line", ["--help", "schema", "validate x.yaml", "show nobody", "show alice --json"])
def test_what_needs_nothing_heavy_loads_nothing_heavy(command: Command, alice: Path, line: str) -> None:
    write_agent(Path())
    code = (
        "import sys; from agents.cli.main import run; run(sys.argv[1:]); "
        "heavy = {'anthropic', 'chromadb', 'onnxruntime', 'numpy', 'rich', 'starlette', 'uvicorn'}; "
        "print(heavy & set(sys.modules), file=sys.stderr)"
    )
    arguments = [sys.executable, "-c", code, *line.split()]
    environ = environment(SELFPAGER_HOME=str(alice.parent))
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=environ)
    assert done.stderr.splitlines()[-1] == "set()"
