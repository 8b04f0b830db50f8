"""Counting: what is learned from responses, how fast, and what is not believed."""

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.tokens.counter import PESSIMISTIC, START, Counter
from pager.types import Counts

KINDS = Counts._fields
RATIOS = st.lists(st.floats(1.0, 1.6), min_size=5, max_size=5) | st.sampled_from(
    [[1.4, 2.5, 2.5, 0.65, 1.0], [1.0] * 5, [1.6, 2.5, 2.5, 1.7, 1.2], [2.5] * 5]
)


def mixed(rng: random.Random) -> Counts:
    """What comes between two responses: some kinds of text, in any proportion."""
    return Counts(*(rng.choice([0, rng.randint(1, 40), rng.randint(100, 900)]) for _ in KINDS))


def truth(counts: Counts, ratios: list[float]) -> int:
    return round(sum(count * ratio for count, ratio in zip(counts, ratios, strict=True)))


def taught(ratios: list[float], seed: int = 0, times: int = 80) -> Counter:
    rng, counter = random.Random(seed), Counter()
    for _ in range(times):
        counts = mixed(rng)
        counter.learn(counts, truth(counts, ratios))
    return counter


@given(ratios=RATIOS, seed=st.integers(0, 99))
def test_ratios_of_all_kinds_are_learned(ratios: list[float], seed: int) -> None:
    counter = taught(ratios, seed)
    rng = random.Random(seed + 1)
    for counts in (mixed(rng) for _ in range(20)):
        if counts.total > 200:
            assert counter.tokens(counts) == pytest.approx(truth(counts, ratios), rel=0.12)


@given(ratios=RATIOS, seed=st.integers(0, 99))
def test_the_safe_size_is_no_less_than_the_true_one_from_the_first_response_on(ratios: list[float], seed: int) -> None:
    ratios = [min(ratio, start) for ratio, start in zip(ratios, START, strict=True)]
    rng, counter = random.Random(seed), Counter()
    for _ in range(40):
        counts = mixed(rng)
        true = truth(counts, ratios)
        assert counter.estimate(counts).safe >= true
        counter.learn(counts, true)


def test_a_kind_that_was_never_seen_stays_pessimistic() -> None:
    counter = Counter()
    for _ in range(50):
        counter.learn(Counts(words=800), 800)
    for kind in ("digits", "other"):
        counts = Counts(**{kind: 1_000})
        assert counter.tokens(counts) == pytest.approx(getattr(PESSIMISTIC, kind) * 100, rel=0.01)
    assert counter.tokens(Counts(words=1_000)) == pytest.approx(1_000, rel=0.03)


def test_a_tokenizer_that_is_worse_than_expected_is_learned_and_widens_the_margin() -> None:
    counter = Counter()
    calm = counter.estimate(Counts(words=1_000)).margin / 1_600
    counter.learn(Counts(words=500), 800)
    counter.learn(Counts(words=500), 1_250)  # far more than expected
    estimate = counter.estimate(Counts(words=1_000))
    assert estimate.margin / estimate.tokens > calm
    for _ in range(20):
        counter.learn(Counts(words=500), 1_250)
    assert counter.tokens(Counts(words=1_000)) == pytest.approx(2_500, rel=0.05)


def test_a_refusal_doubles_the_margin_until_estimates_hold_again() -> None:
    counter = Counter()
    counter.learn(Counts(words=1_000), 1_600)
    known = Counts(words=100_000)
    doubled = [counter.estimate(known).margin]
    for _ in range(2):
        counter.double_margin()
        doubled.append(counter.estimate(known).margin)
    first, second = (later - sooner for sooner, later in pairwise(doubled))
    assert second == pytest.approx(2 * first, abs=2)
    for _ in range(40):
        counter.learn(Counts(words=1_000), 1_600)
    assert counter.estimate(known).margin < doubled[0]


def test_the_margin_comes_down_when_estimates_hold() -> None:
    counter = taught([1.3] * 5, times=5)
    early = counter.estimate(Counts(words=1_000))
    late = taught([1.3] * 5, times=100).estimate(Counts(words=1_000))
    assert late.margin < early.margin
    assert late.margin >= 0.02 * late.tokens


@pytest.mark.parametrize(
    ("counts", "true"), [(500, 0), (500, 99), (500, 3_001), (500, -7), (47, 60), (0, 0), (0, 1_000)]
)
def test_what_cannot_be_true_is_not_believed(counts: int, true: int) -> None:
    counter = Counter()
    before = counter.state()
    counter.learn(Counts(words=counts), true)
    assert counter.state() == before
    assert not counter.learned


@given(seed=st.integers(0, 99))
def test_the_same_state_gives_the_same_estimates_and_learns_on_alike(seed: int) -> None:
    counter = taught([1.2, 2.0, 1.5, 0.8, 1.0], seed, 10)
    again = Counter(json.loads(json.dumps(counter.state())))
    rng = random.Random(seed)
    for _ in range(5):
        counts = mixed(rng)
        assert again.estimate(counts) == counter.estimate(counts)
        for each in (counter, again):
            each.learn(counts, counts.total)
    assert again.state() == counter.state()


@given(counts=st.builds(Counts, *[st.integers(0, 10_000)] * 5), true=st.integers(0, 200_000), times=st.integers(1, 30))
def test_whatever_is_learned_ratios_stay_within_reason(counts: Counts, true: int, times: int) -> None:
    counter = Counter()
    for _ in range(times):
        counter.learn(counts, true)
    assert all(0.3 <= ratio <= 4.0 for ratio in counter.ratios)
    assert 0 <= counter.estimate(counts).tokens <= counter.estimate(counts).safe
