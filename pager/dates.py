"""Times that a question speaks of, in English or as 2026-05-03. Pure: the day it is asked on is handed in.

Of a day or a month without its year every year is meant from the first to the last that is asked for. What cannot be
read says nothing: "may" is a month where it has a capital or a word before it that months have.

    >>> spans("what did we do in May?", date(2026, 7, 1), range(2025, 2027))
    [(datetime.date(2025, 5, 1), datetime.date(2025, 6, 1)), (datetime.date(2026, 5, 1), datetime.date(2026, 6, 1))]
    >>> event("what was it like before the move?")
    ('before', 'move')
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

Span = tuple[date, date]  # half-open
DAY = timedelta(days=1)
_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "couple": 2}
_SHORT = r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_MONTH = rf"(?P<month>{'|'.join(_NAMES)}|(?:{_SHORT})\b\.?)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_FORMS = tuple(
    re.compile(rf"(?<![\w-]){form}(?!\w|-\d)", re.IGNORECASE)
    for form in (
        r"(?P<iso>\d{4}-\d\d-\d\d)",
        rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
        rf"{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?",
        rf"(?P<before>(?:in|of|since|until|by|last|this|during|early|mid|late)\s+)?{_MONTH}(?:,?\s+(?:of\s+)?{_YEAR})?",
        _YEAR,
        r"(?P<near>today|tonight|yesterday)",
        r"(?P<which>this|last|past|previous)\s+(?P<unit>week|weekend|month|year|night)",
        rf"(?P<last>(?:last|on|this)\s+)(?P<weekday>{'|'.join(_DAYS)})",
        rf"(?P<count>\d+|{'|'.join(_NUMBERS)})\s+(?:of\s+)?(?P<ago>day|week|month|year)s?\s+ago",
    )
)
_EVENT = re.compile(
    r"\b(?P<side>before|after|since)\s+(?:(?:the|my|our|your|his|her|their|its|\w+['\u2019]s)\s+)(?P<what>\w+(?:\s\w+)?)",
    re.IGNORECASE,
)


def spans(question: str, today: date, years: range) -> list[Span]:
    """Every span of days that the question names. What has been read as one is not read again as another."""
    found: list[Span] = []
    rest = question
    for form in _FORMS:
        for match in form.finditer(rest):
            if named := list(_read(match, today, years)):
                found += named
                rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]
    return found


def event(question: str) -> tuple[str, str] | None:
    """What the question asks for the time before, after or since, if that is no date."""
    match = _EVENT.search(question)
    return (match["side"].lower(), match["what"]) if match else None


def _read(match: re.Match[str], today: date, years: range) -> Iterator[Span]:
    said = match.groupdict()
    try:
        if said.get("iso"):
            yield _days(date.fromisoformat(said["iso"]))
        elif said.get("month"):
            yield from _of_month(match, years)
        elif said.get("year"):
            yield _year(int(said["year"]))
        else:
            yield _from_today(said, today)
    except (ValueError, OverflowError):
        return  # the 31st of June


def _of_month(match: re.Match[str], years: range) -> Iterator[Span]:
    said, name = match.groupdict(), match["month"]
    if name.lower() in ("may", "march") and name.islower() and not (said.get("before") or said.get("day")):
        return
    month = next(
        number for number, known in enumerate(_NAMES, start=1) if known.startswith(name.lower().strip(".")[:3])
    )
    for year in [int(said["year"])] if said.get("year") else years:
        if said.get("day"):
            if int(said["day"]) <= _length(year, month):  # 29 February, in some years
                yield _days(date(year, month, int(said["day"])))
        else:
            yield _days(date(year, month, 1), _length(year, month))


def _from_today(said: dict[str, str | None], today: date) -> Span:
    if near := said.get("near"):
        return _days(today - DAY if near.lower() == "yesterday" else today)
    if weekday := said.get("weekday"):
        back = (today.weekday() - _DAYS.index(weekday.lower())) % 7
        past = str(said["last"]).lower().startswith("last")
        return _days(today - (back or (7 if past else 0)) * DAY)
    if unit := said.get("ago"):
        count = str(said["count"]).lower()
        return _around(unit.lower(), _NUMBERS.get(count) or int(count), today)
    unit, back = str(said["unit"]).lower(), int(str(said["which"]).lower() != "this")
    if unit == "night":
        return _days(today - back * DAY)
    if unit == "weekend":  # its Saturday; a weekend that is not over is this one
        return _days(today - ((today.weekday() + 2) % 7 + 7 * (back and today.weekday() > 4)) * DAY, 2)
    return _around(unit, back, today)


def _around(unit: str, back: int, today: date) -> Span:
    """The day, the week, the month or the year so many before this one."""
    if unit == "day":
        return _days(today - back * DAY)
    if unit == "week":
        return _days(today - (today.weekday() + 7 * back) * DAY, 7)
    if unit == "year":
        return _year(today.year - back)
    month = today.year * 12 + today.month - 1 - back
    year, month = divmod(month, 12)
    return _days(date(year, month + 1, 1), _length(year, month + 1))


def _days(first: date, count: int = 1) -> Span:
    return first, first + count * DAY


def _year(year: int) -> Span:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _length(year: int, month: int) -> int:
    return (date(year + month // 12, month % 12 + 1, 1) - date(year, month, 1)).days
