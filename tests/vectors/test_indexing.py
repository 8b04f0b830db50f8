"""The vector index behind the memory: nobody who waits builds it, and whatever it does every fact is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from agents.agent import BackgroundWork
from pager import Memory, RejectedError, StorageError
from pager.store import Store
from pager.vectors.chroma.client import Collection
from pager.vectors.chroma.index import ChromaIndex, LiveGeneration
from pager.vectors.facts import FactVectors
from pager.vectors.index import BuildCancelledError, IndexUnavailableError, Stop, VectorSource, never
from pager.vectors.indexing import BATCH, Indexing
from tests.support import Broken, HandClock, Words


@pytest.fixture(autouse=True)
def nothing_is_compared_that_the_index_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pager.vectors.facts.EXACT", 0)
    monkeypatch.setattr("pager.vectors.indexing.RETRY_S", 0)


class PlainCollection(Collection):
    """Holds copies in memory and looks at all of them."""

    def __init__(self, index: Watched, copies: dict[int, Any]) -> None:
        self._index = index
        self.copies = copies

    def query(self, vector: Any, limit: int) -> list[tuple[int, float]]:
        self._index.note("query")
        scored = [(each, float(copy @ vector)) for each, copy in self.copies.items()]
        return sorted(scored, key=lambda hit: -hit[1])[:limit]

    def close(self) -> None:
        pass


class Watched(ChromaIndex):
    """Notes what is asked of it, and forgets everything when it is closed.

    `away` is a server that is down. Without `go_on` opening it takes until it is stopped.
    """

    def __init__(self, directory: Path) -> None:
        path, clock = directory / "pager.db", HandClock()
        super().__init__(directory, VectorSource(lambda: Store(path, clock, read_only=True), Words()))
        self.asked: list[str] = []
        self.away = False
        self.through = 0
        self.at_work, self.go_on = Event(), Event()
        self.go_on.set()

    def open(self, stop: Stop = never) -> LiveGeneration:
        with self._lock:
            self.note("open")
            self.at_work.set()
            while not self.go_on.wait(0.001):
                if stop():
                    raise BuildCancelledError("no time")
            return self.build(stop)

    def build(self, stop: Stop = never) -> LiveGeneration:
        self.note("build")
        if stop():
            raise BuildCancelledError
        through = self.through = self._source.extent()[1]
        copies = {each: row for ids, rows in self._source.batches(through) for each, row in zip(ids, rows, strict=True)}
        return LiveGeneration(self._directory / "none", PlainCollection(self, copies), through, "nothing is kept")

    def clear(self) -> None:
        with self._lock:
            self.note("clear")
            self.through = 0

    def note(self, what: str) -> None:
        if self.away:
            raise IndexUnavailableError("the server does not answer")
        self.asked.append(what)


@pytest.fixture
def index(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


@pytest.fixture
def embedder() -> Broken:
    return Broken(False)


@pytest.fixture
def memory(index: Watched, tmp_path: Path, embedder: Broken) -> Iterator[Memory]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pager.vectors.chroma.index.ChromaIndex", lambda *_: index)
        memory = Memory.open(tmp_path, embedder=embedder, clock=HandClock())
    with memory:
        yield memory


def vectors_of(memory: Memory) -> FactVectors:
    assert memory._tiers.archive.vectors is not None
    return memory._tiers.archive.vectors


def archive(memory: Memory, first: int, last: int) -> None:
    with memory.transaction():
        for number in range(first, last + 1):
            memory.archive(f"topic{number}")


def archive_without_vector(memory: Memory, embedder: Broken, number: int) -> None:
    embedder.broken = True
    archive(memory, number, number)
    embedder.broken = False
    vectors_of(memory).embedding.embed_all(["it works again"])


def lost(memory: Memory, numbers: Sequence[int]) -> list[int]:
    """Facts that are not found by their meaning alone, and first."""
    meaning = vectors_of(memory)
    asked = meaning.embedding.embed_all([f"topic{number}" for number in numbers])
    near = {number: meaning.nearest(row, 2) for number, row in zip(numbers, asked, strict=True)}
    return [number for number, hits in near.items() if hits[0][0] != number or hits[1][1] > 0.99]


def in_thread(act: Callable[[], object]) -> Thread:
    thread = Thread(target=act)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_search_neither_opens_nor_builds_it(memory: Memory, index: Watched) -> None:
    assert not memory.index_is_behind
    archive(memory, 1, 3 * BATCH)
    assert lost(memory, range(1, 3 * BATCH + 1, 50)) == []
    assert memory.search_archive("topic7")[0].page_id == "f7"
    assert memory.similar_facts(memory.archive("topic7 topic7 topic7 again").id)[0].page_id == "f7"
    assert index.asked == []
    assert memory.index_is_behind
    memory.embed_pending()
    assert not memory.index_is_behind
    archive(memory, 3 * BATCH + 2, 6 * BATCH)
    index.asked.clear()
    assert lost(memory, range(1, 6 * BATCH, 50)) == []
    assert set(index.asked) == {"query"}
    memory.embed_pending()
    assert index.through > 5 * BATCH
    assert lost(memory, range(1, 6 * BATCH, 50)) == []


def test_others_get_the_lock_while_it_is_built(memory: Memory, index: Watched) -> None:
    archive(memory, 1, BATCH)
    index.go_on.clear()
    building = in_thread(memory.embed_pending)
    assert index.at_work.wait(30)
    archive(memory, BATCH + 1, BATCH + 9)
    assert lost(memory, [3, BATCH, BATCH + 9]) == []
    assert memory.append_user("hello") == f"s{memory._store.conversation.last_step()}"
    index.go_on.set()
    building.join()
    assert index.through >= BATCH
    assert lost(memory, [3, BATCH, BATCH + 9]) == []


@pytest.mark.slow
def test_a_vector_that_comes_while_it_is_built_is_not_missed(memory: Memory, index: Watched, embedder: Broken) -> None:
    """The embedder was away when the fact was stored: the builder has passed its place already."""
    archive(memory, 1, 4)
    archive_without_vector(memory, embedder, 5)
    archive(memory, 6, BATCH)
    meaning = vectors_of(memory)
    indexing = meaning.indexing
    assert isinstance(indexing, Indexing)
    task = indexing.next_task(never)
    assert task is not None
    outcome = task.run()
    batch = meaning.next_batch(10)
    assert [number for number, _ in batch.texts] == [5]
    meaning.store_batch(batch, meaning.embedding.embed_batch(batch))
    assert indexing.finish(task, outcome)
    assert lost(memory, [4, 5, 6]) == []
    memory.embed_pending()
    assert 5 in dict(indexing.query(meaning.embedding.embed_all(["topic5"])[0], 3))


def test_closing_an_agent_does_not_wait_for_it(memory: Memory, index: Watched) -> None:
    archive(memory, 1, BATCH)
    index.go_on.clear()
    background = BackgroundWork(memory)
    background.wake()
    assert index.at_work.wait(30)
    background.close()
    assert (background.is_busy, index.through, memory.ledger(events=["index"])) == (False, 0, [])
    index.go_on.set()
    memory.embed_pending()  # stopping was no failure: it begins at once
    assert index.through == BATCH


def test_a_purge_does_not_wait_for_it_and_leaves_nothing_in_it(memory: Memory, index: Watched) -> None:
    archive(memory, 1, BATCH + 1)
    index.go_on.clear()
    building = in_thread(memory.embed_pending)
    assert index.at_work.wait(30)
    memory.purge("f5")
    building.join()
    index.go_on.set()
    memory.embed_pending()
    meaning = vectors_of(memory)
    assert index.through == BATCH + 1
    assert 5 not in dict(meaning.nearest(meaning.embedding.embed_all(["topic5"])[0], 2 * BATCH))
    assert lost(memory, [4, 6]) == []


@pytest.mark.slow
def test_what_an_interrupt_kept_from_the_index_is_in_it_when_it_is_opened_anew(
    memory: Memory, index: Watched, embedder: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    archive_without_vector(memory, embedder, 1)
    archive(memory, 2, BATCH + 1)
    memory._backlog.update_index(never)
    assert index.through == BATCH + 1
    with monkeypatch.context() as patch:
        patch.setattr("pager.vectors.facts.FactVectors._add_late", interrupted)
        with pytest.raises(KeyboardInterrupt):
            memory.embed_pending()
    memory.search_archive("topic1")
    while memory.embed_pending():
        pass
    assert index.through == BATCH + 1
    assert lost(memory, [1, 2]) == []


@pytest.mark.slow
def test_of_more_than_are_compared_the_index_answers_for_the_oldest(
    memory: Memory, index: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pager.vectors.facts.EXACT", 400)
    compared: list[int] = []
    for first in range(1, 5 * BATCH, BATCH // 2):
        archive(memory, first, first + BATCH // 2 - 1)
        memory.embed_pending()
        assert lost(memory, [1, first, first + BATCH // 2 - 1]) == []
        held = vectors_of(memory)._tail._matrix
        compared.append(len(held.ids) if held else 0)
    assert compared[:3] == [128, 256, 384]  # all of them
    # Its oldest go when they are in a generation, which may lack a fact for every four that it holds.
    assert all(400 <= held < 400 + 2 * BATCH for held in compared[3:])
    assert index.asked.count("query") > 0


def test_an_outcome_from_before_a_purge_counts_for_nothing(memory: Memory, index: Watched) -> None:
    archive(memory, 1, BATCH + 1)
    indexing = memory._backlog._indexing
    assert indexing is not None
    task = indexing.next_task(never)
    assert task is not None
    outcome = task.run()
    memory.purge("f5")
    indexing.finish(task, outcome)
    assert (indexing.through(), index.through) == (0, 0)
    assert memory.index_is_behind


def test_a_purge_is_not_over_before_the_index_is_gone(memory: Memory, index: Watched) -> None:
    archive(memory, 1, BATCH)
    memory.embed_pending()
    index.away = True
    with pytest.raises(StorageError, match=r"has begun.*does not answer.*finishes it"):
        memory.purge("f5")
    index.away = False
    assert memory.purge("f5") == 0
    assert index.through == 0
    assert memory._store.settings.get("purging") is None


def test_an_index_that_is_down_is_told_once_and_taken_up_when_it_is_back(memory: Memory, index: Watched) -> None:
    archive(memory, 1, BATCH)
    for away in (True, True, False, True, True, False):
        index.away = away
        memory.embed_pending()
        assert lost(memory, [4]) == []
    reasons = [row.reason for row in memory.ledger(events=["index"])]
    down, up = "the server does not answer", "rebuilt: nothing is kept"
    assert reasons == [down, up, down, up]
    index.away = True
    with memory.transaction():
        archive(memory, BATCH + 1, BATCH + 1)
        assert lost(memory, [4, BATCH + 1]) == []
    assert lost(memory, [4, BATCH + 1]) == []


def test_compacting_puts_every_vector_in_and_fewer_than_a_batch_need_no_index(memory: Memory, index: Watched) -> None:
    archive(memory, 1, BATCH - 1)
    memory.embed_pending()
    memory.compact()
    assert (index.asked, lost(memory, [1, BATCH - 1])) == ([], [])
    archive(memory, BATCH, BATCH + 5)
    memory.embed_pending()
    archive(memory, BATCH + 6, BATCH + 9)
    memory.compact()
    assert index.through == BATCH + 9
    with memory.transaction(), pytest.raises(RejectedError, match="after the transaction"):
        memory.compact()
