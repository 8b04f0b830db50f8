"""Work without a request: an open turn goes on, a message is answered, what a schedule says begins.

The home knows which agents want to be visited, and when (`Home.set_due`): before a turn begins "now" is noted, and
behind it when the next visit is due, if any. So a server that starts goes on with what another one left, and an agent
that wants nothing costs nothing.
"""

from collections.abc import Generator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from threading import Event as Flag
from threading import Lock, Thread

from agents import tasks
from agents.agent import Agent
from agents.events import Event
from agents.models.model import ModelUnavailableError
from agents.schedule import begin_due, next_due, sleep_if_due
from agents.serve import messages_records, records
from agents.serve.begun import go_on
from agents.serve.errors import ApiError
from agents.serve.instances import Instances
from agents.serve.log import Log
from agents.serve.messages_turn import rest
from agents.serve.runs import Runs
from agents.serve.workers import Workers
from pager.clock import Clock
from pager.errors import AgentLostError, InUseError, NewerFormatError, PagerError, StorageError, UnavailableError
from pager.home import ADDRESSES

LOOK_SECONDS = 1.0
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 30.0, 900.0  # when the model, or the home, does not answer
FIRST_REOPENING_SECONDS = 1.0  # of an agent that was lost, or could not be reached
AFTER_ERROR = timedelta(hours=1)  # at least, before what has failed otherwise is tried again
TIMES = "serve-times"  # the value in the home: the times of the configurations at the newest start


class Visits:
    """Looks after agents whose time has come, in a thread, from `start` to `close`."""

    def __init__(self, instances: Instances, workers: Workers, runs: Runs, clock: Clock, log: Log) -> None:
        self._runs = runs
        self._instances = instances
        self._workers = workers
        self._clock = clock
        self._log = log
        self._has_others = instances.home.address.startswith(ADDRESSES)  # other workers
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

    def soon(self) -> None:
        """Look at once: an agent has become due."""
        self._awake.set()

    def answer_first(self, name: str) -> None:
        """Put a visit in the line of an agent that has given way to a message."""
        self._send_to(name, though_working=True)

    @contextmanager
    def noted(self, name: str, agent: Agent) -> Generator[None]:
        """Note that an agent begins something, which another server goes on with if this one ends; and behind the block
        when it wants to be visited next."""
        self._instances.home.begin_work(name)
        try:
            yield
        except ModelUnavailableError:
            self.failed(name)
            raise
        except Exception as error:
            if not (isinstance(error, ApiError) and error.kind == "stopping"):
                self.settle(name, agent)
            raise
        self.settle(name, agent)

    def settle(self, name: str, agent: Agent) -> None:
        """Note when an agent that has come to an end wants to be visited next."""
        self._failures.pop(name, None)
        memory, visited = agent.memory, name in self._visiting
        self._instances.home.end_work(name, next_due(agent), takes_messages=memory.accepts_message, visited=visited)
        if not memory.accepts_message:  # nobody visits it for what waits: an edit that came meanwhile need not
            memory.process_inbox(messages=False)

    def failed(self, name: str, first_seconds: float = FIRST_RETRY_SECONDS) -> None:
        """Note that an agent could not go on, as its model is down: it is tried again, ever more seldom."""
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        seconds = min(LONGEST_RETRY_SECONDS, first_seconds * 2 ** (failures - 1))
        with suppress(PagerError):
            self._instances.home.set_due(name, self._clock.now() + timedelta(seconds=seconds))

    def _look(self) -> None:
        knows_times = False
        while not self._closing.is_set():
            try:
                if not knows_times:
                    self._visit_all_if_times_changed()
                    knows_times = True
                for name in self._instances.home.take_due():
                    self._send_to(name)
            except Exception as error:  # noqa: BLE001 - it is tried again, for as long as the server runs
                self._log.trouble("the home cannot be looked through", error)
            self._awake.wait(LOOK_SECONDS)
            self._awake.clear()

    def _visit_all_if_times_changed(self) -> None:
        """Visit every agent once if the configurations have other times than at the last start: they count from now."""
        home, times = self._instances.home, self._instances.times
        if times == (home.value(TIMES) or "{}"):
            return
        for name in home.names() if times != "{}" else ():
            home.set_due(name, self._clock.now())
        home.change_value(TIMES, lambda _: times)

    def _send_to(self, name: str, *, though_working: bool = False) -> None:
        with self._lock:
            if name in self._visiting or (self._workers.is_working(name) and not though_working):
                return
            self._visiting.add(name)
        self._submit(name, at_task=False)

    def _submit(self, name: str, *, at_task: bool) -> None:
        try:
            job = self._workers.submit(name, lambda agent: self._visit(name, agent, at_task=at_task), task=at_task)
        except ApiError:  # there is too much to do: it stays due
            self._visiting.discard(name)
            return
        job.add_done_callback(lambda done: self._ended(name, done))

    def _ended(self, name: str, done: "Future[bool]") -> None:
        """Note what comes after a visit, if it could not say so itself."""
        error = done.exception()
        if error is None and done.result():  # the rest needs what a long task needs
            self._submit(name, at_task=True)
            return
        # Who has it goes on, or whoever takes it when it is offered again.
        is_elsewhere = isinstance(error, InUseError | NewerFormatError) and self._has_others
        try:
            if is_elsewhere:
                return
            if isinstance(error, ApiError) and error.kind == "no_configuration":
                error = None
                self._carry_out_edits(name)
            elif isinstance(error, AgentLostError | UnavailableError):
                self.failed(name, FIRST_REOPENING_SECONDS)
            elif isinstance(error, ModelUnavailableError | StorageError | InUseError):
                self.failed(name)
            elif error is not None and not (isinstance(error, ApiError) and error.kind == "stopping"):
                with suppress(PagerError, OSError):  # it cannot be opened here as it is
                    self._instances.home.set_due(name, None)
        finally:
            self._visiting.discard(name)
            if error is not None and not is_elsewhere:
                self._log.trouble("a visit failed", error)

    def _carry_out_edits(self, name: str) -> None:
        """Carry out what others have sent to a memory that has no agent here, such as a shared one."""
        home = self._instances.home
        with suppress(PagerError, OSError):
            home.set_due(name, None)
            if home.apply_pending(name):
                self._failures.pop(name, None)
            else:
                self.failed(name, FIRST_REOPENING_SECONDS)

    def _visit(self, name: str, agent: Agent, *, at_task: bool) -> bool:
        """Do what the agent has to do. Return True if something is left that needs what a long task needs."""
        try:
            is_done = self._work_for(name, agent, at_task=at_task)
        except (ModelUnavailableError, StorageError):
            raise
        except Exception as error:  # noqa: BLE001 - a schedule goes on, whatever became of one run
            self._log.trouble("a visit failed", error)
            due, soonest = next_due(agent), self._clock.now() + AFTER_ERROR
            self._instances.home.set_due(name, max(due, soonest) if due else None)
            return False
        if is_done:
            self.settle(name, agent)
        return not is_done

    def _work_for(self, name: str, agent: Agent, *, at_task: bool) -> bool:
        memory, task = agent.memory, tasks.current(agent.memory)
        if task and task.state == "open" and records.is_at_work(task.stopped):
            if not at_task:
                return False
            go_on(self._runs, name, agent, agent.tasks().resume)
        if memory.turn_is_open and not (records.waits(memory) or messages_records.waits(memory)):
            go_on(self._runs, name, agent, lambda: rest(agent))
        if memory.process_inbox() and memory.turn_is_open:
            _run(agent.resume_stream())
        begins_tasks = any(entry.task for entry in agent.config.schedule)
        if begins_tasks and not at_task and (due := next_due(agent)) and due <= self._clock.now():
            return False
        while begun := None if begins_tasks and not at_task else begin_due(agent):
            _run(begun)
        sleep_if_due(agent, lambda: self._workers.is_wanted(name) or memory.has_message)
        return True


def _run(events: Generator[Event]) -> None:
    with closing(events):
        for _ in events:
            pass
