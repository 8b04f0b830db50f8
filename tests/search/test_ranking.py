"""What speaks for a turn, against sums that are written down plainly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.search.neighbours import TurnTable
from pager.search.ranking import LENGTH, SATURATION, Ranking, rarity
from tests.search.test_neighbours import sessions, told


def ranking(turns: TurnTable) -> Ranking:
    return Ranking(turns)


def parts_of(rank: Ranking) -> list[dict[str, float]]:
    return [rank.parts(place) for place in range(len(rank.turns))]


def apart(count: int, **changes: Any) -> TurnTable:
    """Turns without neighbours."""
    return sessions(*(told(n + 1, session=str(n), **changes) for n in range(count)))


def test_without_neighbours_it_is_bm25() -> None:
    turns = sessions(*(told(n + 1, session=str(n), length=length) for n, length in enumerate([5, 10, 3, 2])))
    rank = ranking(turns)
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
def test_the_parts_add_up_to_the_score(turns: list[tuple[str, int]], terms: list[list[int]]) -> None:
    rank = ranking(sessions(*(told(n + 1, session=name, length=length) for n, (name, length) in enumerate(turns))))
    for term in terms:
        rank.add_word(np.array(sorted(term), dtype=np.int64))
    rank.add_speakers("what did the user say?")
    rank.add_spans([(0, 1)])
    rank.add_meaning(np.arange(len(turns)), np.linspace(0, 1, len(turns)))
    for place, score in rank.best(len(turns)):
        assert sum(rank.parts(place).values()) == pytest.approx(score, abs=1e-5)
        assert rank.parts(place).get("neighbours", 0.0) >= 0


def test_a_neighbour_of_the_word_is_found_behind_the_turn_that_says_it() -> None:
    rank = ranking(sessions(*(told(n + 1) for n in range(8))))
    rank.add_word(np.array([2]))
    first, *others = [place for place, _ in rank.best(99)]
    assert (first, set(others[:2]), others[2:]) == (1, {0, 2}, [3, 4, 5])
    assert set(rank.parts(1)) == {"words"}
    assert set(rank.parts(2)) == {"neighbours"}


def test_the_one_who_is_named_comes_first_of_two_who_say_the_same() -> None:
    turns = sessions(*(told(n + 1, session="a", name=["Ana Lima", "Ben"][n % 2]) for n in range(4)))
    for question, wanted in {
        "What does ANA like?": [0, 2], "ana lima's cat": [0, 2], "ben?": [1, 3], "Who?": [],
    }.items():  # fmt: skip
        rank = ranking(turns)
        rank.add_speakers(question)
        assert [place for place, parts in enumerate(parts_of(rank)) if "who" in parts] == wanted, question
    rank = ranking(turns)
    rank.add_speakers("ana's cat")
    half = rank.parts(0)["who"]
    rank.add_speakers("ana lima's cat")
    assert rank.parts(0)["who"] == pytest.approx(2 * half)


def test_who_speaks_alone_gains_nothing_by_it() -> None:
    alone = sessions(*(told(n + 1, name="Ana") for n in range(50)))
    crowd = sessions(
        *(told(n + 1, name="Ana", session="a") for n in range(50)), *(told(n + 51, session="b") for n in range(500))
    )
    for turns in (alone, crowd):
        rank = ranking(turns)
        rank.add_speakers("Where does Ana live?")
        assert rank.parts(0)["who"] < 0.02


@pytest.mark.parametrize(
    ("question", "role"), [("Where do I live?", "user"), ("my seat", "user"), ("what did you say", "assistant"),
                           ("the user's seat", "user"), ("what the Assistant said", "assistant")],
)  # fmt: skip
def test_a_pronoun_or_a_role_means_who_has_it(question: str, role: str) -> None:
    rank = ranking(sessions(*(told(n + 1, role=["user", "assistant"][n % 2]) for n in range(4))))
    rank.add_speakers(question)
    first = ["user", "assistant"].index(role)
    assert [place for place, parts in enumerate(parts_of(rank)) if "who" in parts] == [first, first + 2]


def test_the_time_of_which_a_question_speaks_counts_like_a_word() -> None:
    rank = ranking(sessions(*(told(n + 1, at=n, session=str(n)) for n in range(5))))
    rank.add_spans([(1, 2), (3, 9)])
    assert [place for place, parts in enumerate(parts_of(rank)) if "when" in parts] == [1, 3, 4]
    assert rank.parts(1)["when"] == pytest.approx(rarity(3, 5))
    assert [place for place, _ in rank.best(9)] == [4, 3, 1]


def test_meaning_has_a_part_of_the_spread_of_words_and_says_nothing_of_who_has_no_vector() -> None:
    rank = ranking(apart(4))
    rank.add_word(np.array([1]))
    rank.add_meaning(np.array([0, 1, 2]), np.array([0.1, 0.9, 0.2]))
    values = [parts.get("meaning", 0.0) for parts in parts_of(rank)]
    assert values[3] == 0.0
    assert values[1] > 0 > values[0]
    assert np.std(values[:3]) == pytest.approx(0.6 * rank.words.std())


def test_a_turn_means_what_its_neighbours_say_too() -> None:
    near = np.array([0.5, 0.5, 0.9, 0.5, 0.5, 0.5])
    turns = sessions(told(1, session="a"), told(2, session="b"), told(3, session="b"),
                     *(told(n, session=str(n)) for n in (4, 5, 6)))  # fmt: skip
    rank = ranking(turns)
    rank.add_meaning(np.arange(6), near)
    assert [place for place, _ in rank.best(2)] == [2, 1]


def test_only_what_competes_is_counted_and_found() -> None:
    rank = Ranking(sessions(*(told(n + 1, at=at, session=str(n)) for n, at in enumerate([5, 1, 7, 9, 2, 4]))), 5, 9)
    rank.add_word(np.array([1, 2, 2, 3]))
    assert [place for place, _ in rank.best(9)] == [2, 0]


def test_of_equal_ones_the_newest_comes_first_and_no_more_are_cut_off_than_must_be() -> None:
    rank = ranking(apart(9))
    rank.add_word(np.array([1, 2, 3, 4, 5, 6]))
    assert [place for place, _ in rank.best(2)] == [5, 4, 3, 2, 1, 0]
    assert ranking(apart(3)).best(2) == []


@given(st.integers(1, 10_000), st.data())
def test_the_fewer_the_more_it_says_and_never_less_than_nothing(among: int, data: st.DataObject) -> None:
    holding = data.draw(st.integers(1, among))
    assert rarity(holding, among) > 0
    assert holding == 1 or rarity(holding - 1, among) > rarity(holding, among)
