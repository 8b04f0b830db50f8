"""Who is whose neighbour in a conversation, and what speaks for a part, against sums that are written down plainly."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.search.neighbours import BACKWARD, DECAY, FULL_WORDS, PAUSE, REACH, PartTable
from pager.search.ranking import LENGTH, NAME, SATURATION, WHEN, Ranking, rarity
from pager.store.rows import SaidMeta

HOUR = 3600 * 1_000_000


def told(part: int, at: int = 0, session: str | None = None, **changes: Any) -> SaidMeta:
    known = {"kind": "record", "role": "user", "name": None, "length": 5, **changes}
    return SaidMeta(part, part, at, known["kind"], known["role"], known["name"], session, known["length"])


def sessions(*rows: SaidMeta) -> PartTable:
    found = PartTable()
    found.extend(rows)
    return found


def links(found: PartTable) -> list[tuple[int, int]]:
    return list(zip(found.before[:-1].tolist(), found.after[:-1].tolist(), strict=True))


@pytest.mark.parametrize(
    ("odd", "even"), [({"session": "a"}, {"session": "b"}), ({"kind": "user"}, {"kind": "record"})]
)
def test_parts_of_one_session_are_neighbours_also_when_others_come_between(odd: Any, even: Any) -> None:
    """The conversation itself and what was recorded are two sessions."""
    assert links(sessions(told(1, **odd), told(2, **even), told(3, **odd), told(4, **even))) == [
        (-1, 2), (-1, 3), (0, -1), (1, -1),
    ]  # fmt: skip


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
def test_growing_piece_by_piece_comes_to_the_same(rows: list[tuple[str | None, int, int]], cuts: list[int]) -> None:
    all_told = [told(n + 1, hours * HOUR, name, length=length) for n, (name, hours, length) in enumerate(rows)]
    whole, grown = sessions(*all_told), PartTable()
    edges = [0, *sorted(cuts), len(all_told)]
    for start, end in pairwise(edges):
        grown.extend(all_told[start:end])
    assert links(whole) == links(grown)
    assert whole.session.tolist() == grown.session.tolist()
    np.testing.assert_allclose(whole.pooled_length, grown.pooled_length)
    assert (whole.first_at, whole.last_at) == (grown.first_at, grown.last_at)
    assert grown.mean_length == pytest.approx(float(grown.pooled_length[:-1].mean()) if rows else 0.0)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 40)), min_size=1, max_size=25), st.data())
def test_each_part_lends_to_its_neighbours(rows: list[tuple[str, int]], data: st.DataObject) -> None:
    found = sessions(*(told(n + 1, session=name, length=length) for n, (name, length) in enumerate(rows)))
    places = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True))
    values = data.draw(st.lists(st.floats(0, 9), min_size=len(places), max_size=len(places)))
    known = dict(zip(places, values, strict=True))
    expected = []
    for place, (name, _) in enumerate(rows):
        of_session = [n for n, (other, _) in enumerate(rows) if other == name]
        at = of_session.index(place)
        lent = sum(
            (BACKWARD if n > at else 1.0)
            * DECAY ** abs(at - n)
            * min(1.0, FULL_WORDS / max(1, rows[other][1]))
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


def parts_of(rank: Ranking) -> list[dict[str, float]]:
    return [rank.explain(place) for place in range(len(rank.table))]


def apart(count: int, **changes: Any) -> PartTable:
    """Parts without neighbours."""
    return sessions(*(told(n + 1, session=str(n), **changes) for n in range(count)))


def test_without_neighbours_it_is_bm25() -> None:
    table = sessions(*(told(n + 1, session=str(n), length=length) for n, length in enumerate([5, 10, 3, 2])))
    rank = Ranking(table)
    rank.add_word(np.array([1, 2, 2]))
    idf = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    for place, (count, length) in enumerate([(1, 5), (2, 10), (0, 3), (0, 2)]):
        norm = SATURATION * (1 - LENGTH + LENGTH * length / 5)
        assert rank.words[place] == pytest.approx(idf * count * (SATURATION + 1) / (count + norm))
    assert [place for place, _ in rank.best(9)] == [1, 0]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 30)), min_size=1, max_size=12),
    st.lists(st.lists(st.integers(1, 12), max_size=8), max_size=3),
)
def test_the_parts_add_up_to_the_score(rows: list[tuple[str, int]], terms: list[list[int]]) -> None:
    rank = Ranking(sessions(*(told(n + 1, session=name, length=length) for n, (name, length) in enumerate(rows))))
    for term in terms:
        rank.add_word(np.array(sorted(term), dtype=np.int64))
    rank.add_speakers("what did the user say?")
    rank.add_spans([(0, 1)])
    rank.add_meaning(np.arange(len(rows)), np.linspace(0, 1, len(rows)))
    for place, score in rank.best(len(rows)):
        assert sum(rank.explain(place).values()) == pytest.approx(score, abs=1e-5)
        assert rank.explain(place).get("neighbours", 0.0) >= 0


def test_the_one_who_is_named_comes_first_of_two_who_say_the_same() -> None:
    table = sessions(*(told(n + 1, session="a", name=["Ana Lima", "Ben"][n % 2]) for n in range(4)))
    for question, wanted in {
        "What does ANA like?": [0, 2], "ana lima's cat": [0, 2], "ben?": [1, 3], "Who?": [],
    }.items():  # fmt: skip
        rank = Ranking(table)
        rank.add_speakers(question)
        assert [place for place, parts in enumerate(parts_of(rank)) if "who" in parts] == wanted, question
    rank = Ranking(table)
    rank.add_speakers("ana's cat")
    half = rank.explain(0)["who"]
    rank.add_speakers("ana lima's cat")
    assert rank.explain(0)["who"] == pytest.approx(2 * half)


def test_who_speaks_alone_gains_nothing_by_it() -> None:
    alone = sessions(*(told(n + 1, name="Ana") for n in range(50)))
    crowd = sessions(
        *(told(n + 1, name="Ana", session="a") for n in range(50)), *(told(n + 51, session="b") for n in range(500))
    )
    for table in (alone, crowd):
        rank = Ranking(table)
        rank.add_speakers("Where does Ana live?")
        assert rank.explain(0)["who"] < 0.01 * NAME


@pytest.mark.parametrize(
    ("question", "role"), [("Where do I live?", "user"), ("my seat", "user"), ("what did you say", "assistant"),
                           ("the user's seat", "user"), ("what the Assistant said", "assistant")],
)  # fmt: skip
def test_a_pronoun_or_a_role_means_who_has_it(question: str, role: str) -> None:
    rank = Ranking(sessions(*(told(n + 1, role=["user", "assistant"][n % 2]) for n in range(4))))
    rank.add_speakers(question)
    first = ["user", "assistant"].index(role)
    assert [place for place, parts in enumerate(parts_of(rank)) if "who" in parts] == [first, first + 2]


def test_the_time_of_which_a_question_speaks_counts_like_a_word() -> None:
    rank = Ranking(sessions(*(told(n + 1, at=n, session=str(n)) for n in range(5))))
    rank.add_spans([(1, 2), (3, 9)])
    assert [place for place, parts in enumerate(parts_of(rank)) if "when" in parts] == [1, 3, 4]
    assert rank.explain(1)["when"] == pytest.approx(WHEN * rarity(3, 5))
    assert [place for place, _ in rank.best(9)] == [4, 3, 1]


def test_a_part_means_what_its_neighbours_say_too() -> None:
    near = np.array([0.5, 0.5, 0.9, 0.5, 0.5, 0.5])
    table = sessions(told(1, session="a"), told(2, session="b"), told(3, session="b"),
                     *(told(n, session=str(n)) for n in (4, 5, 6)))  # fmt: skip
    rank = Ranking(table)
    rank.add_meaning(np.arange(6), near)
    assert [place for place, _ in rank.best(2)] == [2, 1]


def test_of_equal_ones_the_newest_comes_first_and_no_more_are_cut_off_than_must_be() -> None:
    rank = Ranking(apart(9))
    rank.add_word(np.array([1, 2, 3, 4, 5, 6]))
    assert [place for place, _ in rank.best(2)] == [5, 4, 3, 2, 1, 0]
    assert Ranking(apart(3)).best(2) == []


@given(st.integers(1, 10_000), st.data())
def test_the_fewer_the_more_it_says_and_never_less_than_nothing(among: int, data: st.DataObject) -> None:
    holding = data.draw(st.integers(1, among))
    assert rarity(holding, among) > 0
    assert holding == 1 or rarity(holding - 1, among) > rarity(holding, among)
