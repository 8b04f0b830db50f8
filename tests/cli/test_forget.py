"""`forget --source`: what it says, plainly and as JSON, and what it does, whether the agent runs or not."""

from io import StringIO
from pathlib import Path

from rich.console import Console

from agents import Agent
from agents.cli import slash
from agents.models.scripted import Reply, ScriptedModel
from pager import Memory
from pager.types import Json
from tests.cli.conftest import Command

PAGE = "web:example.org"


def refuse(_: Json) -> Reply:
    raise AssertionError("nobody asks the model")


def texts(alice: Path) -> list[str]:
    with Memory.open(alice, embedder=None) as memory:
        return sorted(use.fact.text for use in memory.inspect.facts("current").rows)


def test_it_takes_back_what_a_page_said(command: Command, alice: Path) -> None:
    with Memory.open(alice, embedder=None) as memory:
        memory.archive("prefers the roof", key="seat", source=PAGE)
        memory.core_append("human", "sits on roofs", source=PAGE)
    dry = command("forget", "alice", "--source", PAGE, "--dry-run")
    assert dry.out.splitlines() == [
        "f3: ended, for no other source says it", "f2: is true again, as a new fact",
        "human: core block that goes back to an earlier version",
        "human: sits on roofs: line that goes with it", "nothing was changed (--dry-run).",
    ]  # fmt: skip
    assert texts(alice) == ["prefers the roof"]
    told = command("forget", "alice", "--source", "web", "--since", "2099-01-01", "--json").json
    assert (told["state"], told["facts"]) == ("done", [])
    done = command("forget", "alice", "--source", PAGE, "--json").json
    expected = {"agent": "alice", "state": "done", "source": PAGE, "facts": ["f3"], "left": [], "restored": ["f2"]}
    assert done == {**expected, "blocks": ["human"], "lines": ["human: sits on roofs"], "pins": [], "steps": []}
    assert texts(alice) == ["prefers aisle seats"]
    assert command("forget", "alice", "--source", PAGE).out == f"alice holds nothing of {PAGE}.\n"


def test_a_search_shows_what_is_of_a_page(command: Command, alice: Path) -> None:
    with Memory.open(alice, embedder=None) as memory:
        memory.archive("Refunds go to account 66.", source=PAGE)
    [line] = [line for line in command("search", "alice", "refunds account").out.splitlines() if "66" in line]
    assert line.startswith(f"f3 [via {PAGE}] ")
    with Agent(name="alice", model=ScriptedModel("m", refuse), embedder=None, home=alice.parent) as agent:
        slash.run("/search refunds account", "alice", agent, Console(file=(shown := StringIO()), width=200))
    assert line in shown.getvalue()


def test_steps_that_are_left_are_not_called_nothing(command: Command, alice: Path) -> None:
    with Memory.open(alice, embedder=None) as memory:
        memory.append_user("read it")
        memory.request()
        calls = [{"type": "tool_use", "id": "c1", "name": "fetch", "input": {}}]
        memory.append_assistant({"role": "assistant", "content": calls, "stop_reason": "tool_use", "usage": {}})
        memory.append_result("c1", "the roof", source=PAGE)
    assert command("forget", "alice", "--source", PAGE).out.endswith(
        f"\nalice holds nothing of {PAGE} but these steps.\n"
    )


def test_a_running_agent_does_it_itself(command: Command, alice: Path) -> None:
    with Memory.open(alice, embedder=None) as memory:
        memory.archive("prefers the roof", source=PAGE)
        told = command("forget", "alice", "--source", PAGE)
        assert told.out.endswith("sent to alice, which is running and does it at its next step.\n")
        assert memory.process_inbox() == 1
        assert memory.inspect.sources() == {"program": 1}


def test_what_is_no_source_is_said(command: Command, alice: Path) -> None:
    wrong = command("forget", "alice", "--source", "example.org")
    assert (wrong.code, "is no source; write kind:name" in wrong.err) == (1, True)
