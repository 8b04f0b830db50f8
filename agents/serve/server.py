"""What belongs together while a server runs: the home, its agents, who may ask, and the limits."""

import json
import os
import secrets
from collections.abc import Callable, Sequence
from hmac import compare_digest
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from agents.serve.errors import unauthorized
from agents.serve.forward import Forward
from agents.serve.instances import Instances
from agents.serve.keys import Caller, Door, Keys
from agents.serve.limits import ServeLimits
from agents.serve.log import Log
from agents.serve.metrics import Metrics
from agents.serve.runs import Runs
from agents.serve.visits import Visits
from agents.serve.workers import Workers
from pager.clock import Clock, SystemClock
from pager.errors import RejectedError
from pager.home import Home

WORKER_KEY = "SELFPAGER_WORKER_KEY"
SHORTEST_WORKER_KEY = 32


class Server:
    """One server over a home. `close` lets turns end and releases every agent."""

    def __init__(
        self, home: Home, files: Sequence[Path], *, limits: ServeLimits | None = None, token: str | None = None,
        clock: Clock | None = None, log_to: TextIO | None = None,
    ) -> None:  # fmt: skip
        self._closing: list[Callable[[], object]] = []
        self.clock = clock or SystemClock()
        self.limits = limits or ServeLimits()
        self.forward: Forward | None = None  # with other workers on the same home
        self.advertised = self._worker_key = ""
        self.log = Log(self.clock, log_to)
        self.instances = Instances(home, files, self.clock)
        self.keys = Keys(home, self.clock)
        self.door = Door(self.keys, self.clock, token)
        open_agent = self.instances.open
        self.workers = Workers(lambda name, approve, task: open_agent(name, approve, task=task), self.limits)
        self.runs = Runs(self.limits, self.clock)
        self.metrics = Metrics(lambda: self.workers.figures)
        self.visits = Visits(self.instances, self.workers, self.runs, self.clock, self.log)

    def let_in(self, token: str) -> None:
        """Let whoever has this token in, as long as there is no valid key."""
        self.door = Door(self.keys, self.clock, token)

    def advertise(self, url: str) -> None:
        """Be one of several workers on this home. Others pass requests on to `url` for agents that are open here."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.username:
            raise RejectedError(f"{url!r:.100} is no address of a worker; give one such as http://10.0.0.7:8300.")
        self.advertised = url.rstrip("/")
        self.instances.home.advertise(self.advertised)
        self._worker_key = os.environ.get(WORKER_KEY) or self.instances.home.change_value(
            "worker-key", lambda key: key or secrets.token_urlsafe(32)
        )
        if len(self._worker_key) < SHORTEST_WORKER_KEY:
            text = f"{WORKER_KEY} has {len(self._worker_key)} characters; it needs {SHORTEST_WORKER_KEY}"
            raise RejectedError(f"{text}. Make one: openssl rand -hex 32")
        self.forward = Forward(self._worker_key)

    def called_by_worker(self, key: str, caller: str) -> Caller:
        """Return who calls another worker, which has passed the request on. Raises ApiError (401)."""
        if not self._worker_key or not compare_digest(key.encode(), self._worker_key.encode()):
            raise unauthorized("this is not the key of the workers of this home.")
        return Caller(**json.loads(caller))

    def now(self) -> float:
        """Return the time in seconds."""
        return self.clock.now().timestamp()

    def start(self) -> None:
        """Go on with what was left open, and look after agents from now on."""
        self.visits.start()

    def at_end(self, close: Callable[[], object]) -> None:
        """Call this when the server has closed."""
        self._closing.append(close)

    def close(self) -> bool:
        """Stop. Return False if a turn was still at work at the end; it can be resumed."""
        self.visits.close()
        is_clean = self.workers.stop()
        for close in self._closing:
            close()
        self._closing.clear()
        if is_clean:  # or a turn that is still at work would lose its model
            self.instances.close()
        return is_clean
