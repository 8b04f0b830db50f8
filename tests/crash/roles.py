"""What other processes do in tests/crash/test_processes.py: each is a function for `Nursery.begin` or `Nursery.run`."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

from pager import InUseError, MemoryReader, StorageError, send_command
from pager.store import database as database_module
from pager.store.schema import MIGRATIONS
from pager.tiers.archive import CANDIDATES
from pager.types import number_of
from tests.crash.children import die, heard, say
from tests.crash.commit_points import CommitPoints
from tests.crash.load import database, open_memory
from tests.support.clock import HandClock
from tests.support.embedders import Words, vector

NOBODY = 65_534


def own(directory: str) -> None:
    """Open it, say so, and close it when told."""
    with open_memory(directory):
        say("open", os.getpid())
        heard()
    say("closed")


def second(directory: str) -> None:
    try:
        open_memory(directory)
    except InUseError as error:
        say("refused", str(error))


def write_pairs(directory: str, count: int) -> None:
    """Facts, two at once, and a message; each told when its call has returned and before the next begins."""
    with open_memory(directory, embedder=None) as memory:
        say("open")
        for number in range(count):
            with memory.transaction():
                memory.archive(f"left {number}")
                memory.archive(f"right {number}")
            say("pair", number)
        say("page", memory.append_user("are you there?"))
        heard()


def read_on(directory: str, count: int) -> None:
    """Read until the last pair is there; a pair is never seen by halves."""
    reader = MemoryReader.open(directory)
    say("reading")
    seen = 0
    while seen < 2 * count:
        facts = reader.inspect.newest_facts(2 * count)
        assert len(facts) % 2 == 0, "half of a transaction was seen"
        assert len(facts) >= seen, "what was there has gone"
        seen = len(facts)
    assert len(reader.search_archive("right", limit=2 * count)) == count
    reader.close()


def leave_many(directory: str, kind: str, name: str, count: int) -> None:
    for number in range(count):
        arguments: dict[str, Any] = {"text": f"{name} {number}"}
        say("left", send_command(Path(directory), kind, arguments, HandClock()))


def take_and_die(directory: str, deadly: int, when: str) -> None:
    """The owner dies before or after a commit of taking what is in its inbox: number 1, 2, ..."""
    memory = open_memory(directory, embedder=None)
    points = CommitPoints(deadly, after=when == "after")
    points.watch(database(memory))
    memory.process_inbox()
    say("taken", points.count)
    memory.close()


def die_at_deletion(directory: str) -> None:
    """The effect is committed, the file is still there."""
    memory = open_memory(directory, embedder=None)
    Path.unlink = lambda *_, **__: die()  # type: ignore[method-assign,assignment]
    memory.process_inbox()


def visit(directory: str) -> None:
    """As somebody who is not root: try to own it, then read it."""
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        open_memory(directory).close()
        say("open", "opened", "")
    except StorageError as error:
        say("open", type(error).__name__, str(error))
    try:
        reader = MemoryReader.open(directory, embedder=Words())
        fact, message = reader.inspect.newest_facts(1)[0].text, reader.search_recall("", limit=1)[0].text
        found = reader.search_archive(fact)[0].text
        assert found == fact
        say("read", fact, message)
    except StorageError as error:
        say("read", type(error).__name__, str(error))


def migrate_and_die(directory: str, script: str, deadly: int, when: str) -> None:
    """Opens with one migration more, and dies before or after that has committed."""
    database_module.MIGRATIONS = (*MIGRATIONS, script)
    database_module.VERSION = len(database_module.MIGRATIONS)
    points = CommitPoints(deadly, after=when == "after")
    open_memory(directory, embedder=None).close()
    say("open", points.count)


def archive_on(directory: str, first: int) -> None:
    """Facts from that number on, for ever, with searches and compactions between them: the index is always at work."""
    with open_memory(directory, life=first) as memory:
        for number in itertools.count(first):
            with memory.transaction():
                fact = memory.archive(fact_text(number))
                memory.record("user", f"as {fact.id}")
            say("fact", number, fact.id)
            if number % 9 == 0:
                memory.search_archive("fact")
                memory.embed_pending()
            if number % 300 == 0:
                memory.compact()


def look_for_all(directory: str, newest: int) -> None:
    """How many facts there are, and which of the newest are not found by their meaning. All are whole, in order."""
    with open_memory(directory, life=1_000_000) as memory:
        meaning = memory._tiers.archive.meaning
        assert meaning is not None
        memory.embed_pending()
        facts = memory.inspect.newest_facts(100_000)
        # Among as many as a search looks at: which of two is the very nearest, an approximate index may get wrong.
        lost = [
            fact.id
            for fact in facts[:newest]
            if number_of(fact.id) not in dict(meaning.nearest(vector(meaning, fact.text), CANDIDATES))
        ]
        say("facts", len(facts), lost)
        assert [fact.text for fact in reversed(facts)] == [fact_text(number) for number in range(1, len(facts) + 1)]
        assert memory.check() == []


def die_in_a_transaction(directory: str, facts: int) -> None:
    """With the last of these facts stored and not committed."""
    with open_memory(directory) as memory:
        with memory.transaction():
            for number in range(1, facts):
                memory.archive(fact_text(number))
        with memory.transaction():
            memory.archive("never was")
            die()


def fact_text(number: int) -> str:
    return f"word{number} stands in fact number{number}"
