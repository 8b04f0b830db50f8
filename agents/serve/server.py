"""What belongs together while a server runs: the home, its agents, who may ask, and the limits."""

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from agents.serve.instances import Instances
from agents.serve.keys import Door, KeyFile
from agents.serve.limits import ServeLimits
from agents.serve.log import Log
from agents.serve.metrics import Metrics
from agents.serve.runs import Runs
from agents.serve.visits import Visits
from agents.serve.workers import Workers
from pager.clock import Clock, SystemClock
from pager.home import Home


class Server:
    """One server over a home. `close` lets turns end and releases every agent."""

    def __init__(
        self, home: Home, files: Sequence[Path], *, limits: ServeLimits | None = None, token: str | None = None,
        clock: Clock | None = None, log_to: TextIO | None = None,
    ) -> None:  # fmt: skip
        self.clock = clock or SystemClock()
        self.limits = limits or ServeLimits()
        self.log = Log(self.clock, log_to)
        self.instances = Instances(home, files, self.clock)
        self.keys = KeyFile(home.path, self.clock)
        self.door = Door(self.keys, self.clock, token)
        open_agent = self.instances.open
        self.workers = Workers(lambda name, approve, task: open_agent(name, approve, task=task), self.limits)
        self.runs = Runs(self.limits, self.clock)
        self.metrics = Metrics(lambda: self.workers.figures)
        self.visits = Visits(self.instances, self.workers, self.clock, self.log)

    def now(self) -> float:
        """Return the time in seconds."""
        return self.clock.now().timestamp()

    def start(self) -> None:
        """Go on with what was left open, and look after agents from now on."""
        self.visits.start()

    def close(self) -> bool:
        """Stop. Return False if a turn was still at work at the end; it can be resumed."""
        self.visits.close()
        return self.workers.stop()
