"""Times that repeat, as cron writes them, with a time zone behind: `0 8 * * mon-fri Europe/Berlin`.

    >>> Cron.read("0 8 * * mon-fri Europe/Berlin").next_after(datetime(2026, 11, 20, 12, tzinfo=UTC)).isoformat()
    '2026-11-23T08:00:00+01:00'

The expression is cronsim's, which does at changes of the clock what Debian's cron does: what would fall into the hour
that is left out comes behind it, and what would come twice comes once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import dropwhile, takewhile

from pager.errors import RejectedError

INSTALL = "install selfpager[serve]"
_FORM = "write minute, hour, day of the month, month and day of the week, as in '0 8 * * mon-fri Europe/Berlin'"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression of five fields in a time zone."""

    fields: str
    zone: tzinfo

    @classmethod
    def read(cls, text: str) -> Cron:
        """Return the times that a text names. Without a zone it is UTC, as machines of a fleet may have several."""
        words = text.split()
        if len(words) not in (5, 6):
            raise RejectedError(f"{text!r:.80} is no time that repeats: {_FORM}.")
        made = cls(" ".join(words[:5]), _zone(words[5], text) if len(words) == 6 else UTC)
        try:
            from cronsim import CronSimError
        except ImportError:
            raise RejectedError(f"times need the library cronsim: {INSTALL}.") from None
        try:
            next(made._from(_NEVER))
        except (CronSimError, StopIteration) as error:
            why = str(error) or "it names a day that never comes"
            raise RejectedError(
                f"{text!r:.80} is no time that repeats ({why[:1].lower()}{why[1:]}): {_FORM}."
            ) from None
        return made

    def next_after(self, moment: datetime) -> datetime:
        """Return the first time behind a moment."""
        return next(self._from(moment))

    def newest(self, after: datetime, until: datetime) -> datetime | None:
        """Return the last time behind `after` that has come by `until`; None if none has."""
        after, until = after.astimezone(UTC), until.astimezone(UTC)  # times of one zone compare without their offset
        if self.next_after(after) > until:
            return None
        # From near the end, or a task of each minute would be counted through for all the time that it was away.
        span = timedelta(hours=1)
        while True:
            begin = max(after, until - span)
            if found := deque(takewhile(lambda each: each <= until, self._from(begin)), maxlen=1):
                return found[0]
            span *= 8

    def _from(self, moment: datetime) -> Iterator[datetime]:
        from cronsim import CronSim

        after = moment.astimezone(UTC)
        # In an hour that comes twice, cronsim begins with the first one, which may be over.
        return dropwhile(lambda each: each <= after, CronSim(self.fields, moment.astimezone(self.zone)))


def _zone(name: str, text: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # no path, a directory, no such zone
        why = "is no time zone that this machine knows; write one such as Europe/Berlin or UTC"
        raise RejectedError(f"{name!r:.80} in {text!r:.80} {why}.") from None
