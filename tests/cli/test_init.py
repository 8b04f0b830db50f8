"""`init` and `tools`: a first agent's file is valid, overwrites nothing, and its functions run without a model."""

import json
import re
import sys
from pathlib import Path

import pytest

from agents.cli.init import ready
from agents.config.agent_config import load
from tests.cli.conftest import Command
from tests.support.cli import Terminal, command_line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for key in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    return tmp_path


@pytest.mark.parametrize("kind", ready())
def test_each_ready_agent_begins_another_one(folder: Path, kind: str) -> None:
    done = command_line("init", "bob", "--like", kind)
    assert (done.code, done.err) == (0, "")
    text = (folder / "bob.yaml").read_text(encoding="utf-8")
    assert load(folder / "bob.yaml", {}).name == "bob"
    assert not text.startswith("# yaml-language-server")  # the schema is not beside it
    assert f"configs/{kind}.yaml" not in text
    assert "bob.yaml" in done.out.splitlines()[-1]


def test_the_files_name_does_as_well(folder: Path) -> None:
    assert command_line("init", "bob.yaml").out.startswith("wrote bob.yaml, ")
    assert load(folder / "bob.yaml", {}).name == "bob"


def test_what_it_needs_is_named_as_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.cli.init.find_spec", lambda _: None)  # as where only the package itself is
    assert "  pip install 'selfpager[openai]'" in command_line("init", "--like", "openai").out.splitlines()


@pytest.mark.parametrize("kind", ready())
def test_a_ready_agent_names_no_command_of_a_clone(kind: str) -> None:
    assert not re.search(r"\bmake [a-z-]+ URL", ready()[kind].read_text(encoding="utf-8"))


def test_it_overwrites_nothing_and_says_what_is_there(folder: Path) -> None:
    assert command_line("init").code == 0
    before = (folder / "agent.yaml").read_bytes()
    again = command_line("init", "--tools")
    assert (again.code, again.err) == (
        1, "selfpager: agent.yaml exists already; nothing was written. Talk to it: selfpager chat agent.yaml\n"
        "Or give another name: selfpager init my-agent\n"
    )  # fmt: skip
    assert (folder / "agent.yaml").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["agent.yaml"]
    assert command_line("init", "../x").code == 1
    assert command_line("init", "y", "--like", "nobody").code == 2


def test_the_key_that_is_set_decides_and_a_missing_one_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "  export ANTHROPIC_API_KEY=...   # your key" in command_line("init").out.splitlines()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    said = command_line("init", "other").out
    assert said.splitlines() == ["wrote other.yaml, an agent like 'openai'. Next:", "  selfpager chat other.yaml"]


def test_on_a_terminal_it_offers_the_ready_ones(folder: Path) -> None:
    with Terminal("init", cwd=folder) as terminal:
        shown = terminal.until("begin with [assistant]: ")
        assert all(kind in shown for kind in ready())
        terminal.type("support\n")
        assert terminal.end()[0] == 0
    assert load(folder / "agent.yaml", {}).core.blocks.keys() == {"policy", "customer", "case"}


def test_what_it_offers_fits_a_narrow_terminal(folder: Path) -> None:
    with Terminal("init", cwd=folder, COLUMNS="40") as terminal:
        shown = terminal.until("begin with [assistant]: ")
        assert max(map(len, shown.splitlines())) < 40
        terminal.type("\n")
        assert terminal.end()[0] == 0


def test_own_tools_are_tried_without_a_key(folder: Path) -> None:
    assert command_line("init", "--tools").code == 0
    assert command_line("tools", "agent.yaml").out == "count_words(text): Count the words of a text.\n"
    assert command_line("tools", "agent.yaml", "count_words", '{"text": "a b c"}').out == "3\n"
    wrong = command_line("tools", "agent.yaml", "count_words", '{"txt": "a"}')
    assert (wrong.code, "there is no such argument, there are text" in wrong.err) == (1, True)
    for arguments in (["nothing"], ["count_words", "a b"], ["count_words", "[1]"]):
        assert command_line("tools", "agent.yaml", *arguments).code == 2
    (folder / "tools.py").unlink()


def test_tools_of_a_server_are_listed_whatever_it_says_of_them(folder: Path) -> None:
    server = [sys.executable, "-m", "tests.support.mcp_servers", "structured"]
    root = str(Path(__file__).parents[2])
    mcp = json.dumps({"command": server, "name": "odd", "env": {"PYTHONPATH": root}})
    (folder / "x.yaml").write_text(f"name: x\nmodel: {{id: m}}\ntools: [{{mcp: {mcp}}}]\n")
    assert command_line("tools", "x.yaml").out.splitlines()[-1] == "_(): "


def test_where_nothing_can_be_written_it_says_so(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/proc")  # not even for root
    refused = command("init")
    assert refused.code == 1
    assert "agent.yaml cannot be written into /proc: " in refused.err
    assert "Change to a directory that you may write to, on a disk with free space." in refused.err
