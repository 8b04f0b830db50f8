"""A person's changes: at once when nobody holds the agent, else left for the one that does; each exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pager import BlockSpec, Limits, Memory, MemoryReader, RejectedError, pending_commands, send_command
from pager.home import CommandOutcome, Home
from tests.support.clock import HandClock

LIMITS = Limits.for_window(20_000)
CORE = {"human": BlockSpec(value="name is Dana", limit_tokens=60)}


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def directory(tmp_path: Path, clock: HandClock) -> Path:
    with opened(tmp_path, clock, core=CORE) as memory:
        memory.archive("likes trams", key="tram")
        memory.append_user("hello")
        memory.request()
        memory.append_assistant("hello")
    return tmp_path


def opened(directory: Path, clock: HandClock, **more: Any) -> Memory:
    return Memory.open(directory, embedder=None, limits=LIMITS, clock=clock, **more)


def edit(directory: Path, kind: str, arguments: dict[str, Any], clock: HandClock) -> CommandOutcome:
    return Home(directory.parent, clock=clock).send(directory.name, kind, arguments)


def settle(directory: Path, clock: HandClock) -> bool:
    return Home(directory.parent, clock=clock).apply_pending(directory.name)


def outcomes(directory: Path, commands: list[str]) -> list[CommandOutcome]:
    return Home(directory.parent).outcomes(directory.name, commands)


COMMANDS: list[tuple[str, dict[str, Any], str]] = [
    ("core_replace", {"block": "human", "old_text": "Dana", "new_text": "Rosa"}, "core"),
    ("core_append", {"block": "human", "text": "lives in Porto"}, "core"),
    ("archive", {"text": "likes boats", "key": "boat", "tags": ["travel"]}, "archive"),
    ("forget", {"page_id": "f1", "reason": "took the bus"}, "forget"),
    ("pin", {"page_id": "f1"}, "pin"),
]


@pytest.mark.parametrize(("kind", "arguments", "event"), COMMANDS)
def test_at_rest_it_is_done_at_once_and_once(
    directory: Path, clock: HandClock, kind: str, arguments: dict[str, Any], event: str
) -> None:
    with MemoryReader.open(directory) as reading:
        before = len(reading.ledger(events=[event]))
        done = edit(directory, kind, arguments, clock)
        assert done.state == "done"
        rows = reading.ledger(events=[event])[before:]
        assert [row.actor for row in rows] == ["person"]
        assert pending_commands(directory) == []
    with opened(directory, clock) as memory:
        assert memory.process_inbox() == 0


@pytest.mark.parametrize(("kind", "arguments", "event"), COMMANDS)
def test_of_an_agent_at_work_it_waits_for_its_process(
    directory: Path, clock: HandClock, kind: str, arguments: dict[str, Any], event: str
) -> None:
    with opened(directory, clock) as memory:
        before = len(memory.ledger(events=[event]))
        left = edit(directory, kind, arguments, clock)
        assert left == CommandOutcome(left.command, "pending")
        assert [command["id"] for command in pending_commands(directory)] == [left.command]
        assert len(memory.ledger(events=[event])) == before
        memory.append_user("go on")
        assert len(memory.ledger(events=[event])) == before + 1
    assert outcomes(directory, [left.command]) == [CommandOutcome(left.command, "done")]


def test_what_is_refused_says_why(directory: Path, clock: HandClock) -> None:
    done = edit(directory, "core_replace", {"block": "human", "old_text": "Rosa", "new_text": "x"}, clock)
    assert done.state == "refused"
    assert "does not stand in the block 'human'" in done.text
    with pytest.raises(RejectedError, match="no command"):
        edit(directory, "purge", {"page_id": "f1"}, clock)


def test_a_message_is_never_taken_from_whoever_will_answer_it(directory: Path, clock: HandClock) -> None:
    told = edit(directory, "message", {"text": "hurry up"}, clock)
    assert told.state == "pending"
    later = edit(directory, "core_append", {"block": "human", "text": "is late"}, clock)
    assert later.state == "done"
    assert [command["kind"] for command in pending_commands(directory)] == ["message"]
    with opened(directory, clock) as memory:
        assert memory.process_inbox() == 1
        assert memory.turn_is_open


def test_what_others_left_before_is_done_before(directory: Path, clock: HandClock) -> None:
    send_command(directory, "core_append", {"block": "human", "text": "first"}, clock)
    edit(directory, "core_append", {"block": "human", "text": "second"}, clock)
    with MemoryReader.open(directory) as reading:
        assert reading.core()[0].value == "name is Dana\nfirst\nsecond"


def test_the_agents_own_limits_hold(directory: Path, clock: HandClock) -> None:
    with Memory.open(directory, embedder=None, clock=clock, limits=Limits.for_window(5_000, core_tokens=6)) as memory:
        memory.append_user("go on")
        memory.request()
    refused = edit(directory, "core_append", {"block": "human", "text": "and a few more words"}, clock)
    assert "of 6 tokens" in refused.text


def test_an_edit_leaves_the_next_request_to_the_agent(directory: Path, clock: HandClock) -> None:
    with opened(directory, clock) as memory:
        memory.append_user("hello again")
        memory.request()
        memory.append_assistant("hello again")
        epochs = len(memory.ledger(events=["epoch"]))
    edit(directory, "core_append", {"block": "human", "text": "lives in Porto"}, clock)
    assert settle(directory, clock)
    with opened(directory, clock) as memory:
        memory.append_user("where do I live?")
        last = memory.request().messages[-1]["content"][-1]["text"]
        assert last.startswith("<core_update")
        assert "lives in Porto" in last
        assert len(memory.ledger(events=["epoch"])) == epochs
