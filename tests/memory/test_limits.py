"""Limits scale with the window; what does not fit is refused with its numbers."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager import Limits, Memory, RejectedError, WindowTooSmallError
from pager.limits import MIN_PART_TOKENS
from tests.support import TOOLS


@given(window=st.integers(1_000, 2_000_000))
def test_defaults_scale_with_the_window(window: int) -> None:
    limits = Limits.for_window(window)
    usable = limits.usable_tokens
    assert limits.max_output_tokens == min(8_000, window // 4)
    assert usable == window - limits.max_output_tokens
    assert limits.core_tokens == min(4_000, usable // 8)
    assert limits.max_part_tokens == min(8_000, usable // 8)
    assert limits.core_tokens + 2 * limits.max_part_tokens <= usable


@given(window=st.integers(1_000, 200_000), fixed=st.integers(0, 60_000))
def test_two_parts_fit_beside_a_full_core_or_it_is_refused(window: int, fixed: int) -> None:
    limits = Limits.for_window(window)
    try:
        fitted = limits.fitted(fixed)
    except WindowTooSmallError:
        assert fixed + limits.core_tokens + 2 * MIN_PART_TOKENS > limits.usable_tokens - 2
    else:
        assert fixed + fitted.core_tokens + 2 * fitted.max_part_tokens <= fitted.usable_tokens
        assert MIN_PART_TOKENS <= fitted.max_part_tokens <= limits.max_part_tokens
        assert fitted.core_tokens == limits.core_tokens


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"limit_tokens": None}, ["limit_tokens"]),
        ({"core_tokens": -1}, ["core_tokens"]),
        ({"max_part_tokens": 90_000_000}, ["max_part_tokens"]),
        ({"limit_tokens": 0}, ["0 tokens"]),
        ({"limit_tokens": -5}, ["-5 tokens"]),
        ({"limit_tokens": 3}, ["raise limit_tokens"]),
        ({"limit_tokens": 600}, ["max_part_tokens is 56", "64"]),
        ({"max_output_tokens": 60_000}, ["60000", "lower max_output_tokens"]),
        ({"max_output_tokens": 0}, ["0 for the reply"]),
        ({"max_part_tokens": 63}, ["63", "64"]),
        ({"evict_to": 0.9}, ["evict_to 0.9", "evict_at 0.85"]),
        ({"evict_to": 0}, ["evict_to 0"]),
        ({"evict_at": 1.1}, ["1.1"]),
        ({"notify_at": 0.95}, ["notify_at 0.95"]),
        ({"notify_at": -1}, ["notify_at -1"]),
        ({"evict_at": float("nan")}, ["evict_at is nan", "between 0 and 1"]),
        ({"notify_at": float("inf")}, ["notify_at is inf"]),
        ({"evict_to": float("-inf")}, ["evict_to is -inf"]),
        ({"evict_at": 10**400}, ["evict_at is 1000"]),
        ({"limit_tokens": 10**400}, ["limit_tokens is 1000"]),
    ],
)
def test_limits_that_make_no_sense_are_refused_with_their_values(arguments: Any, words: list[str]) -> None:
    with pytest.raises(RejectedError) as caught:
        Limits.for_window(**{"limit_tokens": 60_000, **arguments})
    for word in words:
        assert word in str(caught.value)


def test_limits_of_their_own_take_finite_shares_only() -> None:
    with pytest.raises(RejectedError, match="evict_to is nan; give a number between 0 and 1"):
        Limits(60_000, 8_000, 4_000, 4_000, evict_to=float("nan"))


def test_a_memory_that_does_not_fit_is_refused_at_once_with_all_numbers(tmp_path: Path) -> None:
    with pytest.raises(WindowTooSmallError) as caught:
        Memory.open(tmp_path, embedder=None, limits=Limits.for_window(4_000), instructions="word " * 2_500, tools=TOOLS)
    numbers = ("a full core (375)", "two parts (375 each)", "3000 usable", "4000 less 1000")
    for words in ("tools and instructions (", *numbers):
        assert words in str(caught.value)
    Memory.open(tmp_path, embedder=None, limits=Limits.for_window(4_000)).close()


def test_a_window_that_shrinks_lowers_the_parts_first(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=None, limits=Limits.for_window(8_000), instructions="word " * 2_500) as memory:
        fitted = memory.limits
        assert MIN_PART_TOKENS <= fitted.max_part_tokens < 750
        memory.append_user("word " * 400)
        assert "<spilled" in str(memory.request().messages)
