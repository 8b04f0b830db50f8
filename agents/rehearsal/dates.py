"""Dates in English sentences, as far as the rehearsal understands them. Pure: `today` is handed in.

>>> find("where did I live in March?", date(2026, 5, 3))
Span(first=datetime.date(2026, 3, 1), last=datetime.date(2026, 3, 31))
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple

_MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
_MONTHS = _MONTH.split("|")
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

ISO = r"\d{4}-\d{2}-\d{2}"
DAY_FIRST = rf"\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})(?:,? \d{{4}})?"
MONTH_FIRST = rf"(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?(?!\d)"
MONTH = rf"(?:{_MONTH})(?: \d{{4}})?(?! \d)"
DATE = rf"(?:{ISO}|{DAY_FIRST}|{MONTH_FIRST}|{MONTH}|(?:19|20)\d{{2}}(?![\d-]))"

_IN_TEXT = re.compile(
    rf"\b(?:(?P<day>{ISO}|{DAY_FIRST}|{MONTH_FIRST})"
    rf"|(?:in|during|since|last|until|till|before|by|from|of) (?P<span>{MONTH}|(?:19|20)\d{{2}}(?![\d-]))"
    r"|(?P<count>\d{1,3}|an?|one|two|three) (?P<unit>day|week|month|year)s? ago"
    r"|(?P<last>yesterday|last week|last month|last year))\b",
    re.IGNORECASE,
)


class Span(NamedTuple):
    """The days that a date means, both ends included."""

    first: date
    last: date

    @property
    def middle(self) -> date:
        return self.first + (self.last - self.first) // 2


def find(text: str, today: date) -> Span | None:
    """The first date that a sentence names."""
    found = _IN_TEXT.search(text)
    if found is None:
        return None
    named = found["day"] or found["span"]
    if named:
        return read(named, today)
    if found["last"]:
        word = found["last"].lower()
        days = 1 if word == "yesterday" else _UNIT_DAYS[word.removeprefix("last ")]
    else:
        count = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3}.get(found["count"].lower())
        days = (count or int(found["count"])) * _UNIT_DAYS[found["unit"].lower()]
    day = today - timedelta(days=days)
    return Span(day, day)


def read(text: str, today: date) -> Span | None:
    """One date, as `DATE` recognises it. A month or a day without a year is the last one that has begun."""
    try:
        return _read(text.lower(), today)
    except ValueError:  # 31 February
        return None


def _read(text: str, today: date) -> Span:
    if re.fullmatch(ISO, text):
        day = date.fromisoformat(text)
        return Span(day, day)
    if re.fullmatch(r"\d{4}", text):
        return Span(date(int(text), 1, 1), date(int(text), 12, 31))
    month = next(number for number, name in enumerate(_MONTHS, start=1) if name in text)
    numbers = [int(digits) for digits in re.findall(r"\d+", text)]
    days = [number for number in numbers if number < 100]
    years = [number for number in numbers if number >= 100]
    begin = date(years[0] if years else today.year, month, days[0] if days else 1)
    if not years and begin > today:
        begin = begin.replace(year=begin.year - 1)
    if days:
        return Span(begin, begin)
    after = date(begin.year + month // 12, month % 12 + 1, 1)
    return Span(begin, after - timedelta(days=1))
