"""One process writes, any number read, and the others leave commands that take effect exactly once."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pager import InUseError, Memory, MemoryReader, NotFoundError, pending_commands, send_command
from tests.crash.children import Life, run, say
from tests.crash.commit_points import CommitPoints
from tests.crash.load import open_memory, standin, write_pairs
from tests.standin import Reply
from tests.support.clock import HandClock
from tests.support.talk import database_of


def leave_many(directory: Path, kind: str, name: str, count: int) -> None:
    for number in range(count):
        arguments: dict[str, Any] = {"text": f"{name} {number}"}
        say("left", send_command(directory, kind, arguments, HandClock()))


def take_and_die(directory: Path, deadly: int, when: str) -> None:
    """The owner dies before or after a commit of taking what is in its inbox: number 1, 2, ..."""
    memory = open_memory(directory, embedder=None)
    points = CommitPoints(deadly, after=when == "after")
    points.watch(database_of(memory))
    memory.process_inbox()
    say("taken", points.count)
    memory.close()


def open_words(directory: Path) -> Memory:
    return open_memory(directory, embedder=None)


def answer(memory: Memory, *blocks: Any) -> None:
    memory.append_assistant(standin().create({"model": "m", **memory.request().params}, Reply(*blocks or ("ok",))))


# --- readers


def test_a_reader_sees_each_call_as_soon_as_it_has_returned(tmp_path: Path) -> None:
    life = Life(write_pairs, tmp_path, 20)
    life.until("open")
    reader = MemoryReader.open(tmp_path)
    for number in range(20):
        assert life.until("pair") == ["pair", number]
        assert len(reader.inspect.newest_facts(100)) >= 2 * (number + 1)
        assert [hit.text for hit in reader.search_archive(f"left {number}", limit=1)] == [f"left {number}"]
    page = life.until("page")[1]
    assert reader.page_text(page) == "are you there?"
    assert [hit.page_id for hit in reader.search_recall("there")] == [page]
    life.kill()
    assert reader.page_text(page) == "are you there?"
    reader.close()


def test_a_reader_of_nothing_says_so_and_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no memory"):
        MemoryReader.open(tmp_path / "nobody")
    assert list(tmp_path.iterdir()) == []


# --- forked children


CALLS: list[Callable[[Memory], object]] = [
    lambda memory: memory.append_user("from the child"),
    lambda memory: memory.append_assistant("from the child"),
    lambda memory: memory.request(),
    lambda memory: memory.archive("from the child"),
    lambda memory: memory.record("user", "from the child"),
    lambda memory: memory.search_archive("fact"),
    lambda memory: memory.core(),
    lambda memory: memory.accepts_message,
    lambda memory: memory.count_unembedded(),
    lambda memory: memory.compact(),
    lambda memory: memory.inspect.newest_facts(),
    lambda memory: memory.transaction().__enter__(),
    lambda memory: memory.read_snapshot().__enter__(),
]


def fork_in_the_middle(directory: Path) -> None:
    """What a forked child gets for each call, and what the parent can do before and after the child has ended."""
    memory = open_words(directory)
    memory.append_user("hello")
    ends, (wait, go) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        for use in CALLS:
            try:
                say("done", repr(use(memory)))
            except InUseError as error:
                say("refused", f"process {os.getppid()}" in str(error))
        memory.close()
        os.write(ends[1], b"x")
        os.read(wait, 1)  # it lives until the parent has closed the memory
        os._exit(0)
    os.read(ends[0], 1)
    with pytest.raises(InUseError):
        open_words(directory)
    answer(memory)
    memory.close()
    open_words(directory).close()
    os.write(go, b"x")
    os.waitpid(child, 0)
    say("went on")


def test_a_forked_child_is_refused_and_takes_nothing_from_its_parent(tmp_path: Path) -> None:
    said = run(fork_in_the_middle, tmp_path).said
    assert said == [["refused", True]] * len(CALLS) + [["went on"]]


# --- commands


def test_commands_of_many_processes_take_effect_once(tmp_path: Path) -> None:
    open_words(tmp_path).close()
    count = 40
    lives = [Life(leave_many, tmp_path, "archive", name, count) for name in ("one", "two")]
    with open_words(tmp_path) as memory:
        while any(life.signal is None for life in lives):
            for life in lives:
                life.next()
            memory.process_inbox()
        memory.process_inbox()
        texts = [fact.text for fact in memory.inspect.newest_facts(1_000)]
        assert sorted(texts) == sorted(f"{name} {number}" for name in ("one", "two") for number in range(count))
        mine = [text for text in reversed(texts) if text.startswith("one")]
        assert mine == [f"one {number}" for number in range(count)], "in the order in which they were left"
    assert pending_commands(tmp_path) == []


COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("archive", {"text": "a fact", "key": "k", "tags": ["t"]}),
    ("message", {"text": "a message", "name": "Dana"}),
    ("core_append", {"block": "notes", "text": "a line"}),
    ("forget", {"page_id": "f1", "reason": "it is over"}),
    ("forget", {"page_id": "f999", "reason": "is refused"}),
    ("pin", {"page_id": "f2"}),
]


def leave_commands(directory: Path) -> None:
    with open_words(directory) as memory:
        memory.archive("was there before")
    clock = HandClock()
    for kind, arguments in COMMANDS:
        send_command(directory, kind, arguments, clock)


def assert_taken_once(directory: Path) -> None:
    with open_words(directory) as memory:
        memory.process_inbox()
        assert memory.process_inbox() == 0
        assert pending_commands(directory) == []
        assert [fact.text for fact in memory.inspect.newest_facts()] == ["a fact", "was there before"]
        assert memory.fact("f1").forgotten == "it is over"
        assert [hit.text for hit in memory.search_recall("message")] == ["a message"]
        assert [block.value for block in memory.core() if block.name == "notes"] == ["a line"]
        assert [pin.page_id for pin in memory._store.prompt.pins()] == ["f2"]
        outcomes = [each.reason for each in memory.ledger(events=["command"])]
        assert [each.partition(":")[0] for each in outcomes] == ["done"] * 4 + ["refused", "done"]
        assert "f999" in outcomes[4]
        assert memory.check() == []
        answer(memory)


def test_a_command_takes_effect_once_wherever_the_owner_dies(tmp_path: Path) -> None:
    leave_commands(tmp_path / "whole")
    count = run(take_and_die, tmp_path / "whole", 0, "before").said[-1][1]
    assert count == len(COMMANDS)
    for number in range(1, count + 1):
        for when in ("before", "after"):
            directory = tmp_path / f"{number}-{when}"
            leave_commands(directory)
            assert run(take_and_die, directory, number, when).signal == 9
            assert_taken_once(directory)


def test_garbage_that_cannot_be_set_aside_stops_nobody(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    (inbox / "0-a-folder.json").mkdir(parents=True)
    (inbox / "1-cut.json").write_text("{")
    (inbox / "rejected").write_text("somebody's file, where the folder should be")
    with open_words(tmp_path) as memory:
        send_command(tmp_path, "archive", {"text": "comes behind it"}, HandClock())
        memory.append_user("hello")
        answer(memory)
        assert [fact.text for fact in memory.inspect.newest_facts()] == ["comes behind it"]
