"""Every command works on a directory and on a home in Postgres, and does the same there. It prints no password."""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agents import Agent
from agents.view.readers import Readers
from agents.view.serving import ViewServer
from pager import BlockSpec, Home, Memory, RejectedError
from pager.clock import SystemClock
from pager.log.place import Agents
from pager.upkeep.place import Directories
from tests.support.cli import Done, command_line, environment, write_agent
from tests.support.postgres import end_leases, rows_of
from tests.upkeep.test_helpers import check_helpers, export_with_helpers
from tests.view.asking import api

Command = Callable[..., Done]


@pytest.fixture(params=["directory", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the place of a home, once of each kind."""
    return str(tmp_path / "home") if request.param == "directory" else request.getfixturevalue("address")


@pytest.fixture
def home(where: str) -> Home:
    return Home(where)


in_postgres = pytest.mark.parametrize("where", ["postgres"], indirect=True)


@pytest.fixture
def command(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command on the home, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    write_agent(tmp_path, "archival: {embedder: none}\n")

    def run(*arguments: str, said: str = "", code: int = 0) -> Done:
        done = command_line(*arguments, "--home", where, said=said)
        assert done.code == code, done
        return done

    return run


def test_a_life_with_every_command(command: Command, home: Home, tmp_path: Path) -> None:
    assert "no agent" in command("list").err + command("list").out
    assert command("chat", "x.yaml", "--quiet", said="I like trams.\n").out == "ok\n"
    assert home.names() == ["x"]
    assert [agent["name"] for agent in command("list", "--json").json["agents"]] == ["x"]
    assert "I like trams." in command("trace", "x", "trams").out
    assert command("show", "x", "--json").json["agent"] == "x"
    assert command("search", "x", "trams").out.startswith("s1")
    assert "sent to x" in command("tell", "x", "And boats.").out
    assert [each["arguments"]["text"] for each in home.pending("x")] == ["And boats."]
    command("chat", "x.yaml", "--quiet", said="hello\n")
    assert home.pending("x") == []
    assert "And boats." in command("trace", "x", "boats").out
    (tmp_path / "notes.md").write_text("# Seats\n\nThe window, please.\n", encoding="utf-8")
    assert "imported 1 fact" in command("import", "notes.md", "--as", "x").out
    assert len(command("facts", "x", "--json").json["facts"]) == 1
    assert command("check", "x").out == "x: no problems found.\n"
    command("tell", "x", "is pending")
    command("export", "x", str(tmp_path / "x.db"))
    command("import", str(tmp_path / "x.db"), "--as", "y")
    assert home.names() == ["x", "y"]
    assert "is pending" in command("trace", "y", "is pending").out
    assert "was purged" in command("purge", "x", "f1", "--yes").out
    assert command("facts", "x", "--json").json["facts"] == []
    assert "is forgotten" in command("forget", "y", "f1").out
    command("show", "z", code=1)
    home.remove("y")
    assert home.names() == ["x"]


def test_a_mirror_is_written_edited_and_taken_back(command: Command, home: Home, tmp_path: Path) -> None:
    with home.open("x", embedder=None, core={"human": BlockSpec(value="Dana.")}) as memory:
        memory.archive("The window, please.", key="seat")
    assert command("export", "x", "notes/").out == "notes mirrors x.\n"
    [file] = [path for path in (tmp_path / "notes").rglob("*.md") if "The window" in path.read_text("utf-8")]
    file.write_text(file.read_text("utf-8").replace("The window", "The aisle"), "utf-8")
    command("import", "notes/")
    with home.read("x") as reader:
        assert [row.fact.text for row in reader.inspect.facts("current").rows] == ["The aisle, please."]


def test_a_client_over_mcp_sees_what_the_agent_stores_meanwhile(where: str, home: Home) -> None:
    mcp = pytest.importorskip("mcp", reason="needs mcp: pip install 'selfpager[mcp]'")
    stdio = importlib.import_module("mcp.client.stdio")
    arguments = ["-m", "agents", "mcp", "x", "--home", where]
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=environment())

    async def run(memory: Memory) -> None:
        # mcp keeps the stderr that was there when it was imported, which may be that of an earlier test.
        async with mcp.Client(stdio.stdio_client(server, errlog=sys.__stderr__)) as client:
            for number in range(2):
                memory.archive(f"tram {number}")
                answer = await client.call_tool("search_archive", {"query": f"tram {number}"})
                assert f": tram {number}" in str(answer.content)

    with home.open("x", embedder=None) as memory:
        asyncio.run(run(memory))


def test_a_task_goes_on_where_it_was(command: Command, home: Home, tmp_path: Path) -> None:
    write_agent(tmp_path, "archival: {embedder: none}\nlimits: {max_steps: 1}\n")
    (tmp_path / "ok.yaml").write_text("- {otherwise: true, say: I look.}\n", "utf-8")
    command("run", "x.yaml", "Find it.", code=3)
    write_agent(tmp_path, "archival: {embedder: none}\n")
    (tmp_path / "ok.yaml").write_text("- call: {task_done: {summary: Found it.}}\n", "utf-8")
    assert "Found it." in command("run", "x.yaml", "--resume").out
    with home.read("x") as reader:
        assert reader.page_text("s1") == "Find it."


def test_a_start_asks_for_one_name_only(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be ten thousand."""
    for places in (Directories, Agents):
        monkeypatch.setattr(places, "names", lambda *_: pytest.fail("all names were asked for"))
    command("chat", "x.yaml", "--quiet", said="hello\n")


def test_a_sleep_is_proposed_applied_and_undone(command: Command, home: Home) -> None:
    with home.open("x", embedder=None) as memory:
        memory.archive("The window, please.")
        memory.archive("the window, please")
    texts = lambda: [fact["text"] for fact in command("facts", "x", "--json").json["facts"]]  # noqa: E731
    assert "--apply" in command("sleep", "x").out
    assert len(texts()) == 2
    command("sleep", "x", "--apply")
    assert len(texts()) == 1
    command("sleep", "x", "--undo")
    assert len(texts()) == 2


def test_an_import_that_fails_leaves_nothing(command: Command, home: Home, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"SQLite format 3\0 and nothing more")
    command("import", str(tmp_path / "bad.db"), code=1)
    assert home.names() == []
    assert not home.place("bad").is_taken()


@in_postgres
def test_a_task_is_run_and_its_agent_can_be_imported_into_a_directory(
    command: Command, home: Home, tmp_path: Path
) -> None:
    (tmp_path / "ok.yaml").write_text("- call: {task_done: {summary: Found it.}}\n", "utf-8")
    assert "Found it." in command("run", "x.yaml", "Find it.").out
    command("export", "x", str(tmp_path / "x.db"))
    assert command_line("import", str(tmp_path / "x.db"), "--home", str(tmp_path / "other")).code == 0
    with Home(tmp_path / "other").read("x") as there, home.read("x") as here:
        assert there.page_text("s1") == here.page_text("s1")


@in_postgres
@pytest.mark.parametrize("names", [("postgres", "postgres"), ("postgres", "directory"), ("directory", "postgres")])
def test_helpers_come_with_their_agent_from_one_home_to_another(home: Home, tmp_path: Path, names: list[str]) -> None:
    homes = {"postgres": home, "directory": Home(tmp_path / "home")}
    source, target = (homes[name] for name in names)
    for number, file in enumerate(export_with_helpers(source, tmp_path)):
        target.import_file(file, f"back{number}")
        check_helpers(target, f"back{number}")
    with pytest.raises(RejectedError, match="already; choose another name"):
        target.import_file(tmp_path / "one.db", "back0")


@in_postgres
def test_an_import_is_there_with_its_helpers_or_not_at_all(home: Home, tmp_path: Path) -> None:
    [file, _] = export_with_helpers(Home(tmp_path / "home"), tmp_path)
    with (
        Memory.open(home.place("y").helper("one"), embedder=None),
        pytest.raises(RejectedError, match=r"y/one .* already; choose"),
    ):
        home.import_file(file, "y")
    assert not home.place("y").is_taken()
    home.place("y").helper("one").remove(SystemClock())
    home.import_file(file, "y")
    check_helpers(home, "y")


@in_postgres
def test_a_name_that_was_begun_and_left_is_free_for_an_import(address: str, home: Home, tmp_path: Path) -> None:
    [file, _] = export_with_helpers(Home(tmp_path / "home"), tmp_path)
    rows = rows_of(address)
    rows.create("y")
    claim = rows.claim("y", {"pid": 1, "host": "", "command": "", "since": ""})
    assert claim
    with pytest.raises(RejectedError, match="already; choose another name"):
        home.import_file(file, "y")
    end_leases(address)
    home.import_file(file, "y")
    assert rows.commit(claim, 1, [b"of the one who began it"]) is None
    check_helpers(home, "y")


def test_an_agent_in_which_nothing_was_said_leaves_nothing(command: Command, home: Home) -> None:
    command("chat", "x.yaml", "--quiet", said="/facts\n")
    assert home.names() == []
    assert not home.place("x").is_taken()
    command("chat", "x.yaml", "--quiet", said="hello\n")
    command("chat", "x.yaml", "--quiet", said="/facts\n")
    assert home.names() == ["x"]


def test_commands_of_a_conversation_see_what_was_said_in_it(command: Command, home: Home) -> None:
    found = command("chat", "x.yaml", "--quiet", said="I like trams.\n/search trams\n").out
    assert "I like trams." in found
    undone = command("chat", "x.yaml", "--quiet", said="/undo\n/search trams\n").out
    assert "withdrawn" in undone
    with home.read("x") as reader:
        assert reader.inspect.events()["withdraw"] == 2


def test_an_agent_is_loaded_with_an_address(where: str, tmp_path: Path) -> None:
    write_agent(tmp_path, "archival: {embedder: none}\n")
    with Agent.load(tmp_path / "x.yaml", home=where) as agent:
        assert agent.turn("hello").text == "ok"
    with Agent.load(tmp_path / "x.yaml", environ={"SELFPAGER_HOME": where}) as agent:
        assert agent.turn("hello again").text == "ok"
        assert agent.memory.page_text("s3") == "hello again"


def test_the_view_follows_an_agent_at_work(home: Home) -> None:
    with home.open("x", embedder=None) as memory, ViewServer(Readers(home)) as server:
        memory.archive("likes trams")
        before = api(server, "x/state")
        assert api(server, "agents")["agents"] == ["x"]
        assert before["running"]["pid"]
        memory.archive("likes boats")
        assert api(server, "x/state")["revision"] != before["revision"]
        assert [row["name"] for row in api(server, "fleet")["fleet"]] == ["x"]


def test_helpers_are_agents_beside_their_own(home: Home) -> None:
    place = home.place("x")
    with home.open("x", embedder=None) as memory:
        with Memory.open(place.helper("call 1"), embedder=None) as helper:
            helper.archive("the code is 4711 4711")
            with Memory.open(place.helper("call 1").helper("two"), embedder=None) as inner:
                inner.archive("of a helper's helper")
        assert [each.exists() for each in place.helpers()] == [True]
        assert [each.exists() for each in place.helpers()[0].helpers()] == [True]
        secret = memory.archive("the code is 4711 4711")
        assert memory.purge(secret.id) > 1
        assert memory.check() == []
    assert home.names() == ["x"]
    with Memory.open(place.helper("call 1"), embedder=None) as helper:
        assert helper.inspect.facts("current").total == 0
    home.remove("x")
    assert place.helpers() == []


def test_a_purge_reaches_pending_commands(home: Home) -> None:
    with home.open("x", embedder=None) as memory:
        fact = memory.archive("the code is 4711 4711")
        commands = memory._opened.commands
        sent = home.send("x", "message", {"text": "the code is 4711 4711, and more"})
        home.send("x", "message", {"text": "the code is 4711 4711"})
        home.send("x", "message", {"text": "hello"})
        memory.purge(fact.id)
        left = {command: json.loads(text)["arguments"]["text"] for command, text in home_commands(home).items()}
        assert "4711 4711" not in str(left)
        assert "hello" in left.values()
        assert left[sent.command].endswith(", and more")
        del commands


def home_commands(home: Home) -> dict[str, str]:
    commands = home.place("x").commands
    return {command: commands.read(command) for command in commands.ids()}


def test_what_is_no_command_is_set_aside(home: Home) -> None:
    home.open("x", embedder=None).close()
    home.place("x").commands.write("1", "no JSON")
    with home.open("x", embedder=None) as memory:
        assert memory.process_inbox() == 0
        assert next(row.reason for row in memory.ledger(events=["error"])).startswith(
            "a file in the inbox is no command"
        )
    assert home.pending("x") == []


def test_a_command_takes_effect_once_whenever_its_row_is_deleted(home: Home) -> None:
    home.open("x", embedder=None).close()
    place = home.place("x")
    assert home.send("x", "archive", {"text": "likes trams"}).state == "done"
    sent = home.send("x", "archive", {"text": "likes boats"})
    text = json.dumps({"kind": "archive", "arguments": {"text": "likes boats"}})
    place.commands.write(sent.command, text)  # as if its owner had died before it was deleted
    with home.open("x", embedder=None) as memory:
        assert memory.process_inbox() == 0
        assert memory.inspect.facts("current").total == 2
    assert home.pending("x") == []


@in_postgres
def test_an_agent_as_it_was_new_keys_and_the_end(
    command: Command, home: Home, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.open("x", embedder=None) as memory:
        memory.archive("The window, please.")
    before = rows_of(address).server.ask("SELECT clock_timestamp()")[0][0].isoformat()
    with home.open("x", embedder=None) as memory:
        memory.archive("The aisle, please.")
    done = command("restore", "x", "--at", before, "--as", "y")
    assert done.out == f"y is x as it was at {before}.\n"
    assert len(command("facts", "y", "--json").json["facts"]) == 1
    assert "Its past begins at" in command("restore", "x", "--at", "3d ago", "--as", "z", code=1).err
    assert "give a whole number of hours" in command("restore", "x", "--at", "5m ago", "--as", "z", code=1).err
    assert "is not a moment" in command("restore", "x", "--at", "yesterday", "--as", "z", code=1).err
    assert "give the agent that is made a name with --as" in command("restore", "x", "--at", before, code=2).err
    assert "there is no master key: make one" in command("rekey", "x", code=1).err
    monkeypatch.setenv("SELFPAGER_MASTER_KEY", base64.b64encode(bytes(32)).decode())
    assert command("rekey", "x").out == "x has a new key; 1 memory was encrypted with it.\n"
    assert command("rekey", "--json").json == {"wrapped": 0, "keys": 1}
    assert len(command("facts", "x", "--json").json["facts"]) == 2
    assert command("erase", "x", said="n\n", code=1).err.endswith("nothing was erased.\n")
    assert command("erase", "x", said="y\n").out.endswith("x was erased.\n")
    assert home.names() == ["y"]


def test_in_a_directory_an_agent_is_erased_and_the_others_say_what_they_need(tmp_path: Path) -> None:
    state = tmp_path / "state"
    Home(state).open("x", embedder=None).close()
    for arguments in (["restore", "x", "--at", "2h", "--as", "y"], ["rekey", "x"], ["rekey"]):
        done = command_line(*arguments, "--home", state)
        assert done.code == 1
        assert "is a directory, " in done.err
    assert command_line("erase", "x", "--yes", "--home", state).code == 0
    assert list(state.iterdir()) == []
