"""Times in a question, as a person says them."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.search.dates import event, spans

WEDNESDAY = date(2026, 7, 1)
YEARS = range(2025, 2027)
FIRST, LAST = "0001-01-01", "9999-12-30"


def read(question: str, years: range = YEARS) -> list[tuple[str, str]]:
    """Each span as its first and its last day."""
    return [(str(start), str(end - timedelta(days=1))) for start, end in spans(question, WEDNESDAY, years)]


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What was said on 2026-05-03?", "2026-05-03", "2026-05-03"),
        ("at 2024-02-13T09:30:00Z, or so", "2024-02-13", "2024-02-13"),
        ("in 2024-02", "2024-02-01", "2024-02-29"),
        ("on 8 May 2023", "2023-05-08", "2023-05-08"),
        ("on the 8th of May, 2023", "2023-05-08", "2023-05-08"),
        ("May 8, 2023 was fine", "2023-05-08", "2023-05-08"),
        ("during Sept. 2023", "2023-09-01", "2023-09-30"),
        ("in february  2024", "2024-02-01", "2024-02-29"),
        ("mid-May 2024", "2024-05-01", "2024-05-31"),
        ("by the autumn of 2023?", "2023-09-01", "2023-11-30"),
        ("last winter", "2025-12-01", "2026-02-28"),
        ("last summer", "2025-06-01", "2025-08-31"),
        ("this summer", "2026-06-01", "2026-08-31"),
        ("what happened in 2024?", "2024-01-01", "2024-12-31"),
        ("tonight?", "2026-07-01", "2026-07-01"),
        ("and yesterday", "2026-06-30", "2026-06-30"),
        ("last night", "2026-06-30", "2026-06-30"),
        ("the day before yesterday", "2026-06-29", "2026-06-29"),
        ("last Tuesday", "2026-06-30", "2026-06-30"),
        ("last wednesday", "2026-06-24", "2026-06-24"),
        ("on Wednesday", "2026-07-01", "2026-07-01"),
        ("on Thursday", "2026-06-25", "2026-06-25"),
        ("this week", "2026-06-29", "2026-07-05"),
        ("last month", "2026-06-01", "2026-06-30"),
        ("previous year", "2025-01-01", "2025-12-31"),
        ("in the last week", "2026-06-24", "2026-07-01"),
        ("over the last 48 hours", "2026-06-29", "2026-07-01"),
        ("over the past few weeks", "2026-06-10", "2026-07-01"),
        ("the last couple of months", "2026-04-30", "2026-07-01"),
        ("three days ago", "2026-06-28", "2026-06-28"),
        ("2 weeks ago", "2026-06-15", "2026-06-21"),
        ("a couple of months ago", "2026-05-01", "2026-05-31"),
        ("7 months ago", "2025-12-01", "2025-12-31"),
        ("a year ago", "2025-01-01", "2025-12-31"),
        ("2025-11-03 to 2025-11-07", "2025-11-03", "2025-11-07"),
        ("November 28 2025 - December 2 2025", "2025-11-28", "2025-12-02"),
        ("between 2024-03-03 and 2024-03-05", "2024-03-03", "2024-03-05"),
        ("from March to May 2024", "2024-03-01", "2024-05-31"),
        ("between 3 November 2025 and January", "2025-11-03", "2026-01-31"),
        ("from November to the end of February", "2025-11-01", "2026-02-28"),
        ("from 2023 until yesterday", "2023-01-01", "2026-06-30"),
        ("What was there before May?", FIRST, "2026-04-30"),
        ("before last May", FIRST, "2026-04-30"),
        ("before last week", FIRST, "2026-06-21"),
        ("before the 8th of May 2023", FIRST, "2023-05-07"),
        ("what was there before Friday?", FIRST, "2026-06-25"),
        ("until the end of May", FIRST, "2026-05-31"),
        ("up to the month of February", FIRST, "2026-02-28"),
        ("after November", "2025-12-01", LAST),
        ("after March 3rd", "2026-03-04", LAST),
        ("since 2024", "2024-01-01", LAST),
        ("since yesterday", "2026-06-30", LAST),
        ("since Monday", "2026-06-29", LAST),
    ],
)
def test_one_span(question: str, first: str, last: str) -> None:
    assert read(question, range(2024, 2027) if "2024" in question else YEARS) == [(first, last)]


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("again in the spring?", [("2025-03-01", "2025-05-31"), ("2026-03-01", "2026-05-31")]),
        ("in May?", [("2025-05-01", "2025-05-31"), ("2026-05-01", "2026-05-31")]),
        ("on 3 March", [("2025-03-03", "2025-03-03"), ("2026-03-03", "2026-03-03")]),
        ("between March and May", [("2025-03-01", "2025-05-31"), ("2026-03-01", "2026-05-31")]),
        ("on 8 May 2023 or in June 2024, or yesterday?",
         [("2023-05-08", "2023-05-08"), ("2024-06-01", "2024-06-30"), ("2026-06-30", "2026-06-30")]),
        ("In May 2023, or after June 2024?", [("2023-05-01", "2023-05-31"), ("2024-07-01", LAST)]),
        ("letters from May 2023 and June 2024", [("2023-05-01", "2023-05-31"), ("2024-06-01", "2024-06-30")]),
    ],
)  # fmt: skip
def test_several_spans(question: str, wanted: list[tuple[str, str]]) -> None:
    assert read(question) == wanted


def test_before_a_month_means_the_last_of_which_anything_is_stored() -> None:
    assert spans("before May", WEDNESDAY, YEARS, date(2025, 6, 1)) == [(date.min, date(2025, 5, 1))]


@pytest.mark.parametrize(
    "question",
    ["", "may I go?", "the march of time", "where to sit?", "in spring water", "room 2024b", "1 of 12", "20260503",
     "octopus", "marching", "2026-13-45", "3/2/2024", "3.2.2024", "on 13/02/2024", "9999999999999999999999 years ago",
     "on the 5th floor", "the last 99999999 years", "items 3-5 may be late", "the last 10 days of school",
     "before 0001-01-01", "after 9999-12-30"],
)  # fmt: skip
def test_no_time(question: str) -> None:
    assert read(question) == []


@given(
    st.text()
    | st.from_regex(
        r"(last|in|on|before|after|until|the past|between|\d+)? ?"
        r"(May|week|month|winter|2024|\d+|Tuesday|ago|\d+ years|2024 and 2025)( \d+)?"
    ),
    st.dates(),
)
def test_every_span_has_a_day_or_more(question: str, today: date) -> None:
    assert all(start < end for start, end in spans(question, today, range(max(1, today.year - 1), today.year + 1)))


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What did she like before the move?", ("before", "move")),
        ("since Dana's operation, what?", ("since", "operation")),
        ("AFTER MY KNEE SURGERY", ("after", "KNEE SURGERY")),
        ("before I moved to Porto", ("before", "moved to")),
        ("before 2020", None),
        ("before the 8th of May", None),
        ("the day after", None),
    ],
)
def test_an_event(question: str, wanted: tuple[str, str] | None) -> None:
    assert event(question) == wanted


def test_a_month_that_is_a_persons_name_needs_its_day_or_its_year() -> None:
    for question, found in {"What did June tell Jan in May?": 1, "June 2026": 1, "3 Jan": 1, "in June": 0}.items():
        assert len(spans(question, WEDNESDAY, range(2026, 2027), people={"june", "jan"})) == found
