"""`builtin: shell`: who is asked, what a command gets, and what is said of how it ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.builtin import sandbox, shell
from agents.builtin.shell import allows, environment
from agents.config.errors import ConfigError
from agents.events import ApprovalNeeded, ToolFinished
from tests.standin import call
from tests.support.builtins import BuiltIns
from tests.support.stage import Stage, results

pytestmark = pytest.mark.slow
ALLOWED = [("git", "status"), ("pytest", "*")]
SHELL = "builtin: shell, allow: [[echo, '*']]"


@pytest.fixture(params=["off", "if_available"])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> BuiltIns:
    if request.param != "off" and (why := sandbox.reason_against()):
        pytest.skip(why)
    return BuiltIns(tmp_path, f"{SHELL}, sandbox: {request.param}")


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("git status", True),
        ("  git   'status' ", True),
        ("git", False),
        ("git status -s", False),
        ("git statu", False),
        ("pytest", True),
        ("pytest -q 'a b' \"c\"", True),
        ("pytests", False),
        ("A=b pytest", False),
        ("pytest 'never closed", False),
        ("", False),
        *((f"pytest {sign} id", False) for sign in ";&|<>$()`\n\r\0"),
        *((f"pytest '{sign}'", False) for sign in ";&|<>$()`\n\r\0"),
    ],
)
def test_only_the_words_of_a_simple_command_are_allowed(command: str, allowed: bool) -> None:
    assert allows(ALLOWED, command) == allowed


@given(st.text(), st.sampled_from(sorted(";&|<>$()`\n\r")), st.text())
def test_whatever_a_shell_would_make_of_it_is_asked_for(before: str, sign: str, after: str) -> None:
    assert not allows([("*",)], before + sign + after)


def test_a_command_is_answered_with_its_code_and_its_output(run: BuiltIns) -> None:
    assert run("run_command", command="echo a 'b c' *") == "exit code 0; it printed 8 bytes:\na b c *"
    assert run("run_command", command="echo a; echo b >&2; exit 3") == "exit code 3; it printed 4 bytes:\na\nb"
    assert run("run_command", command="kill -9 $$") == "exit code 137; it printed nothing."
    assert run("run_command", command="cat; pwd").splitlines()[1:] == [str(run.file.parent)]  # nothing to read
    assert "exit code 127" in run("run_command", command="no-such-program")
    text, sources = run.sourced("run_command", command="echo x")
    assert (text[:11], sources) == ("exit code 0", {"tool:run_command"})


def test_a_program_that_is_allowed_and_not_there_is_told(tmp_path: Path) -> None:
    run = BuiltIns(tmp_path, "builtin: shell, allow: [[no-such-program]], sandbox: 'off'")
    assert "no-such-program cannot be started: No such file" in run("run_command", command="no-such-program")


def test_of_much_output_the_beginning_and_the_end_are_kept(run: BuiltIns) -> None:
    text = run("run_command", command="echo first; yes | head -c 1000000; echo last")
    assert len(text) < 500_000
    assert text.startswith("exit code 0; it printed 1,000,011 bytes:\nfirst\ny\n")
    assert "\n[600,011 bytes are left out here]\n" in text
    assert text.endswith("y\nlast")


def test_few_variables_are_passed_on_and_no_secret(run: BuiltIns, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"ANTHROPIC_API_KEY": "k1", "GITHUB_TOKEN": "k2", "AWS_SECRET_ACCESS_KEY": "k3", "PASSWORD": "k4"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, f"secret-{value}")
    monkeypatch.setenv("LC_TIME", "C")
    text = run("run_command", command="env; cat /proc/self/environ; cat /proc/$PPID/environ")
    assert "LC_TIME=C" in text
    assert "secret-" not in text
    given = environment({**secrets, "PATH": "/bin::.:bin:/usr/bin", "LD_PRELOAD": "x", "PYTHONPATH": "x"})
    assert given == {**shell.ADDED, "PATH": "/bin:/usr/bin"}


def test_where_a_sandbox_is_required_and_missing_the_agent_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "reason_against", lambda: "bubblewrap (bwrap) is not installed")
    with pytest.raises(ConfigError, match=r"x\.yaml:3:.*it is required, but bubblewrap \(bwrap\) is not installed"):
        BuiltIns(tmp_path, "builtin: shell, sandbox: required")
    run = BuiltIns(tmp_path, f"{SHELL}, sandbox: if_available")
    assert "sandbox" not in run.tools["run_command"].description
    assert run("run_command", command="echo x").endswith("x")


def test_a_directory_that_is_not_there_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.yaml:3:.*there is no directory"):
        BuiltIns(tmp_path, "builtin: shell, directory: src")


def test_a_directory_that_has_gone_meanwhile_is_told(run: BuiltIns) -> None:
    run.file.unlink()
    run.file.parent.rmdir()
    assert "in which commands run, is not there any more" in run("run_command", command="echo x")


@pytest.mark.parametrize(
    ("allow", "problem"),
    [
        ("[['*', x]]", r'\[\*, x\]: "\*" stands for any words at the end of a list only; write the words there'),
        ("[[git, '*', '*']]", r'"\*" stands for any words at the end'),
        ("[[]]", "has an empty list of words, which no command has; leave it out"),
    ],
)
def test_a_pattern_that_would_not_do_what_it_says_is_an_error(tmp_path: Path, allow: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"x\.yaml:3:.*{problem}"):
        BuiltIns(tmp_path, f"builtin: shell, allow: {allow}")


def test_a_person_is_asked_but_for_what_is_allowed(stage: Stage) -> None:
    tools = "tools: [{builtin: shell, allow: [[echo, '*']]}]\n"
    commands = [call("run_command", {"command": command}) for command in ("echo one", "echo two; true")]
    stage.says(commands[0], commands[1])
    with stage.load(tools) as agent:
        events = list(agent.stream("go"))
        assert [type(event) for event in events if isinstance(event, ToolFinished | ApprovalNeeded)] == [
            ToolFinished, ApprovalNeeded
        ]  # fmt: skip
    stage.says("Done.")
    asked: list[str] = []

    def approve(waiting: object) -> bool:
        asked.append(waiting.input["command"])  # pyright: ignore[reportAttributeAccessIssue]
        return True

    with stage.load(tools, approve=approve) as agent:
        assert agent.resume().text == "Done."
    assert asked == ["echo two; true"]
    assert results(stage.last) == [("exit code 0; it printed 4 bytes:\ntwo", False)]


def test_approve_never_asks_for_nothing(stage: Stage) -> None:
    stage.says(call("run_command", {"command": "echo 42 | cat"}), "Done.")
    with stage.load("tools: [{builtin: shell, approve: never}]\n") as agent:
        assert agent.turn("go").text == "Done."
    assert results(stage.last) == [("exit code 0; it printed 3 bytes:\n42", False)]
