"""Times that a question speaks of, in English or as 2026-05-03. Pure: the day it is asked on is handed in.

Of a day or a month without its year every year is meant from the first to the last that is asked for; but before it,
after it, since it and until it speak of the last one that has begun. What cannot be read says nothing: "may" is a month
where it has a capital or a word before it that months have, and 3/2/2024 is another day here than there. A month that
is somebody's name is one only with its day or its year. Seasons are those of the north, and are read where a word
before them or a year behind them says that they are no spring to sleep on.

    >>> spans("what did we do in May?", date(2026, 7, 1), range(2025, 2027))
    [(datetime.date(2025, 5, 1), datetime.date(2025, 6, 1)), (datetime.date(2026, 5, 1), datetime.date(2026, 6, 1))]
    >>> spans("and after 3.2.2024?", date(2026, 7, 1), range(2025, 2027))
    [(datetime.date(2024, 2, 4), datetime.date(9999, 12, 31))]
    >>> event("what was it like before the move?")
    ('before', 'move')
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import ceil

Span = tuple[date, date]  # half-open
DAY = timedelta(days=1)
LOOK_BACK = 80  # characters before a time that may say on which side of it
_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "couple": 2, "few": 3, "several": 4,
}  # fmt: skip
_LONGEST = {"hour": 1 / 24, "day": 1, "week": 7, "month": 31, "year": 366}  # days
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # the month in which each begins
_SHORT = r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_MONTH = rf"(?P<month>{'|'.join(_NAMES)}|(?:{_SHORT})\b\.?)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_TO, _LAST_DAY = r"(?:\s*[-\u2013]\s*|\s+(?:and|to|until|till|through)\s+(?:the\s+)?)", _DAY.replace("day", "last_day")
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_COUNT = rf"(?P<count>half\s+a|\d+|{'|'.join(_NUMBERS)})\s+(?:of\s+)?"
_WEEKDAY, _SEASON = "|".join(_DAYS), "|".join(_SEASONS)
# What may follow where it is a time by itself: there are spring water and a fifth string, too.
_ALONE = r"(?=\s*(?:$|[?!.,;:)])|\s+(?:about|and|at|did|do|or|to|we|what|when|where|who|with|you)\b)"
_LEADS = r"in|of|before|after|from|between|since|until|till|through|by|last|this|during|early|mid|late"
_BEHIND_A_SIDE = "(?:(?<=since )|(?<=before )|(?<=after )|(?<=until )|(?<=till ))"
_FORMS = tuple(
    re.compile(rf"(?<![\w-])(?<!/\d/)(?<!/\d\d/){form}(?!\w|-\d)", re.IGNORECASE)
    for form in (
        r"(?P<iso>\d{4}-\d\d-\d\d)(?:T\d\d:\d\d\S*)?",
        r"(?<!/)(?P<iso>(?:19|20)\d\d/\d\d?/\d\d?)(?!/)",
        r"(?P<iso_month>(?:19|20)\d\d-(?:0[1-9]|1[0-2]))",
        r"(?P<dotted>[0-3]?\d\.[01]?\d\.(?:19|20)\d\d)",
        rf"{_DAY}{_TO}{_LAST_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
        rf"{_MONTH}\s+{_DAY}{_TO}{_LAST_DAY}(?:,?\s+{_YEAR})?",
        rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
        rf"{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?",
        rf"(?P<lead>(?:{_LEADS})(?:\s+|-))?{_MONTH}(?:,?\s+(?:of\s+)?{_YEAR})?",
        rf"(?P<which>this|last|past|previous)\s+(?P<season>{_SEASON})",
        rf"(?P<season>{_SEASON}),?\s+(?:of\s+)?{_YEAR}",
        rf"(?P<lead>in\s+(?:the\s+)?(?:(?:early|mid|late)(?:\s+|-))?)(?P<season>{_SEASON}){_ALONE}",
        rf"(?P<lead>(?:during|since|before|after|until|till)\s+(?:the\s+)?)(?P<season>spring|summer|autumn|winter){_ALONE}",
        _YEAR,
        rf"(?:between|from)\s+(?P<from_day>{_WEEKDAY})\s+(?:and|to|until|till|through)\s+(?P<to_day>{_WEEKDAY})",
        rf"on\s+the\s+{_DAY}(?<=[a-z]){_ALONE}",
        r"(?P<near>today|tonight|this\s+(?:morning|afternoon|evening)|(?:the\s+)?day\s+before\s+yesterday|yesterday)",
        r"(?:in|during|over|within|for)\s+the\s+last\s+(?P<lately>day|week|month|year)(?!\s+of\b)",
        r"(?:the\s+)?past\s+(?P<lately>week|month|year)(?!\s+of\b)",
        r"(?P<which>this|last|past|previous|on\s+the|over\s+the|at\s+the)\s+(?P<unit>weekend)",
        r"(?P<which>this|last|past|previous)\s+(?P<unit>week|month|year|night)",
        rf"(?:(?P<last>(?:last|on|this)\s+)|{_BEHIND_A_SIDE})(?P<weekday>{_WEEKDAY})",
        rf"{_COUNT}(?P<ago>day|week|month|year)s?\s+ago",
        rf"(?:last|past|previous)\s+{_COUNT}(?P<lately>hour|day|week|month|year)s(?!\s+of\b)",
    )
)
# What stands before a time, and between two of them.
_ARTICLE = r"\s+(?:(?:the|this|last|in|early|mid|late|(?:day|week|month|year|start|beginning|middle|end)\s+of)\s+)*"
_SIDE = re.compile(
    rf"\b(?:(?P<one>day|week)\s+)?(?P<side>before|after|since|until|till|through|up\s+to){_ARTICLE}$", re.IGNORECASE
)
# After the trip in May: in May, or later.
_LOOSE_SIDE = re.compile(
    r"\b(?P<side>before|after|since)\s+(?:[\w'\u2019-]+\s+){1,4}(?:in|on|of|from|during)\s+(?:the\s+)?$", re.IGNORECASE
)
# The first time of the two is the \0.
_RANGE = re.compile(
    rf"\0\s*(?:[-\u2013]\s*|(?:to|until|till|through)\s+(?:the\s+)?)$"
    rf"|\bbetween{_ARTICLE}\0,?\s+and{_ARTICLE}$"
    rf"|\b(?:from|since){_ARTICLE}\0,?\s+(?:to|until|till|through){_ARTICLE}$",
    re.IGNORECASE,
)
_SECOND = re.compile(
    rf"\b(?:from|between)\s+(?:\S+\s+){{1,4}}(?:to|and|until|till|through){_ARTICLE}$", re.IGNORECASE
)  # "may" there is a month, too
_EVENT = re.compile(
    r"\b(?P<side>before|after|since)\s+"
    r"(?:the|my|our|your|his|her|their|its|i|we|you|he|she|they|it|\w+['\u2019]s)\s+"
    r"(?P<what>(?!\d)\w+(?:\s\w+)?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Time:
    """A time that a question names: where it does, and the days of it, oldest first."""

    start: int
    end: int
    days: list[Span]


def spans(
    question: str, today: date, years: range, newest: date | None = None, people: Container[str] = ()
) -> list[Span]:
    """Every span of days that the question speaks of. `newest` is the last day of which anything is known, if not
    today: the last May that has begun had begun by then. `people` are names in small letters: June, Jan."""
    found: list[Span] = []
    known = today if newest is None else newest
    times = _times(question, today, years, people)
    while times:
        first, *times = times
        before = question[max(0, first.start - LOOK_BACK) : first.start]
        if times and _RANGE.search(f"{before}\0{question[first.end : times[0].start]}"):
            found += _through(first.days, times.pop(0).days)
        elif side := _SIDE.search(before):
            found += _beside(side, _last_begun(first.days, known))
        elif side := _LOOSE_SIDE.search(before):
            start, end = _last_begun(first.days, known)
            found.append((date.min, end) if side["side"].lower() == "before" else (start, date.max))
        else:
            found += first.days
    return found


def _times(question: str, today: date, years: range, people: Container[str]) -> list[_Time]:
    """In their order. What has been read as one is not read again as another."""
    found: list[_Time] = []
    rest = question
    for form in _FORMS:
        for match in form.finditer(rest):
            if not _is_name(match, people) and (named := list(_read(match, today, years))):
                start = match.end("lead") if match.groupdict().get("lead") else match.start()
                found.append(_Time(start, match.end(), named))
                rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]
    return sorted(found, key=lambda time: time.start)


def _is_name(match: re.Match[str], people: Container[str]) -> bool:
    said = match.groupdict()
    month = said.get("month")
    return month is not None and month.lower() in people and not (said.get("day") or said.get("year"))


def _last_begun(days: Sequence[Span], known: date) -> Span:
    return next((span for span in reversed(days) if span[0] <= known), days[0])


def _beside(match: re.Match[str], span: Span) -> list[Span]:
    """What lies on that side of a span: all of it, or the day or the week that touches it."""
    start, end = span
    side, count = match["side"].lower(), {"day": 1, "week": 7}.get((match["one"] or "").lower())
    if side == "before":
        first = date.min if count is None else start - min(count * DAY, start - date.min)
        found = first, start
    elif side == "after":
        found = end, date.max if count is None else end + min(count * DAY, date.max - end)
    else:
        found = (start, date.max) if side == "since" else (date.min, end)
    return [found] if found[0] < found[1] else []


def _through(first: Sequence[Span], last: Sequence[Span]) -> list[Span]:
    """From one time to the other. Where only one has its year, the other has the nearest that fits."""
    pairs = [(max((a for a in first if a[0] <= b[0]), default=None), b) for b in last]
    if len(first) == 1:
        pairs = [pair for pair in pairs if pair[0]][:1]
    return [(a[0], max(a[1], b[1])) for a, b in pairs if a]


def event(question: str) -> tuple[str, str] | None:
    """What the question asks for the time before, after or since, if that is no date."""
    match = _EVENT.search(question)
    return (match["side"].lower(), match["what"]) if match else None


def _read(match: re.Match[str], today: date, years: range) -> Iterator[Span]:
    said = match.groupdict()
    try:
        if said.get("iso"):
            year, month, day = map(int, re.split("[-/]", said["iso"]))
            yield _days(date(year, month, day))
        elif month := said.get("iso_month"):
            first = date.fromisoformat(f"{month}-01")
            yield _days(first, _length(first.year, first.month))
        elif dotted := said.get("dotted"):
            day, month, year = map(int, dotted.split("."))
            yield _days(date(year, month, day))
        elif said.get("month"):
            yield from _of_month(match, years)
        elif said.get("season"):
            yield from _of_season(said, today, years)
        elif said.get("year"):
            yield _year(int(said["year"]))
        else:
            yield _from_today(said, today)
    except (ValueError, OverflowError):
        return  # the 31st of June


def _of_month(match: re.Match[str], years: range) -> Iterator[Span]:
    said, name = match.groupdict(), match["month"]
    is_day = said.get("day") and not (said.get("last_day") and not said.get("year"))  # 2-3 may come
    if name.lower() in ("may", "march") and name.islower() and not (said.get("lead") or is_day):
        before = match.string[max(0, match.start() - LOOK_BACK) : match.start()]
        if not _SECOND.search(before):
            return
    month = next(
        number for number, known in enumerate(_NAMES, start=1) if known.startswith(name.lower().strip(".")[:3])
    )
    for year in [int(said["year"])] if said.get("year") else years:
        if said.get("day"):
            first, last = int(said["day"]), int(said.get("last_day") or said["day"])
            if first <= last <= _length(year, month):  # 29 February, in some years
                yield _days(date(year, month, first), last - first + 1)
        else:
            yield _days(date(year, month, 1), _length(year, month))


def _of_season(said: dict[str, str | None], today: date, years: range) -> Iterator[Span]:
    """A winter is of the year in which it begins."""
    month = _SEASONS[str(said["season"]).lower()]

    def of(year: int) -> Span:
        last = date(year + (month + 2 > 12), (month + 1) % 12 + 1, 1)
        return date(year, month, 1), last + _length(last.year, last.month) * DAY

    if said.get("year"):
        yield of(int(str(said["year"])))
    elif which := said.get("which"):
        begun = [span for span in map(of, range(today.year - 2, today.year + 1)) if span[0] <= today]
        is_over = begun[-1][1] <= today
        yield begun[-1 if which.lower() == "this" or is_over else -2]
    else:
        yield from map(of, years)


def _from_today(said: dict[str, str | None], today: date) -> Span:
    if near := said.get("near"):
        back = 2 if "before" in near.lower() else int(near.lower() == "yesterday")
        return _days(today - back * DAY)
    if weekday := said.get("weekday"):
        back = _back_to(weekday, today)
        past = str(said["last"]).lower().startswith("last")
        return _days(today - (back or (7 if past else 0)) * DAY)
    if first := said.get("from_day"):
        end = today - _back_to(str(said["to_day"]), today) * DAY
        return end - _back_to(first, end) * DAY, end + DAY
    if day := said.get("day"):
        return _days(_last_day(int(day), today))
    if unit := said.get("ago") or said.get("lately"):
        count = " ".join((said.get("count") or "one").lower().split())
        half = (count, unit.lower()) == ("half a", "year")
        unit, number = ("month", 6) if half else (unit.lower(), _NUMBERS.get(count) or int(count))
        if said.get("ago"):
            return _around(unit, number, today)
        return today - ceil(number * _LONGEST[unit]) * DAY, today + DAY
    unit, back = str(said["unit"]).lower(), int(str(said["which"]).lower() != "this")
    if unit == "night":
        return _days(today - back * DAY)
    if unit == "weekend":  # its Saturday; a weekend that is not over is this one
        return _days(today - ((today.weekday() + 2) % 7 + 7 * (back and today.weekday() > 4)) * DAY, 2)
    return _around(unit, back, today)


def _back_to(weekday: str, today: date) -> int:
    return (today.weekday() - _DAYS.index(weekday.lower())) % 7


def _last_day(number: int, today: date) -> date:
    """The last day that was the 15th of its month; ValueError for the 32nd."""
    return max(day for day in (today - back * DAY for back in range(62)) if day.day == number)


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
