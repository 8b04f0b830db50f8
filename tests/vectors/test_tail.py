"""Facts that the index does not hold yet, and vectors of a byte a number, against the plain truth."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.store import Store
from pager.vectors.facts import Tail
from pager.vectors.int8_matrix import Int8Matrix, quantize
from tests.contract.vector_sources import unit_vectors
from tests.support import HandClock

ROWS = unit_vectors(200)
ROUNDED = 0.01  # a byte a number
ASKED = unit_vectors(1, seed=7)[0]
ACTS = st.one_of(
    st.tuples(st.just("store"), st.integers(1, 5)),
    st.tuples(st.just("skip"), st.integers(1, 3)),  # facts that get their vector late, or never
    st.tuples(st.just("late"), st.integers(0, 50)),
    st.tuples(st.just("follow"), st.integers(0, 60)),  # how far the index goes
    st.tuples(st.just("undo"), st.integers(1, 3)),
    st.tuples(st.just("forget"), st.just(0)),
)


@given(acts=st.lists(ACTS, max_size=30), limit=st.integers(1, 30))
def test_with_the_index_it_finds_the_nearest_of_all(acts: list[tuple[str, int]], limit: int) -> None:
    with TemporaryDirectory() as place:
        store = Store(Path(place) / "pager.db", HandClock())
        tail, last, missing, through = Tail(store), 0, list[int](), 0
        for act, number in acts:
            match act:
                case "store" | "skip":
                    for fact in range(last + 1, last + number + 1):
                        store.archive.append(f"{fact}", None, (), 0, None, 0, "person", 0, stated=False)
                        if act == "store":
                            store.archive.store_vector(fact, ROWS[fact])
                        else:
                            missing.append(fact)
                    last += number
                case "late" if missing:
                    fact = missing.pop(number % len(missing))
                    store.archive.store_vector(fact, ROWS[fact])
                    tail.add_late([fact], ROWS[fact : fact + 1])
                case "follow":
                    through = min(number, last)
                    tail.update(through)
                case "undo":
                    try:
                        with store.transaction():
                            for fact in range(last + 1, last + number + 1):
                                store.archive.append(f"{fact}", None, (), 0, None, 0, "person", 0, stated=False)
                                store.archive.store_vector(fact, ROWS[fact])
                            check(store, tail, limit, through)
                            raise ZeroDivisionError
                    except ZeroDivisionError:
                        tail.update(through)
                        check(store, tail, limit, through)
                case _:
                    tail.reset()
        tail.update(through)
        check(store, tail, limit, through)
        check(store, tail, limit, 0)  # the index has just broken
        store.close()


def check(store: Store, tail: Tail, limit: int, through: int) -> None:
    """Together with an index that holds everything up to `through`."""
    truth = {fact: float(row @ ASKED) for fact, row in zip(*store.archive.vectors_after(0, -1), strict=True)}
    beyond = tail.nearest(ASKED, limit, through)
    assert len({fact for fact, _ in beyond}) == len(beyond)
    assert all(cosine == pytest.approx(truth[fact], abs=ROUNDED) for fact, cosine in beyond)
    found = dict(beyond) | nearest({fact: truth[fact] for fact in truth if fact <= through}, limit)
    assert len(found) >= min(limit, len(truth))
    worst = min(nearest(found, limit).values(), default=0.0)
    assert all(fact in found or truth[fact] <= worst + ROUNDED for fact in truth)


def nearest(cosines: dict[int, float], limit: int) -> dict[int, float]:
    return dict(sorted(cosines.items(), key=lambda hit: -hit[1])[:limit])


def test_a_vector_of_noughts_is_far_from_everything() -> None:
    held = Int8Matrix(8)
    held.extend([1], *quantize(np.zeros((1, 8), dtype=np.float32)))
    assert held.cosines(np.eye(8, dtype=np.float32)[0]).tolist() == [0.0]
