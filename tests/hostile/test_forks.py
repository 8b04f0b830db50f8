"""A forked child is another process: it writes nothing through its parent's lock, and does not keep it."""

import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pager import InUseError, Memory, MemoryReader
from tests.crash.children import die, run, say
from tests.crash.load import open_memory
from tests.support.talk import database_of

pytestmark = pytest.mark.slow


def open_words(directory: Path) -> Memory:
    return open_memory(directory, embedder=None)


def in_child(work: Callable[[], object]) -> int:
    """Run in a forked child, which ends as a program ends. Return its exit status."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent hears of it
            say("raised", type(error).__name__, str(error))
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fork_in_a_transaction(directory: Path, ends: str) -> None:
    child = -1
    with open_words(directory) as memory:
        try:
            with memory.transaction():
                memory.archive("of the parent")
                if not (child := os.fork()):
                    if ends == "by an error":
                        raise LookupError
                    say("at its end")
                else:
                    os.waitpid(child, 0)
                    memory.archive("after the child")
        except (InUseError, LookupError) as error:
            assert not child
            say("raised", type(error).__name__, str(error))
            os._exit(0)
        say("facts", [fact.text for fact in memory.inspect.newest_facts()], memory.check())


@pytest.mark.parametrize("ends", ["at its end", "by an error"])
def test_a_child_that_leaves_its_parents_transaction_ends_nothing(tmp_path: Path, ends: str) -> None:
    *_, raised, facts = run(fork_in_a_transaction, tmp_path, ends).said
    assert raised[:2] == ["raised", "InUseError"]
    assert "a forked child cannot use it" in raised[2]
    assert facts == ["facts", ["after the child", "of the parent"], []]


def fork_below_the_facade(directory: Path) -> None:
    """What holds the connection itself: a statement, a reader, the lock."""
    memory, database = open_words(directory), None
    database = database_of(memory)
    reader = MemoryReader.open(directory)
    for use in (
        lambda: database.run("INSERT INTO meta VALUES ('of', 'the child')"), lambda: database.rows("SELECT 1"),
        database.undo, database.close, reader.core, lambda: open_words(directory),
    ):  # fmt: skip
        in_child(use)
    memory.close()
    reader.close()
    say("closed")


def test_nothing_of_it_can_be_used_below_the_facade_either(tmp_path: Path) -> None:
    said = run(fork_below_the_facade, tmp_path).said
    assert [each[:2] for each in said] == [["raised", "InUseError"]] * 6 + [["closed"]]
    with open_words(tmp_path) as memory:
        assert not memory.check()


def test_a_child_does_not_keep_the_lock_when_its_parent_has_died(tmp_path: Path) -> None:
    wait, go = os.pipe()
    context: Any = multiprocessing.get_context("fork")
    parent = context.Process(target=_live_and_leave, args=(tmp_path, wait, go))
    try:
        parent.start()
        parent.join()
        assert parent.exitcode == -9
        with open_words(tmp_path) as memory:
            assert memory.inspect.newest_facts()[0].text == "of the parent"
    finally:
        os.close(go)
        os.close(wait)


def _live_and_leave(directory: Path, wait: int, go: int) -> None:
    memory = open_words(directory)
    memory.archive("of the parent")
    if not os.fork():
        os.close(go)
        os.read(wait, 1)  # until the test ends
        os._exit(0)
    die()


def test_a_worker_that_leaves_it_alone_ends_as_it_should(tmp_path: Path) -> None:
    with open_words(tmp_path) as memory:
        worker: Any = multiprocessing.get_context("fork").Process(target=sys.exit)
        worker.start()
        worker.join()
        memory.archive("after it")
        assert (worker.exitcode, memory.check()) == (0, [])


def test_who_looks_for_the_owner_holds_the_lock_for_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner is looked up with a shared lock. A child that is forked in between has the file open for its life."""
    from pager.upkeep import lock

    open_words(tmp_path).close()
    kept: list[int] = []
    flock = lock.fcntl.flock

    def keep(file: Any, operation: int) -> None:
        flock(file, operation)
        if operation & lock.fcntl.LOCK_SH:
            kept.append(os.dup(file.fileno()))  # what a fork does

    monkeypatch.setattr(lock.fcntl, "flock", keep)
    assert lock.current_owner(tmp_path / "lock") is None
    assert kept
    open_words(tmp_path).close()
    os.close(*kept)
