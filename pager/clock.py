"""Time: a clock that is handed in, and how moments are read and written.

Inside, a moment is an aware `datetime`; in the store it is whole microseconds since 1970 in UTC.
A moment without a time zone is read in the clock's zone. A date alone means that whole day.

    >>> from datetime import timezone
    >>> span_start("2026-05-03", timezone.utc).isoformat()
    '2026-05-03T00:00:00+00:00'
    >>> span_end("2026-05-03", timezone.utc).isoformat()
    '2026-05-04T00:00:00+00:00'
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Protocol

from pager.errors import Refused

_MOMENT_FORMS = "a datetime, a date, or text such as 2026-05-03 or 2026-05-03T14:30+02:00"
EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
Moment = datetime | date | str


class Clock(Protocol):
    """Where `now` comes from; its zone is where dates without one are read."""

    def now(self) -> datetime: ...

    @property
    def zone(self) -> tzinfo: ...


class LocalZone(tzinfo):
    """The machine's zone with its rules for every date, not just today's offset."""

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return dt.replace(tzinfo=None).astimezone().utcoffset() if dt else None

    def dst(self, dt: datetime | None) -> timedelta | None:
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        return dt.replace(tzinfo=None).astimezone().tzname() if dt else None

    def fromutc(self, dt: datetime) -> datetime:
        return dt.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)


class SystemClock:
    """The machine's clock in the machine's zone."""

    zone: tzinfo = LocalZone()

    def now(self) -> datetime:
        # With the offset of this moment: reading it costs a fifth of asking `zone`, and everything that is kept asks.
        return datetime.now(UTC).astimezone()


def to_micros(moment: datetime) -> int:
    return (moment - EPOCH_START) // timedelta(microseconds=1)


def from_micros(micros: int, zone: tzinfo = UTC) -> datetime:
    return (EPOCH_START + timedelta(microseconds=micros)).astimezone(zone)


def read_moment(value: Moment, zone: tzinfo) -> datetime | date:
    """An aware datetime, or a date when no time of day was given."""
    if isinstance(value, str):
        text = value.strip()
        try:
            if len(text) == len("2026-05-03"):
                return date.fromisoformat(text)
            value = datetime.fromisoformat(text)
        except ValueError:
            raise Refused(f"{value!r} is not a moment; give {_MOMENT_FORMS}.") from None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=zone)
    if not isinstance(value, date):  # pyright: ignore[reportUnnecessaryIsInstance] -- from JSON anything may come
        raise Refused(f"{value!r} is not a moment; give {_MOMENT_FORMS}.")
    return value


def span_start(value: Moment, zone: tzinfo) -> datetime:
    """The first moment that `value` means: a day's beginning, or the moment itself."""
    moment = read_moment(value, zone)
    if isinstance(moment, datetime):
        return moment
    return datetime(moment.year, moment.month, moment.day, tzinfo=zone)


def span_end(value: Moment, zone: tzinfo) -> datetime:
    """The first moment after what `value` means: the next day's beginning, or the moment itself."""
    moment = read_moment(value, zone)
    if isinstance(moment, datetime):
        return moment
    try:
        return span_start(moment + timedelta(days=1), zone)
    except OverflowError:
        return span_start(moment, zone)
