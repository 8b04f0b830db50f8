"""A person's changes: at once when nobody holds the agent, else left for the one that does; each exactly once."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pager import BlockSpec, Limits, Memory, MemoryReader, RejectedError, StorageError, pending_commands, send_command
from pager.home import CommandOutcome, Home
from tests.support.clock import HandClock

CLOCK = HandClock()
LIMITS = Limits.for_window(20_000)
CORE = {"human": BlockSpec(value="name is Dana", limit_tokens=60)}
opened = partial(Memory.open, embedder=None, clock=CLOCK)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with opened(tmp_path, limits=LIMITS, core=CORE) as memory:
        memory.archive("likes trams", key="tram")
        memory.append_user("hello")
        memory.request()
        memory.append_assistant("hello")
    return tmp_path


def test_only_what_nobody_used_is_removed(tmp_path: Path) -> None:
    home = Home(tmp_path, clock=CLOCK)
    for name in ("new", "edited", "told"):
        home.open(name, embedder=None, limits=LIMITS, core={**CORE, "now": BlockSpec(value="packing")}).close()
    home.send("edited", "core_append", {"block": "human", "text": "lives in Porto"})
    home.send("told", "message", {"text": "hello"})
    for name in home.names():
        home.remove_if_unused(name)
    assert home.names() == ["edited", "told"]


def send(directory: Path, kind: str, **arguments: Any) -> CommandOutcome:
    return Home(directory.parent, clock=CLOCK).send(directory.name, kind, arguments)


COMMANDS: list[tuple[str, dict[str, Any], str]] = [
    ("core_replace", {"block": "human", "old_text": "Dana", "new_text": "Rosa"}, "core"),
    ("core_append", {"block": "human", "text": "lives in Porto"}, "core"),
    ("archive", {"text": "likes boats", "key": "boat", "tags": ["travel"]}, "archive"),
    ("forget", {"page_id": "f1", "reason": "took the bus"}, "forget"),
    ("pin", {"page_id": "f1"}, "pin"),
]


@pytest.mark.parametrize(("kind", "arguments", "event"), COMMANDS)
def test_at_rest_it_is_done_at_once_and_once(directory: Path, kind: str, arguments: Any, event: str) -> None:
    with MemoryReader.open(directory) as reading:
        before = len(reading.ledger(events=[event]))
        assert send(directory, kind, **arguments).state == "done"
        assert [row.actor for row in reading.ledger(events=[event])[before:]] == ["person"]
        assert pending_commands(directory) == []
    with opened(directory, limits=LIMITS) as memory:
        assert memory.process_inbox() == 0


@pytest.mark.parametrize(("kind", "arguments", "event"), COMMANDS)
def test_of_an_agent_at_work_it_waits_for_its_process(directory: Path, kind: str, arguments: Any, event: str) -> None:
    with opened(directory, limits=LIMITS) as memory:
        before = len(memory.ledger(events=[event]))
        outcome = send(directory, kind, **arguments)
        assert outcome == CommandOutcome(outcome.command, "pending")
        assert [command["id"] for command in pending_commands(directory)] == [outcome.command]
        assert len(memory.ledger(events=[event])) == before
        memory.append_user("go on")
        assert len(memory.ledger(events=[event])) == before + 1
    done = Home(directory.parent).outcomes(directory.name, [outcome.command])
    assert done == [CommandOutcome(outcome.command, "done")]


def test_what_is_refused_says_why(directory: Path) -> None:
    outcome = send(directory, "core_replace", block="human", old_text="Rosa", new_text="x")
    assert outcome.state == "refused"
    assert "is not in the block 'human'" in outcome.text
    with pytest.raises(RejectedError, match="no command"):
        send(directory, "purge", page_id="f1")


def test_a_message_is_never_taken_from_whoever_will_answer_it(directory: Path) -> None:
    assert send(directory, "message", text="hurry up").state == "pending"
    assert send(directory, "core_append", block="human", text="is late").state == "done"
    assert [command["kind"] for command in pending_commands(directory)] == ["message"]
    with opened(directory, limits=LIMITS) as memory:
        assert memory.process_inbox() == 1
        assert memory.turn_is_open


def test_what_others_left_before_is_done_before(directory: Path) -> None:
    send_command(directory, "core_append", {"block": "human", "text": "first"}, CLOCK)
    send(directory, "core_append", block="human", text="second")
    with MemoryReader.open(directory) as reading:
        assert reading.core()[0].value == "name is Dana\nfirst\nsecond"


def test_the_limits_of_the_agents_last_request_hold(directory: Path) -> None:
    with opened(directory, limits=Limits.for_window(5_000, core_tokens=6)) as memory:
        memory.append_user("go on")
        memory.request()
    assert "of 6 tokens" in send(directory, "core_append", block="human", text="and a few more words").text


def test_an_edit_opens_no_epoch_and_the_agent_is_told(directory: Path) -> None:
    with opened(directory, limits=LIMITS) as memory:
        memory.append_user("hello again")
        memory.request()
        memory.append_assistant("hello again")
        epochs = len(memory.ledger(events=["epoch"]))
    send(directory, "core_append", block="human", text="lives in Porto")
    assert Home(directory.parent, clock=CLOCK).apply_pending(directory.name)
    with opened(directory, limits=LIMITS) as memory:
        memory.append_user("where do I live?")
        last = memory.request().messages[-1]["content"][0]["text"]
        assert last.startswith("<core_update")
        assert "lives in Porto" in last
        assert len(memory.ledger(events=["epoch"])) == epochs


@pytest.mark.parametrize("method", ["exists", "open", "read", "remove", "owner", "place"])
@pytest.mark.parametrize("name", [None, 5, b"x", ""])
def test_a_name_that_is_none_is_refused(tmp_path: Path, method: str, name: Any) -> None:
    with pytest.raises(RejectedError, match="cannot be an agent's name"):
        getattr(Home(tmp_path), method)(name)


@pytest.mark.parametrize("odd", [5, b"x", "", "\0", []])
def test_a_home_and_a_file_are_paths(tmp_path: Path, odd: Any) -> None:
    with pytest.raises(RejectedError, match="give a path"):
        Home(odd)
    with pytest.raises(RejectedError, match="give a path"):
        Home(tmp_path).import_file(odd, "x")
    with pytest.raises(RejectedError, match="give a path"):
        Home.is_export(odd)


def test_a_path_may_be_a_text(directory: Path, tmp_path: Path) -> None:
    home = Home(directory.parent)
    with home.read(directory.name) as reader:
        reader.export(str(tmp_path / "copy"))
    assert Home.is_export(str(tmp_path / "copy"))
    with pytest.raises(RejectedError, match="there is no file missing"):
        home.import_file("missing.db", "y")
    Home(tmp_path).import_file(str(tmp_path / "copy"), "y")
    assert Home(tmp_path).exists("y")


def test_a_folder_in_the_place_of_a_database_is_no_agent(tmp_path: Path) -> None:
    (tmp_path / "x" / "pager.db").mkdir(parents=True)
    assert Home(tmp_path).names() == []
    assert not Home(tmp_path).exists("x")


def test_a_command_needs_no_clock(directory: Path) -> None:
    command = send_command(directory, "archive", {"text": "likes ferries"})
    assert [each["id"] for each in pending_commands(directory)] == [command]


@pytest.mark.parametrize(
    "mistyped", ["postgresql:/a:pw@db/app", "postgres//a:pw@db/app", "postgresql+psycopg://a:pw@db/app",
                 "POSTGRESQL://a:pw@db/app", "mysql://a:pw@db/app", "http://db", "file:///var/agents"],
)  # fmt: skip
def test_a_mistyped_address_is_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistyped: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RejectedError, match="begins with postgresql://, and not with") as refused:
        Home(mistyped)
    assert "pw" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    assert Home(f"./{mistyped}").names() == []


def test_what_cannot_be_noted_beside_the_agents_says_what_to_look_at(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    home = Home(tmp_path / "file" / "home", clock=CLOCK)
    for note in (lambda: home.set_due("x", CLOCK.now()), lambda: home.change_value("keys", lambda _: "{}")):
        with pytest.raises(StorageError, match=r"cannot be written \(.*\)\. Check the rights and space there"):
            note()
