"""Work without a request: an open turn goes on, a message is answered, what a schedule says begins.

The home knows which agents want to be visited, and when (`Home.set_due`): before a turn begins "now" is noted, and
behind it when the next visit is due, if any. So a server that starts goes on with what another one left, and an agent
that wants nothing costs nothing.
"""

from collections.abc import Generator
from contextlib import closing, suppress
from datetime import timedelta
from threading import Event as Flag
from threading import Lock, Thread

from agents import tasks
from agents.agent import Agent
from agents.events import Event
from agents.models.model import ModelError
from agents.serve import records
from agents.serve.errors import ApiError
from agents.serve.instances import Instances
from agents.serve.log import Log
from agents.serve.workers import Workers
from pager.clock import Clock
from pager.errors import PagerError

LOOK_SECONDS = 1.0
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 30.0, 900.0


class Visits:
    """Looks after agents whose time has come, in a thread, from `start` to `close`."""

    def __init__(self, instances: Instances, workers: Workers, clock: Clock, log: Log) -> None:
        self._instances = instances
        self._workers = workers
        self._clock = clock
        self._log = log
        self._visiting: set[str] = set()
        self._failures: dict[str, int] = {}
        self._lock = Lock()
        self._awake, self._closing = Flag(), Flag()
        self._thread = Thread(target=self._look, name="selfpager visits", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closing.set()
        self._awake.set()
        if self._thread.ident is not None:
            self._thread.join()

    def soon(self, name: str) -> None:
        """Visit an agent as soon as it can be."""
        self._awake.set()

    def begun(self, name: str) -> None:
        """Note that an agent begins something, which another server goes on with if this one ends."""
        self._instances.home.set_due(name, self._clock.now())

    def settle(self, name: str, agent: Agent) -> None:
        """Note when an agent that has come to an end wants to be visited next."""
        self._failures.pop(name, None)
        self._instances.home.set_due(name, None)
        if self._instances.home.pending(name) and agent.memory.accepts_message:
            self._instances.home.set_due(name, self._clock.now())

    def failed(self, name: str) -> None:
        """Note that an agent could not go on, as its model is down: it is tried again, ever more seldom."""
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        seconds = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** (failures - 1))
        with suppress(PagerError):
            self._instances.home.set_due(name, self._clock.now() + timedelta(seconds=seconds))

    def _look(self) -> None:
        while not self._closing.is_set():
            try:
                for name in self._instances.home.due():
                    self._send_to(name)
            except (PagerError, OSError) as error:
                self._log.trouble("the home cannot be looked through", error)
            self._awake.wait(LOOK_SECONDS)
            self._awake.clear()

    def _send_to(self, name: str) -> None:
        with self._lock:
            if name in self._visiting or self._workers.is_working(name):
                return
            self._visiting.add(name)
        try:
            with self._instances.home.read(name, embedder=None) as reader:
                if self._instances.config_in(reader, name) is None:
                    self._instances.home.set_due(name, None)  # nobody here can work for it
                    raise ApiError(409, "no_configuration", "")
                task = tasks.current(reader)
            at_task = task is not None and task.state == "open" and records.is_at_work(task.stopped)
            job = self._workers.submit(name, lambda agent: self._visit(name, agent), task=at_task)
        except (ApiError, PagerError) as error:
            with self._lock:
                self._visiting.discard(name)
            if not isinstance(error, ApiError):
                self._log.trouble("an agent cannot be visited", error)
                with suppress(PagerError):
                    self._instances.home.set_due(name, None)
            return
        job.add_done_callback(lambda _: self._visiting.discard(name))

    def _visit(self, name: str, agent: Agent) -> None:
        try:
            for events in self._work_of(agent):
                with closing(events):
                    for _ in events:
                        pass
        except ModelError as error:
            self._log.trouble("the model did not answer an agent that was visited", error)
            self.failed(name)
        except PagerError as error:
            self._log.trouble("a visit failed", error)
            self.failed(name)
        else:
            self.settle(name, agent)

    def _work_of(self, agent: Agent) -> Generator[Generator[Event]]:
        """Yield what the agent has to do, one after the other."""
        memory, task = agent.memory, tasks.current(agent.memory)
        if task and task.state == "open" and records.is_at_work(task.stopped):
            yield agent.tasks().resume()
        newest = records.newest(memory)
        waits = newest is not None and newest.stopped is not None  # for a person, who was told why
        if memory.turn_is_open and not waits:
            yield agent.resume_stream()
        if memory.process_inbox() and memory.turn_is_open:
            yield agent.resume_stream()
