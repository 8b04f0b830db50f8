"""What every VectorIndex must do, asked of Chroma's and of a plain one that looks at every vector.

To test another implementation: add it to `KINDS`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pager.vectors.chroma.index import ChromaIndex
from pager.vectors.index import IndexUnavailableError, OpenReport, Stop, Stopped, VectorIndex, VectorSource, never
from tests.contract.vector_sources import MemorySource, unit_vectors


class PlainIndex:
    """The contract and nothing else: forgets everything when it is closed, and is exact."""

    def __init__(self, source: VectorSource) -> None:
        self._source = source
        self._held: dict[int, NDArray[np.float32]] = {}
        self._through = 0
        self._pending = 0
        self._report: OpenReport | None = None
        self._lock = threading.RLock()

    def through(self) -> int:
        return self._through

    def open(self, stop: Stop = never) -> OpenReport:
        with self._lock:
            if self._report is None:
                if stop():
                    raise Stopped
                self._report = OpenReport("rebuilt", "nothing is kept")
                self.extend()
                self._through, self._pending = self._source.last_id(), 0
            return self._report

    def _must_be_open(self) -> None:
        if self._report is None:
            raise IndexUnavailableError("the index is not open")

    def extend(self, limit: int | None = None) -> int:
        with self._lock:
            self._must_be_open()
            known, added = self._through, 0
            for ids, vectors in self._source.batches(known, 1):
                if added == limit:
                    break
                self._held[ids[0]], self._through = vectors[0], ids[0]
                added += 1
            self._pending += added
            return added

    def upsert(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        with self._lock:
            self._must_be_open()
            if vectors.shape != (len(ids), self._source.dimension):
                raise ValueError(vectors.shape)
            for each, vector in zip(ids, vectors, strict=True):
                if each <= self._through:
                    self._held[each] = vector
                    self._pending += 1

    def query(self, vector: NDArray[np.float32], limit: int) -> list[tuple[int, float]]:
        with self._lock:
            self._must_be_open()
            if vector.shape != (self._source.dimension,):
                raise ValueError(vector.shape)
            scored = [(each, float(held @ vector)) for each, held in self._held.items()]
            return sorted(scored, key=lambda hit: -hit[1])[:limit]

    def pending_replay(self) -> int:
        return self._pending

    def compact(self, stop: Stop = never) -> None:
        with self._lock:
            self._must_be_open()
            if stop():
                raise Stopped
            self.extend()
            self._pending = 0

    def clear(self) -> None:
        self.close()

    def close(self) -> None:
        self._held, self._through, self._pending, self._report = {}, 0, 0, None


Make = Callable[[VectorSource], VectorIndex]
KINDS: dict[str, Callable[[Path, VectorSource], VectorIndex]] = {
    "chroma": lambda directory, source: ChromaIndex(directory, source, batch=7),
    "plain": lambda _, source: PlainIndex(source),
}


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes an index over a source; a second one continues with what the first left on disk."""
    made: list[VectorIndex] = []

    def make_one(source: VectorSource) -> VectorIndex:
        made.append(KINDS[request.param](tmp_path / "index", source))
        return made[-1]

    yield make_one
    for index in made:
        index.close()


def opened(index: VectorIndex) -> VectorIndex:
    index.open()
    return index


def assert_finds_all(index: VectorIndex, source: MemorySource) -> None:
    """Exactly what the source has, each with its true similarity."""
    probe = unit_vectors(1, source.dimension, seed=99)[0]
    found = index.query(probe, len(source.vectors) + 10)
    assert dict(found) == pytest.approx(dict(source.nearest(probe, len(source.vectors))), abs=1e-5)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_an_empty_source_makes_an_empty_index(make: Make) -> None:
    index = make(MemorySource())
    assert index.open().outcome == "rebuilt"
    assert (index.through(), index.extend(), index.pending_replay()) == (0, 0, 0)
    assert index.query(unit_vectors(1)[0], 5) == []


def test_nothing_but_opening_opens_it(make: Make) -> None:
    source = MemorySource.of(20)
    index, vector = make(source), unit_vectors(1)
    acts: list[Callable[[], object]] = [
        index.extend,
        index.compact,
        lambda: index.query(vector[0], 3),
        lambda: index.upsert([1], vector),
    ]
    for act in acts:
        with pytest.raises(IndexUnavailableError, match="not open"):
            act()
    assert (index.through(), index.pending_replay()) == (0, 0)
    assert_finds_all(opened(index), source)


def test_what_takes_long_can_be_stopped_and_begun_again(make: Make) -> None:
    source = MemorySource.of(20)
    index = make(source)
    with pytest.raises(Stopped):
        index.open(lambda: True)
    assert index.through() == 0
    index.open()  # at once: stopping is no failure
    source.grow(3)
    index.extend()
    with pytest.raises(Stopped):
        index.compact(lambda: True)
    assert_finds_all(index, source)
    index.compact()
    assert_finds_all(index, source)


def test_extend_takes_what_is_new_up_to_a_limit(make: Make) -> None:
    source = MemorySource.of(10)
    index = make(source)
    assert index.open() is index.open()
    source.grow(30)
    assert index.extend(limit=0) == 0
    assert (index.extend(limit=12), index.through()) == (12, 22)
    assert index.pending_replay() == 12
    assert (index.extend(), index.through()) == (18, 40)
    assert index.extend() == 0
    assert_finds_all(index, source)


def test_the_nearest_come_first_and_no_more_than_asked_for(make: Make) -> None:
    source = MemorySource.of(200)
    index, vector = opened(make(source)), unit_vectors(1)[0]
    for vector in unit_vectors(10, seed=5):
        assert [each for each, _ in index.query(vector, 5)] == [each for each, _ in source.nearest(vector, 5)]
    assert index.query(vector, 0) == []


def test_upsert_leaves_what_is_new_to_extend(make: Make) -> None:
    source = MemorySource.of(10)
    index = make(source)
    index.open()
    [new] = source.grow(1)
    index.upsert([3, new], np.stack([source.vectors[3], source.vectors[new]]))
    assert index.through() == 10
    assert len(index.query(source.vectors[new], 20)) == 10
    assert index.extend() == 1


def test_vectors_of_another_shape_are_refused(make: Make) -> None:
    index = opened(make(MemorySource.of(5)))
    with pytest.raises(ValueError, match=r"\(8,\)"):
        index.query(unit_vectors(1, 8)[0], 3)
    with pytest.raises(ValueError, match=r"\(1, 16\)"):
        index.upsert([1, 2], unit_vectors(1))


@pytest.mark.parametrize("dimension", [16, 24])
def test_another_embedder_replaces_everything(make: Make, dimension: int) -> None:
    first = make(MemorySource.of(30))
    first.open()
    first.close()
    source = MemorySource.of(20, dimension, seed=8)
    source.fingerprint = "model-b"
    second = make(source)
    assert second.open().outcome == "rebuilt"
    assert_finds_all(second, source)


def test_what_the_source_lost_or_gained_meanwhile_is_noticed(make: Make) -> None:
    source = MemorySource.of(30)
    for change in (lambda: source.vectors.pop(7), lambda: source.vectors.update({7: unit_vectors(1)[0]})):
        index = make(source)
        index.open()
        index.close()
        change()
        later = make(source)
        assert later.open().outcome == "rebuilt"
        assert_finds_all(later, source)
        later.close()


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_calls_leaves_the_source_s_vectors(make: Make, seed: int) -> None:
    dice, source = random.Random(seed), MemorySource.of(seed * 3)
    index = opened(make(source))

    def come_late() -> None:
        missing = [each for each in range(1, min(index.through(), 99)) if each not in source.vectors]
        if missing:
            source.vectors[missing[0]] = unit_vectors(1, seed=missing[0])[0]
            index.upsert(missing[:1], np.stack([source.vectors[missing[0]]]))

    def skip_ids() -> None:
        source.vectors[source.last_id() + dice.choice([3, 3, 2**33])] = unit_vectors(1, seed=source.last_id())[0]

    def compact() -> None:
        index.compact()
        assert index.pending_replay() == 0

    def reopen() -> None:
        nonlocal index
        index.close()
        index = opened(make(source))

    def clear() -> None:
        index.clear()
        index.open()

    acts: dict[Callable[[], object], int] = {
        lambda: source.grow(dice.randrange(9)): 6,
        skip_ids: 6,
        come_late: 6,
        lambda: index.extend(None): 6,
        lambda: index.extend(3): 3,
        compact: 1,
        clear: 1,
        reopen: 1,
    }
    for act in dice.choices(list(acts), weights=list(acts.values()), k=40):
        act()
    index.extend()
    assert index.through() == source.last_id()
    assert_finds_all(index, source)


def test_threads_may_share_it(make: Make) -> None:
    source = MemorySource.of(200)
    index = make(source)
    index.open()
    source.grow(300)
    failures: list[BaseException] = []

    def run(act: Callable[[], object], times: int) -> None:
        try:
            for _ in range(times):
                act()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    vector = unit_vectors(1, seed=3)[0]
    work: list[tuple[Callable[[], object], int]] = [
        (lambda: index.extend(10), 20),
        (lambda: index.query(vector, 10), 50),
        (index.compact, 2),
        (lambda: index.upsert([5], np.stack([source.vectors[5]])), 10),
    ]
    threads = [threading.Thread(target=run, args=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    index.extend()
    assert_finds_all(index, source)
