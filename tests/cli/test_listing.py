"""`list`, `facts` and `forget ID`: the agents of a home and the facts of one, as a person and as a program see them."""

from pathlib import Path

import pytest

from pager import Memory
from tests.cli.conftest import Command
from tests.standin import call
from tests.support.talk import Talk


def test_a_home_without_agents_says_what_to_do(command: Command) -> None:
    done = command("list")
    assert (done.code, "`selfpager init` writes a first one" in done.out) == (0, True)
    assert command("list", "--json").json["agents"] == []


def test_each_agent_is_listed_with_its_state(command: Command, alice: Path, tmp_path: Path) -> None:
    home = alice.parent
    talk = Talk(home / "bob", window=6_000)
    talk.ask("hello", "hello")
    talk.memory.append_user("are you there?")
    talk.memory.close()
    (home / "broken").mkdir()
    (home / "broken" / "pager.db").write_bytes(b"no database")
    with Memory.open(home / "carla", embedder=None):
        agents = {agent["name"]: agent for agent in command("list", "--json").json["agents"]}
        assert {name: agent["state"] for name, agent in agents.items()} == {
            "alice": "idle", "bob": "open turn", "broken": "unreadable", "carla": "running"
        }  # fmt: skip
    assert agents["bob"]["steps"] == 3
    assert 0 < agents["bob"]["window_share"] < 1
    assert agents["broken"]["error"]
    plain = command("list")
    assert [line.split()[0] for line in plain.out.splitlines()] == ["agent", "alice", "bob", "broken", "carla"]
    assert plain.err.startswith("broken: ")
    assert command("show").out == plain.out
    first = command("list", "--limit", "2", "--json").json
    assert ([agent["name"] for agent in first["agents"]], first["next"]) == (["alice", "bob"], "broken")
    assert "`selfpager list --from broken` goes on" in command("list", "--limit", "2").err
    rest = command("list", "--from", "broken", "--json").json
    assert ([agent["name"] for agent in rest["agents"]], rest["next"]) == (["broken", "carla"], None)
    assert command("list", "--from", "d").out == "no agent's name is d or behind it.\n"


def test_a_turn_that_was_left_is_not_open_and_one_without_its_answer_is(command: Command, alice: Path) -> None:
    with Memory.open(alice.parent / "left", embedder=None) as left:
        left.append_user("Never mind.")
        left.leave_turn("It was left.")
    with Memory.open(alice.parent / "owed", embedder=None) as owed:
        owed.append_user("What is in it?")
        owed.append_assistant(
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}],
                "stop_reason": "tool_use",
            }
        )
        owed.append_result("c", "A lamp.")
    agents = command("list", "--json").json["agents"]
    assert {agent["name"]: agent["state"] for agent in agents} == {
        "alice": "idle", "left": "idle", "owed": "open turn"
    }  # fmt: skip


def test_a_call_that_was_cut_off_is_told_of_in_a_sentence(command: Command, alice: Path) -> None:
    talk = Talk(alice.parent / "bob", window=6_000)
    talk.ask("Book us the train.", call("book", {"train": "8:13"}))
    talk.memory.begin_call(talk.memory.open_calls[0].id)
    talk.memory.answer_interrupted()
    talk.memory.close()
    assert command("list").err == "bob: a call of book was cut off and may have run\n"


def test_facts_are_listed_and_one_is_forgotten(command: Command, alice: Path) -> None:
    with Memory.open(alice, embedder=None) as memory:
        memory.archive("likes\ntrains", tags=["travel"])
    assert [line.split()[0] for line in command("facts", "alice").out.splitlines()] == ["f3", "f2"]
    assert command("facts", "alice", "trains").out.endswith("likes trains #travel\n")
    assert (
        command("facts", "alice", "nothing").out == "alice: no such fact; `selfpager search` finds it in other words.\n"
    )
    assert command("facts", "alice", "--limit", "1").err == "1 more; --limit shows them.\n"
    assert command("forget", "alice").code == 2
    assert command("forget", "alice", "f3", "--dry-run").code == 2
    assert command("forget", "alice", "f3").out == "f3 is forgotten: likes\ntrains\n"
    assert command("forget", "alice", "f2").code == 0
    assert command("facts", "alice").out.startswith("alice: no fact is true now; --kind all lists")
    assert command("forget", "alice", "f99").code == 1
    assert command("facts", "alice", "--json").json["total"] == 0


def test_in_a_narrow_terminal_each_agent_has_a_line(
    command: Command, alice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alice.exists()
    monkeypatch.setenv("COLUMNS", "40")
    shown = " ".join(command("list").out.split())
    assert shown.startswith("alice: idle")
    assert "1 step · 1 fact · 0 tokens" in shown
