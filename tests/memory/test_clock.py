"""Moments: how they are read, and what a day is."""

import time
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager import RejectedError, SystemClock
from pager.clock import LocalZone, from_micros, read_moment, span_end, span_start, to_micros

BERLIN = ZoneInfo("Europe/Berlin")
PLUS9 = timezone(timedelta(hours=9))


@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.sampled_from([UTC, BERLIN, PLUS9]))  # noqa: DTZ001
)
def test_a_moment_survives_the_store_to_the_microsecond(moment: datetime) -> None:
    assert from_micros(to_micros(moment)) == moment.astimezone(UTC)  # in UTC: some local times do not exist
    assert to_micros(from_micros(to_micros(moment), PLUS9)) == to_micros(moment)


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(PLUS9)))
def test_the_order_in_the_store_is_the_order_in_time(one: datetime, other: datetime) -> None:
    assert (to_micros(one) < to_micros(other)) == (one < other)


@given(st.dates(max_value=date(9999, 12, 29), min_value=date(1900, 1, 1)), st.sampled_from([UTC, BERLIN, PLUS9]))
def test_days_follow_each_other_without_gap_or_overlap(day: date, zone: Any) -> None:
    assert span_end(day, zone) == span_start(day + timedelta(days=1), zone)
    assert span_start(day, zone).astimezone(zone).date() == day
    assert (span_end(day, zone) - timedelta(microseconds=1)).astimezone(zone).date() == day


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-05-03", 24)])
def test_a_day_is_as_long_as_it_is_there(day: str, hours: int) -> None:
    length = to_micros(span_end(day, BERLIN)) - to_micros(span_start(day, BERLIN))
    assert length == hours * 3_600_000_000


def test_every_form_of_a_moment() -> None:
    noon = datetime(2026, 5, 3, 12, tzinfo=BERLIN)
    naive = datetime(2026, 5, 3, 12)  # noqa: DTZ001
    texts = ("2026-05-03T12:00", " 2026-05-03 12:00 ", "2026-05-03T10:00Z", "2026-05-03T12:00+02:00")
    for moment in (noon, naive, *texts):
        assert read_moment(moment, BERLIN) == noon
        assert span_start(moment, BERLIN) == span_end(moment, BERLIN) == noon
    assert read_moment("2026-05-03", BERLIN) == read_moment("20260503", BERLIN) == date(2026, 5, 3)


@pytest.mark.parametrize("zone", [UTC, *(timezone(timedelta(hours=hours)) for hours in (-12, 14))], ids=str)
def test_the_ends_of_the_calendar_can_be_told_everywhere(zone: Any) -> None:
    for text in ("0001-01-02T00:00+00:00", "9999-12-30T23:59:59.999999+00:00"):
        moment = span_start(text, UTC)
        assert from_micros(to_micros(moment), zone) == moment
        assert from_micros(to_micros(moment), LocalZone()).isoformat()
    assert span_end("9999-12-29", zone) > span_start("9999-12-29", zone)
    assert span_end("9999-12-30", UTC) == datetime(9999, 12, 31, tzinfo=UTC)
    assert [from_micros(at, zone).year for at in (-(2**63), 2**63 - 1)] == [1, 9999]


@given(st.text(max_size=12) | st.integers() | st.none() | st.lists(st.integers(), max_size=2))
def test_whatever_is_no_moment_is_refused(value: Any) -> None:
    try:
        assert isinstance(read_moment(value, UTC), date)
    except RejectedError as error:
        assert "is not a moment; give a datetime, a date, or text such as" in str(error)


def test_the_machine_s_zone_has_rules_for_every_date(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        zone = LocalZone()
        for month, hours in ((1, 1), (7, 2)):
            local = datetime(2026, month, 1, 12, tzinfo=zone)
            assert local.utcoffset() == timedelta(hours=hours)
            assert local == datetime(2026, month, 1, 12 - hours, tzinfo=UTC)
            assert datetime(2026, month, 1, 12 - hours, tzinfo=UTC).astimezone(zone).hour == 12
        assert SystemClock().now().utcoffset() in (timedelta(hours=1), timedelta(hours=2))
        assert abs(SystemClock().now() - datetime.now(UTC)) < timedelta(minutes=1)
    time.tzset()
