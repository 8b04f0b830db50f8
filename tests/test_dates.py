"""Times in a question, as a person says them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.dates import event, spans

WEDNESDAY = date(2026, 7, 1)
YEARS = range(2025, 2027)


def read(question: str, today: date = WEDNESDAY) -> list[tuple[str, str]]:
    """Each span as its first and its last day."""
    return [(str(start), str(end - timedelta(days=1))) for start, end in spans(question, today, YEARS)]


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What was said on 2026-05-03?", "2026-05-03", "2026-05-03"),
        ("on 8 May 2023", "2023-05-08", "2023-05-08"),
        ("on the 8th of May, 2023", "2023-05-08", "2023-05-08"),
        ("May 8, 2023 was fine", "2023-05-08", "2023-05-08"),
        ("during Sept. 2023", "2023-09-01", "2023-09-30"),
        ("in february 2024", "2024-02-01", "2024-02-29"),
        ("what happened in 2024?", "2024-01-01", "2024-12-31"),
        ("today", "2026-07-01", "2026-07-01"),
        ("tonight?", "2026-07-01", "2026-07-01"),
        ("and yesterday", "2026-06-30", "2026-06-30"),
        ("last night", "2026-06-30", "2026-06-30"),
        ("last Tuesday", "2026-06-30", "2026-06-30"),
        ("last wednesday", "2026-06-24", "2026-06-24"),
        ("on Wednesday", "2026-07-01", "2026-07-01"),
        ("on Thursday", "2026-06-25", "2026-06-25"),
        ("this week", "2026-06-29", "2026-07-05"),
        ("last week", "2026-06-22", "2026-06-28"),
        ("last weekend", "2026-06-27", "2026-06-28"),
        ("last month", "2026-06-01", "2026-06-30"),
        ("the past year", "2025-01-01", "2025-12-31"),
        ("three days ago", "2026-06-28", "2026-06-28"),
        ("2 weeks ago", "2026-06-15", "2026-06-21"),
        ("a couple of months ago", "2026-05-01", "2026-05-31"),
        ("7 months ago", "2025-12-01", "2025-12-31"),
        ("a year ago", "2025-01-01", "2025-12-31"),
    ],
)
def test_a_time_is_read_once(question: str, first: str, last: str) -> None:
    assert read(question) == [(first, last)]


def test_a_month_or_a_day_without_its_year_is_meant_in_every_year() -> None:
    assert read("in May?") == [("2025-05-01", "2025-05-31"), ("2026-05-01", "2026-05-31")]
    assert read("on 3 March") == [("2025-03-03", "2025-03-03"), ("2026-03-03", "2026-03-03")]


def test_each_time_in_a_question_is_read() -> None:
    assert read("Was it on 8 May 2023 or in June 2024, or yesterday?") == [
        ("2023-05-08", "2023-05-08"), ("2024-06-01", "2024-06-30"), ("2026-06-30", "2026-06-30"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "question",
    ["", "may I go?", "the march of time", "where to sit?", "room 2024b", "1 of 12", "20260503", "deck 5", "octopus",
     "marching", "2026-13-45", "a second ago", "9999999999999999999999 years ago"],
)  # fmt: skip
def test_what_is_no_time_says_nothing(question: str) -> None:
    assert read(question) == []


@pytest.mark.parametrize(("today", "first"), [("2026-07-04", "2026-06-27"), ("2026-07-05", "2026-06-27"),
                                              ("2026-07-06", "2026-07-04")])  # fmt: skip
def test_the_last_weekend_is_over(today: str, first: str) -> None:
    assert read("last weekend", date.fromisoformat(today))[0][0] == first


def test_the_31st_of_june_is_some_day_in_june() -> None:
    assert read("on 31 June 2025") == [("2025-06-01", "2025-06-30")]


@given(st.text() | st.from_regex(r"(last|in|on|\d+)? ?(May|week|month|2024|\d+|Tuesday|ago)( \d+)?"), st.dates())
def test_whatever_is_asked_spans_have_a_day_or_more(question: str, today: date) -> None:
    assert all(start < end for start, end in spans(question, today, range(max(1, today.year - 1), today.year + 1)))


def test_an_event_that_is_no_date() -> None:
    assert event("What did she like before the move?") == ("before", "move")
    assert event("since Dana's operation, what?") == ("since", "operation")
    assert event("AFTER MY KNEE SURGERY") == ("after", "KNEE SURGERY")
    assert event("before 2020") is None
    assert event("the day after") is None
