"""Whatever happens to the vector index, and whenever: every committed fact is found by its meaning (section 3)."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pager import Memory
from pager.vectors.indexing import BATCH
from tests.crash.children import Nursery
from tests.crash.roles import fact_text as text
from tests.support.clock import HandClock
from tests.support.embedders import Words, vector

pytestmark = pytest.mark.slow

FACTS = BATCH + 30


@pytest.fixture(autouse=True)
def nothing_is_compared_that_the_index_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pager.vectors.facts.EXACT", 0)


KILLS, LONGEST_LIFE_S = 15, 0.4


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


def lost(memory: Memory, facts: int) -> list[str]:
    """Facts that are not the nearest in meaning to their own text, when all are embedded."""
    while memory.embed_pending():
        pass
    nearest = memory._tiers.archive.meaning
    assert nearest is not None
    return [f"f{each}" for each in range(1, facts + 1) if nearest.nearest(vector(nearest, text(each)), 1)[0][0] != each]


def twice(memory: Memory) -> list[int]:
    nearest = memory._tiers.archive.meaning
    assert nearest is not None
    found = [number for number, _ in nearest.nearest(vector(nearest, "fact"), 10 * FACTS)]
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


def gone(directory: Path) -> None:
    shutil.rmtree(directory / "chroma")


def flipped(directory: Path) -> None:
    """Every file but the state has other bytes in its middle."""
    for path in (directory / "chroma").rglob("*"):
        if path.is_file() and path.name != "state.json":
            content = bytearray(path.read_bytes())
            middle = len(content) // 2
            content[middle : middle + 64] = bytes(255 - each for each in content[middle : middle + 64])
            path.write_bytes(content)


def cut(directory: Path) -> None:
    for path in (directory / "chroma").rglob("*"):
        if path.is_file() and path.name != "state.json":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def without_state(directory: Path) -> None:
    (directory / "chroma" / "state.json").unlink()


def a_file_instead(directory: Path) -> None:
    shutil.rmtree(directory / "chroma")
    (directory / "chroma").write_text("not a directory")


@pytest.mark.parametrize("harm", [gone, flipped, cut, without_state, a_file_instead])
def test_a_harmed_index_costs_no_fact(directory: Path, harm: Callable[[Path], None]) -> None:
    harm(directory)
    with open_memory(directory) as memory:
        assert lost(memory, FACTS) == []
        archive(memory, FACTS + 1, FACTS + 5)
        assert lost(memory, FACTS + 5) == []
        assert twice(memory) == []
        assert memory.ledger(events=["index"]) != []
    with open_memory(directory) as memory:
        assert lost(memory, FACTS + 5) == []


@pytest.mark.parametrize("first", ["a fact in a transaction", "closing again"])
def test_another_embedder_finds_every_fact(directory: Path, first: str) -> None:
    """Whatever is done first with it: the old vectors are worthless, and are made again."""
    other = Words("words-2", dimension=24)
    facts = FACTS
    with open_memory(directory, embedder=other) as memory:
        if first.startswith("a fact"):
            facts += 1
            archive(memory, facts, facts)
        if first != "closing again":
            assert lost(memory, facts) == []
    with open_memory(directory, embedder=other) as memory:
        assert lost(memory, facts) == []
        assert twice(memory) == []
        assert memory.check() == []


def test_what_was_rolled_back_leaves_nothing_in_the_index(tmp_path: Path) -> None:
    """The id of a fact that never was belongs to the next one."""
    with open_memory(tmp_path / "agent") as memory:
        archive(memory, 1, BATCH - 1)
        undone(memory)
        archive(memory, BATCH, BATCH)
        assert lost(memory, BATCH) == []
        assert twice(memory) == []
    with open_memory(tmp_path / "agent") as memory:
        assert lost(memory, BATCH) == []


def test_killed_in_the_middle_of_a_transaction_it_leaves_nothing_there_either(tmp_path: Path) -> None:
    with Nursery() as nursery:
        assert nursery.run("tests.crash.roles:die_in_a_transaction", tmp_path / "agent", BATCH).signal == signal.SIGKILL
    with open_memory(tmp_path / "agent") as memory:
        memory.archive(text(BATCH))
        assert lost(memory, BATCH) == []
        assert twice(memory) == []


def test_killed_at_any_moment_while_the_index_is_at_work(tmp_path: Path) -> None:
    random, facts, heard = Random(11), 0, 0
    with Nursery("chromadb", "chromadb.api.rust") as nursery:
        with open_memory(tmp_path / "agent") as memory:
            archive(memory, 1, FACTS)
        facts = FACTS
        for kill in range(KILLS):
            delay = random.uniform(0.02, LONGEST_LIFE_S)
            life = nursery.run("tests.crash.roles:archive_on", tmp_path / "agent", facts + 1, kill_after_s=delay)
            assert life.signal == signal.SIGKILL
            heard += len(life.said)
            told = max([facts, *(line[1] for line in life.said)])
            newest = told if kill == KILLS - 1 else 2 * BATCH
            (report,) = nursery.run("tests.crash.roles:look_for_all", tmp_path / "agent", newest).said
            assert report == ["facts", report[1], []]
            assert report[1] in (told, told + 1), "all that was told, and at most the one that was not told yet"
            facts = report[1]
    assert heard > 10 * KILLS, "they died before they did anything"
