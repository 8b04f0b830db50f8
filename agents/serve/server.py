"""What belongs together while a server runs: the home, its agents, who may ask, and the limits."""

from collections.abc import Sequence
from pathlib import Path

from agents.serve.instances import Instances
from agents.serve.keys import Door, KeyFile
from agents.serve.limits import ServeLimits
from agents.serve.workers import Workers
from pager.clock import Clock, SystemClock
from pager.home import Home


class Server:
    """One server over a home. `close` lets turns end and releases every agent."""

    def __init__(
        self, home: Home, files: Sequence[Path], *, limits: ServeLimits | None = None, token: str | None = None,
        clock: Clock | None = None,
    ) -> None:  # fmt: skip
        self.clock = clock or SystemClock()
        self.limits = limits or ServeLimits()
        self.instances = Instances(home, files, self.clock)
        self.keys = KeyFile(home.path, self.clock)
        self.door = Door(self.keys, self.clock, token)
        open_agent = self.instances.open
        self.workers = Workers(lambda name, approve, task: open_agent(name, approve, task=task), self.limits)

    def close(self) -> bool:
        """Stop. Return False if a turn was still at work at the end; it can be resumed."""
        return self.workers.stop()
