"""Times in a question, as a person says them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.search.dates import event, spans

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
        ("last year", "2025-01-01", "2025-12-31"),
        ("the past year", "2025-06-30", "2026-07-01"),
        ("in the last week", "2026-06-24", "2026-07-01"),
        ("in the past month", "2026-05-31", "2026-07-01"),
        ("over the last 48 hours", "2026-06-29", "2026-07-01"),
        ("this morning", "2026-07-01", "2026-07-01"),
        ("on the weekend", "2026-06-27", "2026-06-28"),
        ("between 3 and 7 November 2025", "2025-11-03", "2025-11-07"),
        ("between November 3 and 7, 2025", "2025-11-03", "2025-11-07"),
        ("from the 3rd to the 7th of November 2025", "2025-11-03", "2025-11-07"),
        ("Nov 3-7 2025", "2025-11-03", "2025-11-07"),
        ("2025-11-03 to 2025-11-07", "2025-11-03", "2025-11-07"),
        ("November 28 2025 - December 2 2025", "2025-11-28", "2025-12-02"),
        ("on 2025/11/05", "2025-11-05", "2025-11-05"),
        ("three days ago", "2026-06-28", "2026-06-28"),
        ("2 weeks ago", "2026-06-15", "2026-06-21"),
        ("a couple of months ago", "2026-05-01", "2026-05-31"),
        ("7 months ago", "2025-12-01", "2025-12-31"),
        ("a year ago", "2025-01-01", "2025-12-31"),
        ("half a year ago", "2026-01-01", "2026-01-31"),
        ("ten days ago", "2026-06-21", "2026-06-21"),
        ("in 2024-02", "2024-02-01", "2024-02-29"),
        ("at 2024-02-13T09:30:00Z, or so", "2024-02-13", "2024-02-13"),
        ("mid-May 2024", "2024-05-01", "2024-05-31"),
        ("on 3.2.2024 or so", "2024-02-03", "2024-02-03"),
        ("It was on 13.02.2024.", "2024-02-13", "2024-02-13"),
        ("the day before yesterday", "2026-06-29", "2026-06-29"),
        ("in the last 3 days", "2026-06-28", "2026-07-01"),
        ("over the past few weeks", "2026-06-10", "2026-07-01"),
        ("the last couple of months", "2026-04-30", "2026-07-01"),
        ("a few days ago", "2026-06-28", "2026-06-28"),
        ("last summer", "2025-06-01", "2025-08-31"),
        ("this summer", "2026-06-01", "2026-08-31"),
        ("last spring", "2026-03-01", "2026-05-31"),
        ("this autumn", "2025-09-01", "2025-11-30"),
        ("last winter", "2025-12-01", "2026-02-28"),
        ("in the winter of 2023", "2023-12-01", "2024-02-29"),
        ("Summer 2024 was fine", "2024-06-01", "2024-08-31"),
        ("between Monday and Wednesday", "2026-06-29", "2026-07-01"),
        ("from Thursday to Tuesday", "2026-06-25", "2026-06-30"),
        ("on the 15th", "2026-06-15", "2026-06-15"),
        ("on the 31st, or so", "2026-05-31", "2026-05-31"),
        ("on the 1st?", "2026-07-01", "2026-07-01"),
    ],
)
def test_a_time_is_read_once(question: str, first: str, last: str) -> None:
    assert read(question) == [(first, last)]


def test_a_month_or_a_day_without_its_year_is_meant_in_every_year() -> None:
    assert read("in May?") == [("2025-05-01", "2025-05-31"), ("2026-05-01", "2026-05-31")]
    assert read("on 3 March") == [("2025-03-03", "2025-03-03"), ("2026-03-03", "2026-03-03")]


ALWAYS = ("0001-01-01", "9999-12-30")


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What was there before May?", ALWAYS[0], "2026-04-30"),
        ("before may", ALWAYS[0], "2026-04-30"),
        ("before last May", ALWAYS[0], "2026-04-30"),
        ("after April", "2026-05-01", ALWAYS[1]),
        ("after November", "2025-12-01", ALWAYS[1]),
        ("since March", "2026-03-01", ALWAYS[1]),
        ("until February", ALWAYS[0], "2026-02-28"),
        ("up to the month of February", ALWAYS[0], "2026-02-28"),
        ("before 2024-02-01", ALWAYS[0], "2024-01-31"),
        ("before the 8th of May 2023", ALWAYS[0], "2023-05-07"),
        ("after March 3rd", "2026-03-04", ALWAYS[1]),
        ("after 3.2.2024", "2024-02-04", ALWAYS[1]),
        ("since 2024", "2024-01-01", ALWAYS[1]),
        ("before last week", ALWAYS[0], "2026-06-21"),
        ("since yesterday", "2026-06-30", ALWAYS[1]),
        ("since Monday", "2026-06-29", ALWAYS[1]),
        ("what was there before Friday?", ALWAYS[0], "2026-06-25"),
        ("until the end of May", ALWAYS[0], "2026-05-31"),
        ("the day before 2024-02-01", "2024-01-31", "2024-01-31"),
        ("the week after 2024-02-01", "2024-02-02", "2024-02-08"),
        ("between 2024-03-03 and 2024-03-05", "2024-03-03", "2024-03-05"),
        ("from March to May 2024", "2024-03-01", "2024-05-31"),
        ("between 3 November 2025 and January", "2025-11-03", "2026-01-31"),
        ("from 2023 until yesterday", "2023-01-01", "2026-06-30"),
        ("What did she do after her trip in May 2024?", "2024-05-01", ALWAYS[1]),
        ("before the long walk on 2024-02-01", ALWAYS[0], "2024-02-01"),
        ("since last summer", "2025-06-01", ALWAYS[1]),
        ("before the summer", ALWAYS[0], "2026-05-31"),
        ("after the early spring of 2024", "2024-06-01", ALWAYS[1]),
    ],
)
def test_what_stands_before_a_time_says_on_which_side_of_it(question: str, first: str, last: str) -> None:
    years = range(2024, 2027) if "2024" in question else YEARS
    found = spans(question, WEDNESDAY, years)
    assert [(str(start), str(end - timedelta(days=1))) for start, end in found] == [(first, last)]


@pytest.mark.parametrize("question", ["from March to May", "between March and May", "between march and may"])
def test_from_one_time_to_another_in_every_year(question: str) -> None:
    assert read(question) == [("2025-03-01", "2025-05-31"), ("2026-03-01", "2026-05-31")]
    assert read("between March 3 and March 5") == [("2025-03-03", "2025-03-05"), ("2026-03-03", "2026-03-05")]
    assert read("from November to February") == [("2025-11-01", "2026-02-28")]


def test_the_last_one_is_the_last_that_anything_is_known_of() -> None:
    assert spans("before May", WEDNESDAY, YEARS, date(2025, 6, 1)) == [(date.min, date(2025, 5, 1))]


def test_each_time_has_its_own_side() -> None:
    assert read("In May 2023, or after June 2024?") == [("2023-05-01", "2023-05-31"), ("2024-07-01", ALWAYS[1])]
    for question in ("in May 2023 and June 2024", "the letters from May 2023 and June 2024"):
        assert read(question) == [("2023-05-01", "2023-05-31"), ("2024-06-01", "2024-06-30")]


@pytest.mark.parametrize("question", ["before 0001-01-01", "after 9999-12-30", "the day before 0001-01-01"])
def test_beyond_the_calendar_is_nothing(question: str) -> None:
    assert read(question) == []


def test_each_time_in_a_question_is_read() -> None:
    assert read("Was it on 8 May 2023 or in June 2024, or yesterday?") == [
        ("2023-05-08", "2023-05-08"), ("2024-06-01", "2024-06-30"), ("2026-06-30", "2026-06-30"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "question",
    ["", "may I go?", "the march of time", "where to sit?", "room 2024b", "1 of 12", "20260503", "deck 5", "octopus",
     "marching", "2026-13-45", "a second ago", "3/2/2024", "on 13/02/2024",
     "31.2.24", "9999999999999999999999 years ago", "the last 99999999 years", "who will fall?", "spring water",
     "on the 5th floor", "on the 32nd", "the 15th", "on the 21st birthday", "items 3-5 may be late", "pages 3-7 march",
     "an error in spring boot", "a brand of winter tyres", "the daughter of Summer", "after the fall", "half past day",
     "the last 10 days of school"],
)  # fmt: skip
def test_what_is_no_time_says_nothing(question: str) -> None:
    assert read(question) == []


@pytest.mark.parametrize(("today", "first"), [("2026-07-04", "2026-06-27"), ("2026-07-05", "2026-06-27"),
                                              ("2026-07-06", "2026-07-04")])  # fmt: skip
def test_the_last_weekend_is_over(today: str, first: str) -> None:
    assert read("last weekend", date.fromisoformat(today))[0][0] == first


def test_the_31st_of_june_is_some_day_in_june() -> None:
    assert read("on 31 June 2025") == [("2025-06-01", "2025-06-30")]


@given(
    st.text()
    | st.from_regex(
        r"(last|in|on|before|after|until|the day before|the past|between|\d+)? ?"
        r"(May|week|month|2024|\d+|Tuesday|ago|summer|winter|the \d\dth|\d+ years|Friday and Monday)( \d+)?"
    ),
    st.dates(),
)
def test_whatever_is_asked_spans_have_a_day_or_more(question: str, today: date) -> None:
    assert all(start < end for start, end in spans(question, today, range(max(1, today.year - 1), today.year + 1)))


def test_an_event_that_is_no_date() -> None:
    assert event("What did she like before the move?") == ("before", "move")
    assert event("since Dana's operation, what?") == ("since", "operation")
    assert event("AFTER MY KNEE SURGERY") == ("after", "KNEE SURGERY")
    assert event("before I moved to Porto") == ("before", "moved to")
    assert event("before 2020") is None
    assert event("before the 8th of May") is None
    assert event("the day after") is None


def test_a_month_that_is_somebodys_name_needs_its_day_or_its_year() -> None:
    people = {"june", "jan"}
    assert spans("What did June tell Jan in May?", WEDNESDAY, range(2026, 2027), people=people) == spans(
        "in May", WEDNESDAY, range(2026, 2027)
    )
    assert spans("June 2026", WEDNESDAY, YEARS, people=people) == spans("June 2026", WEDNESDAY, YEARS) != []
    assert spans("3 Jan", WEDNESDAY, YEARS, people=people) == spans("3 Jan", WEDNESDAY, YEARS) != []
