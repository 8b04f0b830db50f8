"""Whatever happens to the vector index, and whenever: every committed fact is found by its meaning (section 3)."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pager import Memory
from pager.tiers.archive import CANDIDATES
from pager.types import number_of
from pager.vectors.indexing import BATCH
from tests.crash.children import Life, run, say
from tests.support.clock import START, HandClock
from tests.support.embedders import Words, vector

FACTS = BATCH + 30
KILLS, LONGEST_LIFE_S = 15, 0.4


@pytest.fixture(autouse=True)
def nothing_is_compared_that_the_index_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pager.vectors.facts.EXACT", 0)


def text(number: int) -> str:
    return f"word{number} stands in fact number{number}"


def open_memory(directory: Path, **changes: Any) -> Memory:
    return Memory.open(directory, **{"embedder": Words(), "clock": HandClock(), **changes})


def archive(memory: Memory, first: int, last: int) -> None:
    with memory.transaction():
        for number in range(first, last + 1):
            memory.archive(text(number))


def undone(memory: Memory) -> None:
    with suppress(ZeroDivisionError), memory.transaction():
        memory.similar_facts(memory.archive("never was").id)  # this could take it into the index
        raise ZeroDivisionError


def nearest(memory: Memory, content: str, limit: int) -> list[tuple[int, float]]:
    meaning = memory._tiers.archive.meaning
    assert meaning is not None
    return meaning.nearest(vector(meaning, content), limit)


def lost(memory: Memory, facts: int) -> list[int]:
    """Facts that are not the nearest in meaning to their own text, when all are embedded."""
    while memory.embed_pending():
        pass
    return [each for each in range(1, facts + 1) if nearest(memory, text(each), 1)[0][0] != each]


def twice(memory: Memory) -> list[int]:
    found = [number for number, _ in nearest(memory, "fact", 10 * FACTS)]
    return [number for number in set(found) if found.count(number) > 1]


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent with an index on disk, closed. Not to be touched: use a copy."""
    directory = tmp_path_factory.mktemp("well") / "agent"
    with open_memory(directory) as memory:
        archive(memory, 1, FACTS)
        assert lost(memory, FACTS) == []
        assert (directory / "chroma" / "state.json").exists()
    return directory


@pytest.fixture
def directory(well: Path, tmp_path: Path) -> Path:
    return shutil.copytree(well, tmp_path / "agent")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    """Some bits, and the file's time stays: as a disk does it."""
    times, content = path.stat(), bytearray(path.read_bytes())
    for place in Random(1).sample(range(len(content)), min(40, len(content))):
        content[place] ^= 0x55
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def grow(path: Path) -> None:
    os.truncate(path, 10**12)  # sparse: costs nothing


@pytest.mark.parametrize("tear", [cut, flip, grow, Path.unlink])
@pytest.mark.parametrize("name", ["data_level0.bin", "index_metadata.pickle", "built.sqlite3", "chroma.sqlite3"])
def test_a_torn_file_of_the_index_costs_no_fact(directory: Path, name: str, tear: Callable[[Path], None]) -> None:
    [path] = (directory / "chroma").rglob(name)
    tear(path)
    with open_memory(directory) as memory:
        assert lost(memory, FACTS) == []
        archive(memory, FACTS + 1, FACTS + 5)
        assert lost(memory, FACTS + 5) == []
        assert twice(memory) == []
        rebuilt = [move for move in memory.ledger(events=["index"]) if name in move.reason]
        assert bool(rebuilt) == (name != "chroma.sqlite3")  # queries change that one, so it is copied anew
    with open_memory(directory) as memory:
        assert lost(memory, FACTS + 5) == []


def test_another_embedder_finds_every_fact(directory: Path) -> None:
    other = Words("words-2", dimension=24)
    for facts in (FACTS + 1, FACTS + 2):
        with open_memory(directory, embedder=other) as memory:
            archive(memory, facts, facts)
            assert lost(memory, facts) == []
            assert twice(memory) == []
            assert memory.check() == []


def test_a_transaction_that_is_rolled_back_leaves_nothing_in_the_index(tmp_path: Path) -> None:
    """The id of a fact that never was belongs to the next one."""
    with open_memory(tmp_path / "agent") as memory:
        archive(memory, 1, BATCH - 1)
        undone(memory)
        archive(memory, BATCH, BATCH)
        assert lost(memory, BATCH) == []
        assert twice(memory) == []
    with open_memory(tmp_path / "agent") as memory:
        assert lost(memory, BATCH) == []


def archive_on(directory: Path, first: int) -> None:
    """Facts from that number on, for ever, with searches and compactions between them: the index is always at work."""
    with open_memory(directory, clock=HandClock(START + timedelta(days=first))) as memory:
        for number in count(first):
            with memory.transaction():
                fact = memory.archive(text(number))
                memory.record("user", f"as {fact.id}")
            say(number)
            if number % 9 == 0:
                memory.search_archive("fact")
                memory.embed_pending()
            if number % 300 == 0:
                memory.compact()


def look_for_all(directory: Path, newest: int) -> None:
    """Count the facts, and list those of the newest that are not found by their meaning. All are whole, in order."""
    with open_memory(directory, clock=HandClock(START + timedelta(days=1_000_000))) as memory:
        memory.embed_pending()
        facts = memory.inspect.newest_facts(100_000)
        # Among as many as a search looks at: which of two is the very nearest, an approximate index may get wrong.
        missing = [
            fact.id for fact in facts[:newest] if number_of(fact.id) not in dict(nearest(memory, fact.text, CANDIDATES))
        ]
        say(len(facts), missing)
        assert [fact.text for fact in reversed(facts)] == [text(number) for number in range(1, len(facts) + 1)]
        assert memory.check() == []


def test_killed_at_any_moment_while_the_index_is_at_work(tmp_path: Path) -> None:
    random, facts, heard = Random(11), FACTS, 0
    with open_memory(tmp_path / "agent") as memory:
        archive(memory, 1, FACTS)
    for kill in range(KILLS):
        life = Life(archive_on, tmp_path / "agent", facts + 1)
        time.sleep(random.uniform(0.02, LONGEST_LIFE_S))
        life.kill()
        assert life.signal == signal.SIGKILL
        heard += len(life.said)
        acknowledged = max([facts, *(number for (number,) in life.said)])
        newest = acknowledged if kill == KILLS - 1 else 2 * BATCH
        ((facts, missing),) = run(look_for_all, tmp_path / "agent", newest).said
        assert missing == []
        assert facts in (acknowledged, acknowledged + 1), "at most the one that was not told yet"
    assert heard > 10 * KILLS, "they died before they did anything"
