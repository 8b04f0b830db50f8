from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

START = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)


class HandClock:
    """A pager.clock.Clock that goes on by a second with each look, so that an order is an order in time too."""

    def __init__(self, start: datetime = START, *, zone: tzinfo = UTC, tick: timedelta = timedelta(seconds=1)) -> None:
        self.zone = zone
        self._at = start.astimezone(zone)
        self._tick = tick

    def now(self) -> datetime:
        self._at += self._tick
        return self._at

    def set(self, moment: datetime) -> None:
        self._at = moment.astimezone(self.zone)
