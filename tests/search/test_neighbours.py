"""TurnTable: who is whose neighbour, also when conversations are told in turns, and as they grow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.search.neighbours import BACKWARD, DECAY, FULL_WORDS, PAUSE, REACH, TurnTable
from pager.store.rows import SaidMeta

HOUR = 3600 * 1_000_000


def told(part: int, at: int = 0, session: str | None = None, **changes: Any) -> SaidMeta:
    known = {"kind": "record", "role": "user", "name": None, "length": 5, **changes}
    return SaidMeta(part, part, at, known["kind"], known["role"], known["name"], session, known["length"])


def sessions(*turns: SaidMeta) -> TurnTable:
    found = TurnTable()
    found.extend(turns)
    return found


def links(found: TurnTable) -> list[tuple[int, int]]:
    return list(zip(found.before[:-1].tolist(), found.after[:-1].tolist(), strict=True))


def test_turns_of_one_session_are_neighbours_also_when_others_come_between() -> None:
    found = sessions(told(1, session="a"), told(2, session="b"), told(3, session="a"), told(4, session="b"))
    assert links(found) == [(-1, 2), (-1, 3), (0, -1), (1, -1)]


def test_the_conversation_itself_and_what_was_recorded_are_two() -> None:
    found = sessions(told(1, kind="user"), told(2), told(3, kind="assistant"), told(4))
    assert links(found) == [(-1, 2), (-1, 3), (0, -1), (1, -1)]


@pytest.mark.parametrize(
    ("name", "wanted", "numbers"),
    [
        (None, [(-1, 1), (0, -1), (-1, 3), (2, -1)], [0, 0, 1, 1]),
        ("a year with Dana", [(-1, 1), (0, 2), (1, 3), (2, -1)], [0, 0, 0, 0]),
    ],
)
def test_a_long_pause_ends_a_session_that_has_no_name(
    name: str | None, wanted: list[tuple[int, int]], numbers: list[int]
) -> None:
    found = sessions(told(1, 0, name), told(2, PAUSE, name), told(3, 2 * PAUSE + 1, name), told(4, 2 * PAUSE, name))
    assert links(found) == wanted
    assert found.session.tolist() == numbers


@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 20), st.integers(0, 40)), max_size=25),
    st.lists(st.integers(0, 25), max_size=4),
)
def test_growing_piece_by_piece_comes_to_the_same(turns: list[tuple[str | None, int, int]], cuts: list[int]) -> None:
    all_told = [told(n + 1, hours * HOUR, name, length=length) for n, (name, hours, length) in enumerate(turns)]
    whole, grown = sessions(*all_told), TurnTable()
    edges = [0, *sorted(cuts), len(all_told)]
    for start, end in pairwise(edges):
        grown.extend(all_told[start:end])
    assert links(whole) == links(grown)
    assert whole.session.tolist() == grown.session.tolist()
    np.testing.assert_allclose(whole.pooled_length, grown.pooled_length)
    assert (whole.first_at, whole.last_at) == (grown.first_at, grown.last_at)
    assert grown.mean_length == pytest.approx(float(grown.pooled_length[:-1].mean()) if turns else 0.0)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 40)), min_size=1, max_size=25), st.data())
def test_each_turn_lends_to_its_neighbours(turns: list[tuple[str, int]], data: st.DataObject) -> None:
    found = sessions(*(told(n + 1, session=name, length=length) for n, (name, length) in enumerate(turns)))
    places = data.draw(st.lists(st.sampled_from(range(len(turns))), unique=True))
    values = data.draw(st.lists(st.floats(0, 9), min_size=len(places), max_size=len(places)))
    known = dict(zip(places, values, strict=True))
    expected = []
    for place, (name, _) in enumerate(turns):
        of_session = [n for n, (other, _) in enumerate(turns) if other == name]
        at = of_session.index(place)
        lent = sum(
            (BACKWARD if n > at else 1.0)
            * DECAY ** abs(at - n)
            * min(1.0, FULL_WORDS / max(1, turns[other][1]))
            * known.get(other, 0.0)
            for n, other in enumerate(of_session)
            if 0 < abs(at - n) <= REACH
        )
        expected.append(known.get(place, 0.0) + lent)
    for many in (0, 10**9, 0):  # either way what is reached is found, and nothing of one stays for the next
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pager.search.neighbours.SPARSE", many)
            reached, given = found.with_neighbours(np.array(places, dtype=np.int64), np.array(values, dtype=np.float64))
        assert reached.tolist() == sorted(set(reached.tolist()))
        spread = np.zeros(len(found))
        spread[reached] = given
        np.testing.assert_allclose(spread, expected, atol=1e-12)


def test_positions_of_parts_and_of_such_that_are_not_here() -> None:
    found = sessions(told(3), told(5), told(9))
    assert found.positions(np.array([3, 4, 9, 10, 1])).tolist() == [0, -1, 2, -1, -1]
    assert TurnTable().positions(np.array([1])).tolist() == [-1]
    assert (len(found), found.newest_part, TurnTable().newest_part) == (3, 9, 0)
