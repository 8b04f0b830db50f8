"""A search of an archive with an index asks Chroma, and finds what plain comparison would find."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, NamedTuple

import chromadb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.agent import BackgroundWork
from pager import Memory, RejectedError
from pager.clock import to_micros
from pager.store.rows import FactFilter
from pager.vectors.chroma.places import Directory
from pager.vectors.embedding import PAUSE
from pager.vectors.index import Generation, Stop
from pager.vectors.quantized import Int8Matrix, quantize
from tests.support import Broken, HandClock, Words, undone, vector
from tests.support.indexed import (
    FACTS,
    Children,
    archive,
    build,
    count_queries,
    files_in,
    indexing_of,
    is_asked,
    lost,
    names_in,
    nearest,
    open_memory,
    open_reader,
    store_vectors,
    text,
    told,
    unit_vectors,
    vectors_of,
)

ROUNDED = 0.01  # a byte a number


def ids(hits: Any) -> list[str]:
    return [hit.page_id for hit in hits]


def in_thread(act: Callable[[], object]) -> Thread:
    thread = Thread(target=act)
    thread.start()
    return thread


# what is found


def test_every_search_asks_chroma_but_for_the_past_and_rare_filters(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_queries(monkeypatch)
    with open_memory(directory) as memory:
        before = memory.fact("f1").valid_from
        memory.archive("a rare one", tags=["rare"])
        for number in range(1, 51):
            assert ids(memory.search_archive(text(number), limit=1)) == [f"f{number}"]
        assert len(asked) == 50
        assert ids(memory.similar_facts(memory.archive(f"{text(7)} again").id, limit=1)) == ["f7"]
        assert len(asked) == 51
        assert ids(memory.search_archive("rare", tags=["rare"])) == [f"f{FACTS + 1}"]
        assert ids(memory.search_archive(text(1), as_of=before)) == ["f1"]
        assert len(asked) == 51
        assert lost(memory, range(1, FACTS + 1)) == []


def test_a_search_never_waits_for_a_build_and_finds_what_comes_meanwhile(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(directory) as memory:
        children = Children(monkeypatch, is_frozen=True)
        archive(memory, FACTS + 1, 2 * FACTS)
        building = in_thread(memory.embed_pending)
        assert children.at_work.wait(30)
        memory.archive("my seat", key="seat")
        for number in range(2 * FACTS + 2, 2 * FACTS + 12):
            assert memory.archive(text(number)).id == f"f{number}"
            assert lost(memory, [number]) == []
        memory.forget("f2", "wrong")
        memory.archive("my other seat", key="seat")
        assert lost(memory, range(1, FACTS, 9)) == []
        assert building.is_alive()
        assert children.all[0].poll() is None
        children.go_on()
        building.join()
        assert names_in(directory / "chroma") == {"state.json", "g2"}
        everything = [*range(1, 2), *range(3, 2 * FACTS + 1), *range(2 * FACTS + 2, 2 * FACTS + 12)]
        assert lost(memory, everything) == []
        assert {2, 2 * FACTS + 1}.isdisjoint(dict(nearest(memory, text(2), 3 * FACTS)))


def test_a_fact_is_found_within_its_own_transaction_and_never_if_that_is_undone(directory: Path) -> None:
    with open_memory(directory) as memory:
        with undone(memory):
            archive(memory, FACTS + 1, FACTS + 3)
            assert lost(memory, range(1, FACTS + 4)) == []
        archive(memory, FACTS + 4, FACTS + 4)  # which gets the number of one that never was
        assert [number for number, _ in nearest(memory, text(FACTS + 4), 1)] == [FACTS + 1]
        assert lost(memory) == []


def test_a_vector_that_comes_late_is_found_though_its_fact_is_older_than_the_generation(tmp_path: Path) -> None:
    embedder, clock = Broken(False), HandClock()
    with open_memory(tmp_path, embedder=embedder, clock=clock) as memory:
        archive(memory, 1, 4)
        embedder.broken = True
        archive(memory, 5, 5)
        embedder.broken = False
        clock.set(clock.now() + 2 * PAUSE)
        archive(memory, 6, FACTS)
        memory._backlog.update_index(lambda: False)  # which leaves the fact without its vector
        assert is_asked(memory)
        assert 5 not in dict(nearest(memory, text(5), FACTS))
        assert memory.embed_pending() == 1
        assert lost(memory) == []


class PlainCollection(NamedTuple):
    facts: list[int]
    vectors: Any

    def query(self, asked: Any, limit: int) -> list[tuple[int, float]]:
        assert limit > 0, "Chroma refuses it"
        cosines = (self.vectors @ asked).tolist()
        return sorted(zip(self.facts, cosines, strict=True), key=lambda hit: -hit[1])[:limit]

    def close(self) -> None:
        pass


class PlainIndex(Directory):
    """Generations that look at all they hold: whatever is missed, Chroma is not to blame."""

    def build(self, plan: Generation, stop: Stop) -> Generation:
        _, rows, vectors = self._store.archive.to_index(0, plan.through, -1, plan.moment)
        self.held = PlainCollection([row["fact"] for row in rows], vectors)
        return plan._replace(facts=len(rows), recall=1.0)

    def open(self, generation: Generation) -> Any:
        return self.held


ACTS = st.sampled_from(
    ["archive", "archive", "key", "later", "without", "embed", "forget", "build", "undo", "purge", "past"]
)


@settings(max_examples=50)
@given(acts=st.lists(st.tuples(ACTS, st.integers(0, 50)), min_size=8, max_size=30), limit=st.integers(1, 4))
def test_whatever_happens_a_search_finds_the_nearest_that_are_true(acts: list[tuple[str, int]], limit: int) -> None:
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr("pager.vectors.indexing.SMALLEST", 3)
        patch.setattr("pager.tiers.archive.CANDIDATES", 2)
        patch.setattr("pager.tiers.Directory", PlainIndex)
        embedder, clock = Broken(False), HandClock()
        with open_memory(Path(place), embedder=embedder, clock=clock) as memory:
            for number, (act, chosen) in enumerate(acts):
                live(memory, embedder, clock, act, chosen, f"word{chosen % 9} word{number}")
                check(memory, limit, clock.now())
            if memory.inspect.newest_facts(1):
                check(memory, limit, memory.fact(f"f{1 + acts[0][1] % len(memory.inspect.newest_facts(99))}").at)


def live(memory: Memory, embedder: Broken, clock: HandClock, act: str, chosen: int, said: str) -> None:
    alive = [fact.id for fact in memory.inspect.newest_facts(99) if not (fact.forgotten or fact.purged)]
    match act:
        case "archive":
            memory.archive(said)
        case "key":
            memory.archive(said, key="seat" if chosen % 2 else "bed")
        case "later":
            memory.archive(said, valid_from=clock.now() + timedelta(seconds=chosen))
        case "past":
            memory.archive(said, key="seat", valid_from=clock.now() - timedelta(seconds=chosen))
        case "without":
            embedder.broken = True
            memory.archive(said)
            embedder.broken = False
            vectors_of(memory).embedding.embed_all(["it works again"])
        case "embed":
            build(memory)
        case "forget" if alive:
            memory.forget(alive[chosen % len(alive)], "wrong")
        case "purge" if alive:
            memory.purge(alive[chosen % len(alive)])
        case "build":
            memory.compact()
        case "undo":
            with undone(memory):
                memory.archive(said, key="seat")
                check(memory, 3, clock.now())
        case _:
            pass


def check(memory: Memory, limit: int, at: datetime) -> None:
    facts, tier, table = vectors_of(memory), memory._tiers.archive, memory._store.archive
    wanted, asked = FactFilter(to_micros(at)), vector(facts, "word3 word5")
    _, numbers, rows = table.vectors_after(0, -1)
    fitting = table.true_at(numbers, wanted)
    cosines = {number: float(row @ asked) for number, row in zip(numbers, rows, strict=True) if number in fitting}
    found = dict(tier._by_meaning(facts, asked, wanted, limit))
    assert found.keys() <= cosines.keys(), "it is not true"
    assert all(abs(cosines[number] - cosine) < ROUNDED for number, cosine in found.items())
    assert len(found) >= min(limit, len(cosines))
    least = min(sorted(found.values(), reverse=True)[:limit], default=0.0)
    assert all(number in found or cosine <= least + ROUNDED for number, cosine in cosines.items())


def test_a_vector_of_noughts_is_far_from_everything() -> None:
    held = Int8Matrix(8)
    held.extend([1], *quantize(np.zeros((1, 8), dtype=np.float32)))
    assert held.cosines(np.eye(8, dtype=np.float32)[0]).tolist() == [0.0]


# what a generation is


def test_chromadb_alone_finds_the_facts_in_a_generation(tmp_path: Path) -> None:
    with open_memory(tmp_path / "agent") as memory:
        archive(memory, 1, FACTS)
        memory.archive("prefers the aisle", key="seat")
        seat = memory.archive("prefers the window", key="seat", tags=["travel", "Home"])
        later = memory.archive("moves to Porto", valid_from="2099-01-01", tags=["travel"])
        memory.forget("f3", "wrong")
        build(memory)
    client: Any = chromadb.PersistentClient(shutil.copytree(tmp_path / "agent/chroma/g1", tmp_path / "copy"))
    found = client.get_collection("archive", embedding_function=None)
    everything = found.get(include=["embeddings", "documents", "metadatas"])
    assert set(everything["ids"]) == {*(f"f{number}" for number in range(1, FACTS + 4))} - {"f3", f"f{FACTS + 1}"}
    held = dict(
        zip(everything["ids"], zip(everything["embeddings"], everything["documents"], strict=True), strict=True)
    )
    assert np.allclose(held[seat.id][0], Words().embed([seat.text])[0])
    assert held[seat.id][1] == seat.text
    assert found.get(where_document={"$contains": "window"})["ids"] == [seat.id]
    [metadata] = found.get(where={"key": "seat"})["metadatas"]
    assert metadata == {
        "key": "seat", "tags": ["travel", "Home"], "source": ["program"],
        "valid_from": seat.valid_from.timestamp(), "at": seat.at.timestamp(),
    }  # fmt: skip
    assert set(found.get(where={"tags": {"$contains": "travel"}})["ids"]) == {seat.id, later.id}
    assert len(found.get(where={"source": {"$contains": "program"}})["ids"]) == FACTS + 1
    assert found.get(where={"valid_from": {"$gt": later.at.timestamp()}})["ids"] == [later.id]
    client.close()


def test_readers_change_no_byte_of_it_and_follow_the_next_one(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digests(generation: str) -> dict[str, str]:
        found = files_in(directory / "chroma" / generation)
        return {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}

    before, asked = digests("g1"), count_queries(monkeypatch)
    with open_reader(directory) as reader:
        assert lost(reader, range(1, FACTS + 1)) == []
        assert len(asked) == FACTS
        with open_memory(directory) as memory:
            assert lost(memory) == []
            assert digests("g1") == before
            archive(memory, FACTS + 1, 2 * FACTS)
            assert lost(reader, range(1, 2 * FACTS + 1, 7)) == []
            build(memory)
            before = digests("g2")
            assert lost(reader, range(1, 2 * FACTS + 1, 7)) == []
            opened = indexing_of(reader).open()
            assert opened is not None
            assert opened[0].name == "g2"
            memory.purge("f5")
            assert lost(reader, [4, 6, 2 * FACTS]) == []
            assert not is_asked(reader)
    with open_reader(directory, embedder=None) as reader:  # without an embedder it asks for nothing
        assert ids(reader.search_archive("number7", limit=1)) == ["f7"]
    assert before


def test_a_generation_is_due_when_a_quarter_and_256_facts_are_behind_or_have_ended(directory: Path) -> None:
    with open_memory(directory) as memory:
        archive(memory, FACTS + 1, FACTS + 200)
        for number in range(1, 56):
            memory.forget(f"f{number}", "wrong")
        build(memory)
        assert names_in(directory / "chroma") == {"state.json", "g1"}
        assert not memory.index_is_behind
        memory.forget("f56", "wrong")
        assert memory.index_is_behind
        build(memory)
        assert (names_in(directory / "chroma"), memory.index_is_behind) == ({"state.json", "g2"}, False)
        assert json.loads((directory / "chroma/state.json").read_text())["facts"] == FACTS + 200 - 56
        memory.archive("one more")
        memory.compact()  # which leaves none behind
        assert names_in(directory / "chroma") == {"state.json", "g3"}
        with memory.transaction(), pytest.raises(RejectedError, match="after the transaction"):
            memory.compact()


def test_fewer_than_256_facts_need_no_index_and_one_of_ended_facts_holds_none(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        archive(memory, 1, 255)
        memory.compact()
        assert (told(memory), names_in(tmp_path / "chroma"), lost(memory, [1, 255])) == ([], set(), [])
        archive(memory, 256, FACTS)
        build(memory)
        for number in range(1, FACTS + 1):
            memory.forget(f"f{number}", "wrong")
        build(memory)
        assert nearest(memory, text(5)) == []
        archive(memory, FACTS + 1, FACTS + 9)
        assert lost(memory, range(FACTS + 1, FACTS + 10)) == []
        assert [line.partition(":")[0] for line in told(memory)] == ["built", "built"]
        assert memory.check() == []


# who ends a build


@pytest.mark.parametrize("ending", ["purge", "close", "stop", "background"])
def test_a_build_does_not_hold_up_whoever_ends_it_and_leaves_nothing(
    directory: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = Children(monkeypatch, is_frozen=True)
    with open_memory(directory) as memory:
        archive(memory, FACTS + 1, 2 * FACTS)
        background, is_stopped = BackgroundWork(memory), False
        if ending == "background":
            background.wake()
            thread = background._thread
        else:
            thread = in_thread(lambda: memory.embed_pending(stop=lambda: is_stopped))
        assert thread is not None
        assert children.at_work.wait(30)
        if ending == "purge":
            memory.purge("f5")
            assert names_in(directory / "chroma") == set()
        elif ending == "stop":
            is_stopped = True
        else:
            (memory if ending == "close" else background).close()
        thread.join()
        assert children.all[0].returncode == -9
        assert names_in(directory / "chroma") == (set() if ending == "purge" else {"state.json", "g1"})
        if ending != "close":
            assert lost(memory, [1, 6, 2 * FACTS]) == []
        if ending in ("purge", "background"):
            children.go_on()
            build(memory)  # being stopped was no failure: it begins at once
            assert is_asked(memory)
            assert lost(memory, [1, 6, 2 * FACTS]) == []


# hostile sets


def recall(memory: Memory, questions: Any) -> float:
    """Return how many of the ten nearest are found. One that is just as near is as good."""
    table = memory._store.archive
    _, numbers, rows = table.vectors_after(0, -1)
    true = table.true_at(numbers, FactFilter(to_micros(memory._tiers.archive.present())))
    rows = rows[[number in true for number in numbers]]
    found = wanted = 0
    for asked in questions:
        best = np.sort(rows @ asked)[::-1][:10]
        found += sum(cosine >= best[-1] - 1e-5 for _, cosine in nearest(memory, asked))
        wanted += len(best)
    return found / wanted


@pytest.mark.parametrize("kind", ["versions", "equal", pytest.param("copies", marks=pytest.mark.long)])
def test_no_set_is_searched_worse_than_by_comparing_all(tmp_path: Path, kind: str) -> None:
    apart, near = unit_vectors(300, 64, seed=1), unit_vectors(3, 64, seed=2)
    random = np.random.default_rng(3)
    with open_memory(tmp_path, embedder=Words(dimension=64)) as memory:
        store_vectors(memory, apart, [f"apart {number}" for number in range(300)])
        if kind == "equal":
            store_vectors(memory, np.repeat(near[:1], 1_000, axis=0), [f"equal {number}" for number in range(1_000)])
        else:
            count = 6_000 if kind == "versions" else 20_000
            copies = near[np.arange(count) % 3] + 0.003 * random.standard_normal((count, 64)).astype(np.float32)
            copies /= np.linalg.norm(copies, axis=1, keepdims=True)
            key = "status" if kind == "versions" else None
            store_vectors(memory, copies, [f"{kind} {number}" for number in range(count)], key)
        memory.compact()
        questions = [*apart, *near, *vectors_of(memory)._store.archive.vectors(range(301, 401))[1]]
        assert recall(memory, questions) >= 0.99  # an index is proven at .995, by other questions than these
        assert len(told(memory)) == 1
