"""What the idea began with, as a person would try it: facts that last, change, and stay with whom they belong to."""

from pathlib import Path

import pytest

from agents import Agent
from pager import StorageError
from tests.support import HandClock
from tests.support.cli import command_line, selfpager, write_agent

pytestmark = pytest.mark.slow
KEEPS = "provider: scripted, script: 'tests.support.answers:keeps_and_finds'"


class Person:
    """Talks to an agent that is closed and loaded again between any two messages."""

    def __init__(self, folder: Path, *, as_name: str = "x", more: str = "", model: str = KEEPS) -> None:
        self.file = write_agent(folder, more, model=model)
        self.home = folder / "home"
        self.clock = HandClock()
        self._as_name = as_name

    def agent(self) -> Agent:
        return Agent.load(self.file, home=self.home, as_name=self._as_name, environ={}, clock=self.clock)

    def say(self, text: str) -> str:
        with self.agent() as agent:
            return agent.turn(text).text


@pytest.fixture
def alice(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_who_am_i_is_known_after_a_restart_of_the_process(tmp_path: Path) -> None:
    file, home = write_agent(tmp_path, model=KEEPS), tmp_path / "home"
    assert selfpager("chat", file, "--home", home, said="My name is Alice.\n").code == 0
    asked = selfpager("chat", file, "--home", home, said="What is my name?\n")
    assert (asked.code, "Alice" in asked.out) == (0, True)


def test_the_seat_is_found_among_seven_facts(tmp_path: Path) -> None:
    alice = Person(tmp_path, more="archival: {prefetch: {k: 0}}\n")
    for fact in ("name is Alice", "lives in Porto", "works at Acme", "is allergic to nuts", "prefers window seats",
                 "birthday is 9 July", "likes rowing"):  # fmt: skip
        alice.say(fact)
    with alice.agent() as agent:
        assert len(agent.memory.inspect.newest_facts()) == 7
        assert agent.memory.search_archive("a place on the plane, which seats?")[0].text == "prefers window seats"
    assert "allergic to nuts" in alice.say("What am I allergic to?")


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_damaged_state_is_told_never_reset_and_there_is_a_way_back(
    tmp_path: Path, alice: Person, share: float
) -> None:
    alice.say("My name is Alice.")
    backup = tmp_path / "x.backup"
    assert command_line("export", "x", backup, "--home", alice.home).code == 0
    database = alice.home / "x" / "pager.db"
    left = database.read_bytes()[: int(share * database.stat().st_size)]
    database.write_bytes(left)
    with pytest.raises(StorageError, match="damaged") as error:
        alice.say("Who am I?")
    assert str(database) in str(error.value)
    assert "estore a backup of its directory" in str(error.value)
    for command in (["show", "x"], ["check", "x"], ["tell", "x", "hello"], ["chat", str(alice.file)]):
        done = command_line(*command, "--home", alice.home, said="Who am I?\n")
        if command[0] != "tell":
            assert done.code == 1, command
            assert "damaged" in done.err
        assert "Traceback" not in done.err
    assert database.read_bytes() == left
    assert command_line("import", backup, "--as", "back", "--home", alice.home).code == 0
    again = Person(tmp_path, as_name="back")
    assert "Alice" in again.say("What is my name?")
