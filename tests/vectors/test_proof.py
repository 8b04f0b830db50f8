"""A generation that loses what it holds is not used, and says so."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pager.vectors.chroma.build import Proof
from pager.vectors.index import RECALL
from tests.support.indexed import FACTS, archive, build, count_queries, is_asked, lost, names_in, open_memory, told
from tests.support.indexed import unit_vectors as vectors_of_length_1


class Forgetful:
    """A collection that compares everything but what it has lost."""

    def __init__(self, vectors: Any, lost: Any = ()) -> None:
        self._vectors = vectors
        self._lost = lost

    def query(self, asked: Any, limit: int) -> list[tuple[int, float]]:
        cosines = self._vectors @ asked
        cosines[self._lost] = -2
        best = np.argsort(-cosines)[:limit]
        return [(int(each), float(cosines[each])) for each in best]


def recall(vectors: Any, lost: Any = ()) -> float:
    pieces = [([], piece) for piece in np.array_split(vectors, 3)]
    collection: Any = Forgetful(vectors, np.asarray(lost, dtype=np.int64))
    return Proof(lambda: iter(pieces), len(vectors)).recall(collection)


def test_what_finds_all_is_proven_and_what_loses_the_few_that_lie_apart_is_not() -> None:
    apart, near = vectors_of_length_1(20, 64), vectors_of_length_1(3, 64, seed=1)
    copies = np.repeat(near, 2_000, axis=0) + 0.02 * vectors_of_length_1(6_000, 64, seed=2)
    copies /= np.linalg.norm(copies, axis=1, keepdims=True)
    everything = np.concatenate([copies[:3_000], apart, copies[3_000:]])
    assert recall(everything) == 1
    assert recall(everything, range(3_000, 3_020)) < RECALL  # one of 300
    assert recall(everything, range(3_010, 3_020)) < RECALL
    assert recall(np.repeat(near[:1], 1_000, axis=0)) == 1, "equal ones are as good as each other"
    assert recall(vectors_of_length_1(2_000), range(0, 2_000, 40)) < RECALL


@pytest.mark.parametrize("count", [1, 2, 9, 11])
def test_few_facts_are_proven_too(count: int) -> None:
    vectors = vectors_of_length_1(count)
    assert recall(vectors) == 1
    assert recall(vectors, [0]) < RECALL


def test_a_generation_that_fails_its_proof_is_told_removed_and_tried_again_with_twice_as_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_queries(monkeypatch)
    with open_memory(tmp_path) as memory:
        archive(memory, 1, FACTS)
        with monkeypatch.context() as patch:
            patch.setattr("pager.vectors.chroma.places.RECALL", 1.1)  # which none can reach
            build(memory)
        for _ in range(2):
            assert (lost(memory), is_asked(memory), asked) == ([], False, [])
            [problem] = memory.check()
            assert (problem.where, told(memory)) == ("chroma", [problem.text])
            assert "not used: of what is nearest it finds 100.00%" in problem.text
            assert "tried again with twice as many" in problem.text
            assert names_in(tmp_path / "chroma") == {"state.json"}
            archive(memory, FACTS + 1, 2 * FACTS - 1)
            build(memory)  # there is nothing to do yet
        assert not memory.index_is_behind
        archive(memory, 3 * FACTS, 3 * FACTS)
        assert memory.index_is_behind
        build(memory)
        assert (lost(memory), is_asked(memory), memory.check()) == ([], True, [])
        assert names_in(tmp_path / "chroma") == {"state.json", "g1"}
        assert len(told(memory)) == 2
