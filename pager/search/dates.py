"""Read the times that an English question names. Pure: the day on which it is asked is an argument.

These forms are read: ISO dates and months, a day with its month, a month, a season of the north, a year (each with or
without what is larger), today and yesterday, this and last week, month, season and year, "three weeks ago", "the last 3
days", "on Friday" and "last Friday"; each alone, as a range ("from March to May 2024", "between ..."), or behind
before, after, since or until. Anything else says nothing.

A day or month without a year means that of every year in `years`. Behind before, after, since or until it means the
last one that has begun. "may" and "march" are months with a capital letter, a day, or a word such as "in" before them.

    >>> spans("what did we do in May?", date(2026, 7, 1), range(2025, 2027))
    [(datetime.date(2025, 5, 1), datetime.date(2025, 6, 1)), (datetime.date(2026, 5, 1), datetime.date(2026, 6, 1))]
    >>> spans("and after 2024-02-03?", date(2026, 7, 1), range(2025, 2027))
    [(datetime.date(2024, 2, 4), datetime.date(9999, 12, 31))]
    >>> event("what was it like before the move?")
    ('before', 'move')
"""

import re
from collections.abc import Container, Iterator, Sequence
from datetime import date, timedelta
from math import ceil
from typing import NamedTuple

Span = tuple[date, date]  # half-open
DAY = timedelta(days=1)
MAX_QUESTION_CHARS = 2000  # read of a question: each time in it is looked for in what stands before
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "couple": 2, "few": 3, "several": 4,
}  # fmt: skip
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # the month in which each begins
_LONGEST_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 31, "year": 366}
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_COUNT = rf"(?P<count>\d+|(?:a )?(?:{'|'.join(_NUMBERS)})) (?:of )?"
_SEASON = rf"(?P<season>{'|'.join(_SEASONS)})"
# Behind it the season is a time by itself: there are spring water and a winter coat, too.
_ALONE = r"(?= ?(?:$|[?!.,;:)])| (?:about|and|at|did|do|or|to|we|what|when|where|who|with|you)\b)"
_LEADS = "in|of|before|after|from|between|since|until|till|through|by|last|this|during|early|mid|late"
_FORMS = tuple(
    re.compile(rf"(?<![\w/.-]){form}(?!\w|[/-]\d)", re.IGNORECASE)
    for form in (
        r"(?P<iso>\d{4}-\d\d-\d\d)(?:T\d\d:\d\d\S*)?",
        r"(?P<iso_month>(?:19|20)\d\d-(?:0[1-9]|1[0-2]))",
        rf"{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR})?",
        rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
        rf"(?P<lead>(?:{_LEADS})[ -])?{_MONTH}(?:,? (?:of )?{_YEAR})?",
        rf"{_SEASON},? (?:of )?{_YEAR}",
        rf"(?P<which>this|last|past|previous) {_SEASON}",
        rf"(?P<lead>(?:in|during|since|before|after|until|till) (?:the )?(?:(?:early|mid|late)[ -])?){_SEASON}{_ALONE}",
        _YEAR,
        r"(?P<near>today|tonight|yesterday|last night|(?:the )?day before yesterday)",
        r"(?:in|during|over|within|for) the (?:last|past) (?P<lately>week|month|year)(?! of\b)",
        r"(?P<which>this|last|past|previous) (?P<unit>week|month|year)",
        rf"(?P<on>last |on |this |(?<=since )|(?<=before )|(?<=after )|(?<=until ))(?P<weekday>{'|'.join(_WEEKDAYS)})",
        rf"{_COUNT}(?P<ago>day|week|month|year)s? ago",
        rf"(?:last|past|previous) {_COUNT}(?P<lately>hour|day|week|month|year)s(?! of\b)",
    )
)
# What may stand between a preposition and a time.
_ARTICLES = r"(?:(?:the|this|last|in|early|mid|late|(?:day|week|month|year|start|beginning|middle|end) of) )*"
_SIDE = re.compile(rf"\b(?P<side>before|after|since|until|till|through|up to) {_ARTICLES}$", re.IGNORECASE)
_BETWEEN_TIMES = re.compile(  # \0 stands for the first of two times
    rf"\0(?: ?[-\u2013] ?|,? (?:to|until|till|through) {_ARTICLES})$|\bbetween {_ARTICLES}\0,? and {_ARTICLES}$",
    re.IGNORECASE,
)
_EVENT = re.compile(
    r"\b(?P<side>before|after|since) "
    r"(?:the|my|our|your|his|her|their|its|i|we|you|he|she|they|it|\w+['\u2019]s) "
    r"(?P<what>(?!\d)\w+(?: \w+)?)",
    re.IGNORECASE,
)


class _Time(NamedTuple):
    """A time that a question names: its place in the question, and the spans it may mean, oldest first."""

    start: int
    end: int
    spans: list[Span]


def spans(
    question: str, today: date, years: range, newest: date | None = None, people: Container[str] = ()
) -> list[Span]:
    """Return the spans that a question names. A month that is one of `people` (June) needs a day or a year."""
    found: list[Span] = []
    question = " ".join(question[:MAX_QUESTION_CHARS].split())
    times = _times(question, today, years, people)
    while times:
        first, *times = times
        before = question[: first.start]
        if times and _BETWEEN_TIMES.search(f"{before}\0{question[first.end : times[0].start]}"):
            found += _through(first.spans, times.pop(0).spans)
        elif side := _SIDE.search(before):
            last_day = today if newest is None else newest
            begun = next((span for span in reversed(first.spans) if span[0] <= last_day), first.spans[0])
            open_spans = {"before": (date.min, begun[0]), "after": (begun[1], date.max), "since": (begun[0], date.max)}
            start, end = open_spans.get(side["side"].lower(), (date.min, begun[1]))
            found += [(start, end)] if start < end else []
        else:
            found += first.spans
    return found


def event(question: str) -> tuple[str, str] | None:
    """Return the side and the words of an event: ("before", "move"); None if a question asks for no such time."""
    match = _EVENT.search(" ".join(question[:MAX_QUESTION_CHARS].split()))
    return (match["side"].lower(), match["what"]) if match else None


def _times(question: str, today: date, years: range, people: Container[str]) -> list[_Time]:
    found: list[_Time] = []
    rest = question
    for form in _FORMS:
        for match in form.finditer(rest):
            groups = match.groupdict()
            month = groups.get("month")
            if month and month.lower() in people and not (groups.get("day") or groups.get("year")):
                continue
            if read := list(_read(match, today, years)):
                start = match.end("lead") if groups.get("lead") else match.start()
                found.append(_Time(start, match.end(), read))
                rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]
    return sorted(found, key=lambda time: time.start)


def _through(first: Sequence[Span], last: Sequence[Span]) -> list[Span]:
    """From one time to another. Where only one of them has its year, the other is of the nearest that fits."""
    pairs = [(max((a for a in first if a[0] <= b[0]), default=None), b) for b in last]
    if len(first) == 1:
        pairs = [pair for pair in pairs if pair[0]][:1]
    return [(a[0], max(a[1], b[1])) for a, b in pairs if a]


def _read(match: re.Match[str], today: date, years: range) -> Iterator[Span]:
    groups = match.groupdict()
    try:
        if day := groups.get("iso"):
            yield _days(date.fromisoformat(day))
        elif month := groups.get("iso_month"):
            yield _month(*map(int, month.split("-")))
        elif groups.get("month"):
            yield from _of_month(match, years)
        elif season := groups.get("season"):
            yield from _of_season(_SEASONS[season.lower()], groups, today, years)
        elif year := groups.get("year"):
            yield _year(int(year))
        else:
            yield _from_today({name: text.lower() for name, text in groups.items() if text is not None}, today)
    except (ValueError, OverflowError):
        return  # the 31st of June


def _of_month(match: re.Match[str], years: range) -> Iterator[Span]:
    groups, name = match.groupdict(), match["month"]
    if name in ("may", "march") and not (groups.get("lead") or groups.get("day")):
        return
    month = next(number for number, each in enumerate(_MONTHS, start=1) if each.startswith(name.lower()[:3]))
    for year in [int(groups["year"])] if groups.get("year") else years:
        start, end = _month(year, month)
        if not groups.get("day"):
            yield start, end
        elif 1 <= (day := int(groups["day"])) <= (end - start).days:  # 29 February, in some years
            yield _days(date(year, month, day))


def _of_season(month: int, groups: dict[str, str | None], today: date, years: range) -> Iterator[Span]:
    """Yield three months from this one on. A winter is of the year in which it begins."""
    if which := groups.get("which"):
        years = range(today.year - 2, today.year + 1)
    elif year := groups.get("year"):
        years = range(int(year), int(year) + 1)
    found = [(date(year, month, 1), _month(year + month // 12, (month + 1) % 12 + 1)[1]) for year in years]
    if which:
        *_, before, begun = [span for span in found if span[0] <= today]
        found = [begun if which.lower() == "this" or begun[1] <= today else before]
    yield from found


def _from_today(groups: dict[str, str], today: date) -> Span:
    if near := groups.get("near"):
        return _days(today - {"today": 0, "tonight": 0, "yesterday": 1, "last night": 1}.get(near, 2) * DAY)
    if weekday := groups.get("weekday"):
        back = (today.weekday() - _WEEKDAYS.index(weekday)) % 7
        return _days(today - (back or 7 * (groups["on"] == "last ")) * DAY)
    if unit := groups.get("unit"):
        return _calendar_span(unit, int(groups["which"] != "this"), today)
    word = groups.get("count", "one").removeprefix("a ")
    count = _NUMBERS.get(word) or int(word)
    if unit := groups.get("ago"):
        return _calendar_span(unit, count, today)
    return today - ceil(count * _LONGEST_DAYS[groups["lately"]]) * DAY, today + DAY


def _calendar_span(unit: str, back: int, today: date) -> Span:
    if unit == "day":
        return _days(today - back * DAY)
    if unit == "week":
        return _days(today - (today.weekday() + 7 * back) * DAY, 7)
    if unit == "year":
        return _year(today.year - back)
    year, month = divmod(today.year * 12 + today.month - 1 - back, 12)
    return _month(year, month + 1)


def _days(first: date, count: int = 1) -> Span:
    return first, first + count * DAY


def _month(year: int, month: int) -> Span:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _year(year: int) -> Span:
    return date(year, 1, 1), date(year + 1, 1, 1)
