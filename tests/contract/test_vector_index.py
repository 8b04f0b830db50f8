"""What the vector index promises to the memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from pager.vectors.chroma import index as chroma_index
from pager.vectors.chroma.index import ChromaIndex, LiveGeneration
from pager.vectors.index import BuildCancelledError
from tests.contract.vector_sources import MemorySource, unit_vectors
from tests.crash.index_life import assert_complete


@pytest.fixture
def opened() -> Iterator[list[LiveGeneration]]:
    """What is closed at the end."""
    found: list[LiveGeneration] = []
    yield found
    for each in found:
        each.close()


def test_an_empty_source_makes_an_empty_index(tmp_path: Path, opened: list[LiveGeneration]) -> None:
    opened.append(ChromaIndex(tmp_path, MemorySource()).open())
    assert (opened[0].through, opened[0].collection.query(unit_vectors(1)[0], 5)) == (0, [])


def test_a_build_takes_what_is_new_while_the_old_generation_answers(
    tmp_path: Path, opened: list[LiveGeneration]
) -> None:
    source = MemorySource.of(200)
    index, vector = ChromaIndex(tmp_path, source), unit_vectors(1)[0]
    opened += [index.open()]
    for vector in unit_vectors(10, seed=5):
        near = opened[0].collection.query(vector, 5)
        assert [each for each, _ in near] == [each for each, _ in source.nearest(vector, 5)]
    source.grow(30)
    source.vectors[2**33] = unit_vectors(1, seed=7)[0]
    opened += [index.build()]
    assert [each.through for each in opened] == [200, 2**33]
    assert len(opened[0].collection.query(vector, 300)) == 200
    assert_complete(opened[1], source)
    opened[0].discard()
    assert_complete(opened[1], source)


def test_what_was_closed_is_opened_again(tmp_path: Path, opened: list[LiveGeneration]) -> None:
    source = MemorySource.of(30)
    first = ChromaIndex(tmp_path, source).open()
    assert first.built_because == "no index yet, or no readable state"
    first.close()
    first.close()
    source.grow(10)
    opened += [ChromaIndex(tmp_path, source).open()]
    assert (opened[0].built_because, opened[0].through) == ("", 30)


@pytest.mark.slow
def test_what_takes_long_can_be_stopped_and_begun_again(tmp_path: Path, opened: list[LiveGeneration]) -> None:
    source = MemorySource.of(20)
    index = ChromaIndex(tmp_path, source)
    for asked in range(3):  # before it begins, before and while it is written
        left = iter(range(asked))
        with pytest.raises(BuildCancelledError):
            index.open(lambda left=left: next(left, None) is None)
        assert list(tmp_path.iterdir()) == []
    opened += [index.open()]
    with pytest.raises(BuildCancelledError):
        index.build(lambda: True)
    assert_complete(opened[0], source)


def test_cleared_it_is_built_anew_without_what_the_source_has_lost(
    tmp_path: Path, opened: list[LiveGeneration]
) -> None:
    source = MemorySource.of(30)
    index = ChromaIndex(tmp_path, source)
    index.open().close()
    del source.vectors[7]
    index.clear()
    index.clear()
    assert list(tmp_path.iterdir()) == []
    opened += [index.open()]
    assert_complete(opened[0], source)


@pytest.mark.parametrize("change", ["another embedder", "another dimension", "one is lost", "one is new"])
def test_what_changed_meanwhile_is_noticed(tmp_path: Path, opened: list[LiveGeneration], change: str) -> None:
    source = MemorySource.of(30)
    del source.vectors[9]
    ChromaIndex(tmp_path, source).open().close()
    if change.startswith("another"):
        source = MemorySource.of(29, 24 if change == "another dimension" else 16, seed=8)
        source.embedder = "model-b"
    elif change == "one is lost":
        del source.vectors[7]
    else:
        source.vectors[9] = unit_vectors(1)[0]
    opened += [ChromaIndex(tmp_path, source).open()]
    assert opened[0].built_because != ""
    assert_complete(opened[0], source)


def test_clearing_waits_for_what_another_thread_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work, go_on = Event(), Event()

    def slowly(*_: object) -> None:
        at_work.set()
        assert go_on.wait(30)
        raise BuildCancelledError

    monkeypatch.setattr(chroma_index, "write", slowly)
    index = ChromaIndex(tmp_path, MemorySource.of(3))

    def build() -> None:
        with pytest.raises(BuildCancelledError):
            index.open()

    threads = [Thread(target=build), Thread(target=index.clear)]
    threads[0].start()
    assert at_work.wait(30)
    threads[1].start()
    assert (tmp_path / "g1").exists()
    go_on.set()
    for thread in threads:
        thread.join()
    assert list(tmp_path.iterdir()) == []
