"""Time: a clock that is handed in, and how moments are read and written.

Inside, a moment is an aware `datetime`; in the store it is whole microseconds since 1970 in UTC.
A moment without a time zone is read in the clock's zone. A date alone means that whole day.

    >>> from datetime import timezone
    >>> span_start("2026-05-03", timezone.utc).isoformat()
    '2026-05-03T00:00:00+00:00'
    >>> span_end("2026-05-03", timezone.utc).isoformat()
    '2026-05-04T00:00:00+00:00'
"""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Protocol, runtime_checkable

from pager.errors import RejectedError, brief

FIRST, LAST = date(1, 1, 2), date(9999, 12, 30)  # a moment between them exists in every zone
_MOMENT_FORMS = (
    f"a datetime, a date, or text such as 2026-05-03 or 2026-05-03T14:30+02:00, from {FIRST} to {LAST} in UTC"
)
_DURATION = re.compile(r"([0-9]{1,6})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
LONGEST = timedelta(days=36_500)  # of a span of time that is read
EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
Moment = datetime | date | str


@runtime_checkable
class Clock(Protocol):
    """The source of the present moment. Dates without a zone are read in its zone."""

    def now(self) -> datetime:
        """Return the present moment, with a zone."""
        ...

    @property
    def zone(self) -> tzinfo:
        """Return the zone of dates that name none."""
        ...


class LocalZone(tzinfo):
    """The machine's zone with its rules for every date, not just today's offset."""

    def utcoffset(self, dt: datetime | None) -> timedelta | None:  # noqa: D102 - of tzinfo
        try:
            return dt.replace(tzinfo=None).astimezone().utcoffset() if dt else None
        except (OverflowError, ValueError):
            return timedelta(0)  # at the very ends of the calendar

    def dst(self, dt: datetime | None) -> timedelta | None:  # noqa: D102 - of tzinfo
        return None

    def tzname(self, dt: datetime | None) -> str | None:  # noqa: D102 - of tzinfo
        return dt.replace(tzinfo=None).astimezone().tzname() if dt else None

    def fromutc(self, dt: datetime) -> datetime:  # noqa: D102 - of tzinfo
        return dt.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)


class SystemClock:
    """The machine's clock in the machine's zone."""

    zone: tzinfo = LocalZone()

    def now(self) -> datetime:
        """Return the present moment in the machine's zone."""
        # With the offset of this moment: reading it costs a fifth of asking `zone`, and all that is stored asks.
        return datetime.now(UTC).astimezone()


def format_minute(moment: datetime) -> str:
    """Return a moment to the minute, as people and models read it."""
    return moment.strftime("%Y-%m-%d %H:%M")


def to_micros(moment: datetime) -> int:
    """Return a moment as microseconds since 1970."""
    return (moment - EPOCH_START) // timedelta(microseconds=1)


def from_micros(micros: int, zone: tzinfo = UTC) -> datetime:
    """Return the moment of so many microseconds since 1970."""
    try:
        return (EPOCH_START + timedelta(microseconds=micros)).astimezone(zone)
    except (OverflowError, ValueError):  # stored before `read_moment` had its limits: the nearest that exists
        return datetime.combine(FIRST if micros < 0 else LAST, time(), UTC).astimezone(zone)


def read_moment(value: Moment, zone: tzinfo) -> datetime | date:
    """Return an aware datetime, or a date if no time of day was given."""
    if isinstance(value, str):
        moment = _from_text(value.strip())
    else:
        moment = value if isinstance(value, date) else None  # pyright: ignore[reportUnnecessaryIsInstance] -- from JSON
    if isinstance(moment, datetime) and moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    if moment is None or not _fits_every_zone(moment, zone):
        raise RejectedError(f"{brief(value)} is not a moment; give {_MOMENT_FORMS}.")
    return moment


def _from_text(text: str) -> datetime | date | None:
    for read in (date.fromisoformat, datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _fits_every_zone(moment: datetime | date, zone: tzinfo) -> bool:
    try:
        moment = moment if isinstance(moment, datetime) else datetime.combine(moment, time(), zone)
        return FIRST <= moment.astimezone(UTC).date() <= LAST
    except (OverflowError, ValueError):
        return False


def span_start(value: Moment, zone: tzinfo) -> datetime:
    """Return the first moment that `value` means: a day's beginning, or the moment itself."""
    moment = read_moment(value, zone)
    return moment if isinstance(moment, datetime) else datetime.combine(moment, time(), zone)


def span_end(value: Moment, zone: tzinfo) -> datetime:
    """Return the first moment after what `value` means: the next day's beginning, or the moment itself."""
    moment = read_moment(value, zone)
    return moment if isinstance(moment, datetime) else datetime.combine(moment + timedelta(days=1), time(), zone)


def span_micros(after: Moment | None, before: Moment | None, zone: tzinfo) -> tuple[int | None, int | None]:
    """Return the half-open span from `after` to `before`, for the store; None where it has no limit."""
    start = None if after is None else to_micros(span_start(after, zone))
    return start, None if before is None else to_micros(span_end(before, zone))


def read_duration(value: str) -> timedelta:
    """Return a span of time, such as 90d. Raises RejectedError for none, and for what is longer than a century."""
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None  # pyright: ignore[reportUnnecessaryIsInstance] -- from JSON
    span = int(found[1]) * _UNITS[found[2]] if found else timedelta()
    if not timedelta() < span <= LONGEST:
        way = f"give a whole number of hours, days or weeks, such as 12h, 90d or 8w, at most {LONGEST.days}d"
        raise RejectedError(f"{brief(value)} is not a span of time; {way}.")
    return span


def moment_of(at: Moment | None, clock: Clock) -> int:
    """Return when something was said, for the store; now if that is not given."""
    return to_micros(clock.now() if at is None else span_start(at, clock.zone))
