"""Agents with one shared memory, from their YAML: what one stores the other is told, and every command reads it."""

from pathlib import Path

import pytest

from agents.agent import Agent
from agents.config.errors import ConfigError
from pager.errors import RejectedError
from pager.home import Home
from tests.config.conftest import read
from tests.standin import call
from tests.support.cli import command_line
from tests.support.stage import Stage, last

CONFIG = """\
name: {name}
model: {{provider: anthropic, id: m, base_url: {url}, api_key: k}}
window: {{limit_tokens: 60000}}
archival: {{embedder: none}}
mounts:
  - {{memory: sales, access: {access}, core: [rules]}}
"""


def agent(stage: Stage, folder: Path, name: str, access: str = "read") -> Agent:
    file = folder / f"{name}.yaml"
    file.write_text(CONFIG.format(name=name, url=stage.base_url, access=access))
    return Agent.load(file, home=folder / "home")


def test_what_one_agent_shares_another_is_told(stage: Stage, tmp_path: Path) -> None:
    shared = {"text": "The Porto depot closes at six.", "memory": "sales", "key": "porto depot"}
    stage.says(call("share", shared), call("core_append", {"block": "rules", "text": "Be quick."}), "Done.", "At six.")
    with agent(stage, tmp_path, "ann", "write") as ann:
        assert ann.turn("Tell the others when the Porto depot closes.").text == "Done."
    with agent(stage, tmp_path, "bob") as bob:
        assert bob.turn("When does the Porto depot close?").text == "At six."
        sent = str(stage.requests[-1])
        assert "sales/f1: The Porto depot closes at six." in sent
        assert "Be quick." in sent
        assert "'share'" not in str([tool["name"] for tool in stage.requests[-1]["tools"]])
    home = Home(tmp_path / "home")
    with home.read("sales") as reader:
        [fact] = [row.fact for row in reader.inspect.facts().rows]
        assert str(fact.sources[0]) == "agent:ann"


def test_every_command_reads_such_an_agent(stage: Stage, tmp_path: Path) -> None:
    with agent(stage.says("I see."), tmp_path, "ann", "write") as ann:
        ann.memory.write_shared("sales", "archive", {"text": "The Porto depot closes at six."})
        ann.turn("When does the Porto depot close?")
        ann.memory.search_archive("depot")
    for command in ("show", "trace", "facts", "search", "check"):
        more = ["the Porto depot"] if command in ("trace", "search") else []
        done = command_line(command, "ann", *more, "--home", str(tmp_path / "home"))
        assert done.code == 0, (command, done)
    file, at_home = ["--config", str(tmp_path / "ann.yaml")], ["--home", str(tmp_path / "home")]
    found = command_line("search", "ann", "Porto depot", *file, "--json", *at_home).json["hits"]
    assert "sales/f1" in [hit["page_id"] for hit in found]
    told = command_line("trace", "ann", "Porto depot closes", "--home", str(tmp_path / "home")).out
    assert "recalled pages (s1)" in told
    exported = tmp_path / "ann.db"
    assert command_line("export", "ann", str(exported), "--home", str(tmp_path / "home")).code == 0
    assert command_line("import", str(exported), "--as", "eve", "--home", str(tmp_path / "home")).code == 0


def test_a_search_goes_on_without_a_memory_that_cannot_be_read(stage: Stage, tmp_path: Path) -> None:
    with agent(stage, tmp_path, "ann", "write") as ann:
        ann.memory.archive("The Porto depot closes at six.")
    (tmp_path / "home" / "sales" / "pager.db").write_bytes(b"no database")
    words = ["Porto", "--config", str(tmp_path / "ann.yaml"), "--home", str(tmp_path / "home"), "--json"]
    found = command_line("search", "ann", *words)
    assert [hit["page_id"] for hit in found.json["hits"]] == ["f1"]
    assert (found.code, found.err.startswith("sales was not searched: ")) == (0, True)


def test_agents_of_a_tenant_share_what_is_of_their_tenant(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(CONFIG.format(name="a", url=stage.base_url, access="write"))
    for tenant in ("acme", "other"):
        with Agent.load(file, home=tmp_path / "home", as_name=f"{tenant}..ann") as ann:
            ann.memory.write_shared("sales", "archive", {"text": f"of {tenant}"})
            assert len(ann.memory.search_archive("of")) <= 1
    assert Home(tmp_path / "home").names() == ["acme..ann", "acme..sales", "other..ann", "other..sales"]
    with pytest.raises(RejectedError, match="more than 64"):
        Agent.load(file, home=tmp_path / "home", as_name=f"{'t' * 58}..ann")


@pytest.mark.parametrize(
    ("mounts", "said"),
    [
        ("[{memory: x}]", "agent's own"),
        ("[{memory: a}, {memory: a}]", "mounted already"),
        ("[{memory: a, core: [b]}, {memory: c, core: [b]}]", "core block b already"),
        ("[{memory: ../a}]", "cannot be an agent's name"),
        ("[{memory: a, access: all}]", "has to be"),
    ],
)
def test_mounts_that_cannot_be_are_refused(
    mounts: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=said):
        read(f"name: x\nmounts: {mounts}\n")


def test_a_task_follows_what_others_write(stage: Stage, tmp_path: Path) -> None:
    stage.says("I wait.", call("task_done", {"summary": "done"}))
    file = tmp_path / "ann.yaml"
    file.write_text(CONFIG.format(name="ann", url=stage.base_url, access="write"))
    with Agent.load(file, home=tmp_path / "home", task=True) as ann:
        events = ann.tasks().start("Wait for the others.")
        next(events)
        ann.memory.write_shared("sales", "core_append", {"block": "rules", "text": "Stop now."})
        assert last(events).reason == "done"
    assert "Stop now." in str(stage.requests[-1])
