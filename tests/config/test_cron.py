"""Times that repeat: what is none is refused, and the newest run is the last that counting from the start finds."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.config.cron import Cron
from agents.config.errors import ConfigError
from pager.errors import RejectedError
from tests.config.conftest import read

SPRING, AUTUMN = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)  # a day before clocks change
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
FIELDS = st.sampled_from(
    ["* * * * *", "*/20 * * * *", "30 2 * * *", "0 */6 * * *", "15 1-3 * * *", "0 8 * * mon-fri", "59 23 L * *"]
)
MOMENTS = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes), st.sampled_from([SPRING, AUTUMN]), st.integers(0, 3 * 1440)
)


@given(FIELDS, ZONES, MOMENTS, MOMENTS)
def test_the_newest_run_is_the_last_that_has_come(fields: str, zone: str, after: datetime, until: datetime) -> None:
    cron, times = Cron.read(f"{fields} {zone}"), list[datetime]()
    at = cron.next_after(after)
    while at <= until:
        assert after < at
        times.append(at)
        at = cron.next_after(at)
    assert cron.newest(after, until) == (times[-1] if times else None)
    assert all(each.second == 0 for each in times)


@pytest.mark.parametrize("fields", ["30 2 * * *", "15 1 * * *"])
def test_a_daily_run_comes_once_on_days_when_clocks_change(fields: str) -> None:
    cron = Cron.read(f"{fields} Europe/Berlin")
    for day in (SPRING, AUTUMN):
        until = day + timedelta(days=4)
        runs = [cron.next_after(day)]
        while (at := cron.next_after(runs[-1])) < until:
            runs.append(at)
        assert [later.date() - earlier.date() for earlier, later in pairwise(runs)] == [timedelta(days=1)] * (
            len(runs) - 1
        )


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("fields", ["30 2 * * *", "45 1,2 * * *", "*/20 * * * *"])
def test_the_next_run_is_never_over_in_an_hour_that_comes_twice_either(fields: str, zone: str) -> None:
    cron = Cron.read(f"{fields} {zone}")
    for autumn in (AUTUMN, datetime(2026, 10, 31, tzinfo=UTC), datetime(2026, 4, 4, tzinfo=UTC)):
        for minutes in range(0, 2 * 1440, 7):
            moment = (autumn + timedelta(minutes=minutes)).astimezone(cron.zone)
            assert cron.next_after(moment).astimezone(UTC) > moment.astimezone(UTC)


def test_a_run_of_each_minute_that_was_away_for_years_is_found_at_once() -> None:
    cron, until = Cron.read("* * * * *"), datetime(2026, 11, 20, 8, 30, 15, tzinfo=UTC)
    assert cron.newest(datetime(1999, 1, 1, tzinfo=UTC), until) == until.replace(second=0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no time that repeats"),
        ("0 8 * *", "is no time that repeats"),
        ("61 8 * * *", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 31 4 *", "bad day-of-month"),
        ("@daily", "is no time that repeats"),
        ("0 8 * * mon Europe/Berlyn", "no time zone that this machine knows"),
        ("0 8 * * mon ../../etc/passwd", "no time zone that this machine knows"),
        ("0 8 * * mon Europe", "no time zone that this machine knows"),
        ("0 0 8 * * mon UTC", "is no time that repeats"),
        ("0 8 * * 8", "bad day-of-week"),
        ("*/0 8 * * *", "bad minute"),
        ("0 8 * * mon\0 UTC", "bad day-of-week"),
    ],
)
def test_what_is_no_time_is_refused(text: str, said: str) -> None:
    with pytest.raises(RejectedError, match=said):
        Cron.read(text)


def test_the_file_says_where_it_is_wrong() -> None:
    with pytest.raises(ConfigError) as error:
        read(
            """\
            name: x
            schedule:
              - {at: "0 25 * * *", say: hello}
              - {at: "0 8 * * *", say: hello, task: work}
              - {at: "0 8 * * *"}
            """
        )
    lines = str(error.value).splitlines()
    assert [line.split(":")[1] for line in lines if "schedule" in line] == ["3", "4", "5"]
    assert "bad hour" in lines[0]
    assert "say or task" in lines[1]
