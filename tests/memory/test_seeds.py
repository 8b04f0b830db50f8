"""What the idea began with, as a person would try it: facts that last, change, and stay with whom they belong to."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agents import Agent
from agents.rehearsal import Rehearsal, call
from agents.rehearsal.fixture import rehearsal as rehearsal  # noqa: PLC0414 - pytest finds it by its name
from pager import StorageError
from tests.support import HandClock
from tests.support.cli import selfpager, write_agent

pytestmark = pytest.mark.slow
CORE = "core: {blocks: {human: {description: who you talk to}}}\n"


class Person:
    """Talks to an agent that is closed and loaded again between any two messages."""

    def __init__(self, folder: Path, *, as_name: str = "x", more: str = "") -> None:
        self.file = write_agent(folder, more)
        self.home = folder / "home"
        self.clock = HandClock()
        self._as_name = as_name

    def agent(self) -> Agent:
        return Agent.load(self.file, home=self.home, as_name=self._as_name, environ={}, clock=self.clock)

    def say(self, text: str) -> str:
        with self.agent() as agent:
            return agent.turn(text).text


@pytest.fixture
def alice(rehearsal: Rehearsal, tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_who_am_i_is_known_after_a_restart_of_the_process(tmp_path: Path) -> None:
    file, home = write_agent(tmp_path, CORE), tmp_path / "home"
    assert selfpager("chat", file, "--home", home, said="My name is Alice.\n").code == 0
    asked = selfpager("chat", file, "--home", home, said="Who am I?\n")
    assert asked.code == 0
    assert "Alice" in asked.out


def test_without_core_the_archive_knows_it(tmp_path: Path) -> None:
    file, home = write_agent(tmp_path), tmp_path / "home"
    assert selfpager("chat", file, "--home", home, said="My name is Alice.\n").code == 0
    asked = selfpager("chat", file, "--home", home, "--json", said="Who am I?\n").events
    assert [event["name"] for event in asked if event["event"] == "toolstarted"] in ([], ["search_archive"])
    assert "Alice" in "".join(event["text"] for event in asked if event["event"] == "text")


def test_facts_stand_by_category_newest_first(alice: Person) -> None:
    for said in ("I live in Porto.", "I prefer window seats.", "I like rowing.", "The deadline is Friday."):
        alice.say(said)
    with alice.agent() as agent:
        facts = agent.memory.inspect.newest_facts()
        assert [fact.text for fact in facts if "preference" in fact.tags] == ["likes rowing", "prefers window seats"]
        assert [fact.valid_from for fact in facts] == sorted((fact.valid_from for fact in facts), reverse=True)
        found = agent.memory.search_archive("what is liked and where is home?", tags=["preference"], limit=10)
        assert {hit.text for hit in found} == {"likes rowing", "prefers window seats"}


def test_the_seat_is_found_among_seven_facts(rehearsal: Rehearsal, tmp_path: Path) -> None:
    alice = Person(tmp_path, more="archival: {prefetch: {k: 0}}\n")
    alice.say(
        "My name is Alice. I live in Porto. I work at Acme. I'm allergic to nuts. I prefer window seats. "
        "My birthday is 9 July. I like rowing."
    )
    with alice.agent() as agent:
        assert len(agent.memory.inspect.newest_facts()) == 7
        assert "prefers window seats" in agent.turn("Which seat do I prefer?").text
        assert agent.memory.search_archive("a place on the plane, which seats?")[0].text == "prefers window seats"
    with alice.agent() as agent:
        assert "allergic to nuts" in agent.turn("What am I allergic to?").text


def test_a_changed_favourite_colour_is_one_current_fact_and_the_old_one_is_not_lost(
    rehearsal: Rehearsal, alice: Person
) -> None:
    alice.say("My favourite colour is blue.")
    before = alice.clock.now()
    alice.clock.set(before + timedelta(days=40))
    told = alice.say("Actually, my favourite colour is green now.")
    assert "blue" in told  # the agent was told what it replaced
    with alice.agent() as agent:
        current = [
            fact.text for fact in agent.memory.history.fact_versions("favourite colour") if not fact.superseded_by
        ]
        assert current == ["favourite colour is green"]
        assert "green" in agent.turn("What is my favourite colour?").text
        now = agent.memory.search_archive("favourite colour", limit=10)
        then = agent.memory.search_archive("favourite colour", as_of=before, limit=10)
        assert [hit.text for hit in now] == ["favourite colour is green"]
        assert [hit.text for hit in then] == ["favourite colour is blue"]
        rehearsal.script(
            call("search_archive", query="favourite colour", as_of=before.date().isoformat()), "So it was."
        )
        agent.turn("And then?")
    result = rehearsal.requests[-1]["messages"][-1]["content"][0]
    assert "favourite colour is blue" in str(result)
    assert "green" not in str(result)


def test_two_users_never_meet(rehearsal: Rehearsal, tmp_path: Path) -> None:
    alice, bob = Person(tmp_path, as_name="alice"), Person(tmp_path, as_name="bob")
    alice.say("My name is Alice. My favourite colour is blue. Remember that the code is 4711.")
    bob.say("My name is Bob. My favourite colour is red.")
    asked = len(rehearsal.requests)
    assert "Bob" in bob.say("Who am I?")
    assert "red" in bob.say("What is my favourite colour?")
    assert "4711" not in bob.say("What is the code?")
    assert not [request for request in rehearsal.requests[asked:] if "4711" in str(request) or "Alice" in str(request)]
    assert "4711" in alice.say("What is the code?")
    with alice.agent() as agent, bob.agent() as other:
        assert not {fact.text for fact in agent.memory.inspect.newest_facts()} & {
            fact.text for fact in other.memory.inspect.newest_facts()
        }


# a damaged state file


def damage(file: Path, how: str) -> bytes:
    raw = bytearray(file.read_bytes())
    if how == "overwritten":
        raw[:] = b"not a database at all " * 400
    elif how == "cut":
        del raw[len(raw) // 2 :]
    elif how == "emptied":
        raw.clear()
    else:
        raw[4096:] = bytes(len(raw) - 4096)
    file.write_bytes(raw)
    return bytes(raw)


@pytest.mark.parametrize("how", ["overwritten", "cut", "emptied", "zeros"])
def test_a_damaged_state_is_told_never_reset_and_there_is_a_way_back(
    rehearsal: Rehearsal, tmp_path: Path, alice: Person, how: str
) -> None:
    alice.say("My name is Alice.")
    backup = tmp_path / "x.backup"
    assert selfpager("export", "x", backup, "--home", alice.home).code == 0
    database = alice.home / "x" / "pager.db"
    left = damage(database, how)
    with pytest.raises(StorageError, match="damaged") as error:
        alice.say("Who am I?")
    assert str(database) in str(error.value)
    assert "estore a backup of its directory" in str(error.value)
    for command in (["show", "x"], ["check", "x"], ["tell", "x", "hello"], ["chat", str(alice.file)]):
        done = selfpager(*command, "--home", alice.home, said="Who am I?\n")
        if command[0] != "tell":
            assert done.code == 1, command
            assert "damaged" in done.err
        assert "Traceback" not in done.err
    assert database.read_bytes() == left
    assert selfpager("import", backup, "--as", "back", "--home", alice.home).code == 0
    again = Person(tmp_path, as_name="back")
    assert "Alice" in again.say("Who am I?")


def test_a_state_that_is_gone_is_not_begun_anew_without_a_word(rehearsal: Rehearsal, alice: Person) -> None:
    alice.say("My name is Alice.")
    database = alice.home / "x" / "pager.db"
    database.unlink()
    done = selfpager("chat", alice.file, "--home", alice.home, said="Who am I?\n")
    assert (done.code, "the memory itself is gone. Restore a backup" in done.err) == (1, True)
    assert not database.exists()
