"""Sleep when nobody talks: a thread that waits until the time has come, and gives way to a message at once."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Thread

from agents.logs import log
from pager.sleep import Proposal

Sleep = Callable[[Callable[[], bool]], "Proposal | None"]


class IdleSleep:
    """Sleeps once each time that nobody has talked for a while. `talk` and `rest` are called around each turn.

    A sleep that gives way keeps what it has done, and goes on the next time.
    """

    def __init__(
        self, sleep: Sleep, after_seconds: float, first_seconds: float, report: Callable[[Proposal], None]
    ) -> None:
        self._sleep = sleep
        self._after_seconds = after_seconds
        self._wait_seconds: float | None = first_seconds  # until the next sleep; None: there was one
        self._changed = Condition()
        self._talking = 0
        self._closing = False
        self._report = report
        self._thread = Thread(target=self._work, name="selfpager sleep", daemon=True)
        self._thread.start()

    def _is_wanted(self) -> bool:
        """Return True if the agent is wanted for something else than sleeping."""
        return self._talking > 0 or self._closing

    def talk(self) -> None:
        """Give way: a turn begins. The time is counted anew when it ends."""
        with self._changed:
            self._talking += 1
            self._changed.notify()

    def rest(self) -> None:
        """Count the time from now on: a turn has ended."""
        with self._changed:
            self._talking -= 1
            self._wait_seconds = self._after_seconds
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._closing:
                    return
                if self._talking or self._wait_seconds is None:
                    self._changed.wait()
                    continue
                if self._changed.wait(self._wait_seconds):
                    continue  # somebody began to talk, or has ended
                self._wait_seconds = None
            try:
                proposal = self._sleep(self._is_wanted)
                if proposal is not None:
                    self._report(proposal)
            except Exception:
                log.exception("a sleep failed; the next one tries again")

    def close(self) -> None:
        """Stop, at the latest when the request that is under way brings its next piece."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout=5)
