"""Whatever happens to the vector index: every committed fact is found by its meaning."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pager import Memory
from pager.vectors.indexing import BATCH
from tests.support import HandClock, Words, undone, vector

FACTS = BATCH + 30


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


def nearest(memory: Memory, content: str, limit: int) -> list[tuple[int, float]]:
    vectors = memory._tiers.archive.vectors
    assert vectors is not None
    return vectors.nearest(vector(vectors, content), limit)


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
        with undone(memory):
            memory.similar_facts(memory.archive("never was").id)  # this could take it into the index
        archive(memory, BATCH, BATCH)
        assert lost(memory, BATCH) == []
        assert twice(memory) == []
    with open_memory(tmp_path / "agent") as memory:
        assert lost(memory, BATCH) == []
