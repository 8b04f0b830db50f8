"""Open agents, and the threads that work for them.

Each agent does one job after the other, in the order in which they came; agents work side by side, in as many threads
as there are. So many agents are kept open; the one that was used longest ago is closed for another. What is more than
the lines take is refused with ApiError (429), and a server that stops takes nothing (503).

    future = workers.submit("notes", lambda agent: agent.turn("hello"))      # in line; a concurrent.futures.Future
    with workers.use("notes") as agent: ...                                 # at once, beside its turn: for short calls
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from agents.agent import Agent
from agents.logs import log
from agents.loop import Approve
from agents.serve.errors import YOURS, ApiError, busy, stopping
from agents.serve.limits import ServeLimits
from pager.errors import AgentLostError, PagerError
from pager.types import Call

Result = TypeVar("Result")
Open = Callable[[str, Approve, bool], Agent]
LONGEST_RETRY_SECONDS = 60
REMEMBERED = 0.2  # the weight of the newest job in the mean duration


class Job:
    """What an agent is to do, and where its result goes."""

    def __init__(self, work: Callable[[Agent], Any], *, task: bool, waits: bool = False) -> None:
        self.work = work
        self.task = task
        self.waits = waits  # no other job gives way to it
        self.future: Future[Any] = Future()


class Desk:
    """One agent: open or not, its jobs, and the approvals that people gave for its calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = Lock()  # while it is opened, closed, or used for a short call
        self.agent: Agent | None = None
        self.for_task = False
        self.jobs: deque[Job] = deque()
        self.running: Job | None = None
        self.is_scheduled = False
        self.is_gone = False
        self.approvals: dict[str, bool] = {}

    def approve(self, call: Call) -> bool | None:
        """Return what a person has said about a call, once: a helper may ask again, for another call."""
        return self.approvals.pop(call.id, None)

    @property
    def is_idle(self) -> bool:
        """Return True if nothing runs and nothing waits."""
        return self.running is None and not self.jobs


class Workers:
    """All agents that are open here. Every method may be called from any thread."""

    def __init__(self, open_agent: Open, limits: ServeLimits) -> None:
        self._open_agent = open_agent
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="selfpager turn")
        self._lock = Lock()  # of what follows; held for moments
        self._desks = WeakValueDictionary[str, Desk]()  # those in use: nothing grows with the agents there are
        self._approved: dict[str, Desk] = {}  # with approvals that are still to be asked for
        self._opened: OrderedDict[str, Desk] = OrderedDict()  # the one used longest ago first
        self._waiting = 0
        self._running: set[Desk] = set()
        self._stopping = False
        self._mean_seconds = 1.0

    # what is asked of an agent

    def submit(
        self, name: str, work: Callable[[Agent], Result], *, task: bool = False, waits: bool = False
    ) -> "Future[Result]":
        """Put a job in the line of an agent that exists. With `task` it gets the agent with what a long task needs; for
        one that `waits` no sleep gives way. Raises ApiError if the line is full, or the server stops."""
        job = Job(work, task=task, waits=waits)
        with self._lock:
            desk = self._desk(name)
            if self._stopping:
                raise stopping()
            if len(desk.jobs) >= self._limits.line:
                text = f"{len(desk.jobs)} requests wait for this agent already; no more are taken."
                raise busy(text, self._retry_seconds(len(desk.jobs)))
            if self._waiting >= self._limits.whole_line:
                text = f"{self._waiting} requests wait already; no more are taken."
                raise busy(text, self._retry_seconds(self._waiting / self._limits.threads))
            desk.jobs.append(job)
            self._waiting += 1
            if not desk.is_scheduled:
                desk.is_scheduled = True
                self._pool.submit(self._work, desk)
        return job.future

    @contextmanager
    def use(self, name: str) -> Generator[Agent]:
        """Yield an agent for a short call of its memory, beside the turn that it is in. It is opened if it is not."""
        with self._lock:
            if self._stopping:
                raise stopping()
            desk = self._desk(name)
        with desk.lock, self._dropping(desk):
            yield self._agent(desk, task=desk.for_task)

    @contextmanager
    def use_if_open(self, name: str) -> Generator[Agent | None]:
        """Yield an agent if it is open here and no other worker can have it, else None."""
        desk = self._desks.get(name)
        if desk is None or desk.agent is None:
            yield None
            return
        with desk.lock, self._dropping(desk):
            yield desk.agent if desk.agent and desk.agent.memory.is_sure else None

    def approve(self, name: str, call_id: str, *, allowed: bool) -> None:
        """Note what a person says about a call that waits; the next job of the agent asks for it."""
        with self._lock:
            desk = self._approved[name] = self._desk(name)
            desk.approvals[call_id] = allowed

    def is_working(self, name: str, *, at_task: bool = False) -> bool:
        """Return True if the agent does something, or something waits for it; with `at_task`, if that is a task."""
        with self._lock:
            desk = self._desks.get(name)
            jobs = [*desk.jobs, *([desk.running] if desk.running else [])] if desk else []
            return any(job.task or not at_task for job in jobs)

    def has_open(self, name: str) -> bool:
        """Return True if the agent is open here."""
        desk = self._desks.get(name)
        return desk is not None and desk.agent is not None

    def is_wanted(self, name: str) -> bool:
        """Return True if something waits for an agent that is at work, or the server stops."""
        with self._lock:
            desk = self._desks.get(name)
            return self._stopping or (desk is not None and any(not job.waits for job in desk.jobs))

    @contextmanager
    def closed(self, name: str) -> Generator[Desk]:
        """Close an agent, and keep it closed in the block: jobs that come meanwhile wait. Raises ApiError (429) while
        it works."""
        with self._lock:
            desk = self._desk(name)
        with desk.lock:
            with self._lock:
                if not desk.is_idle:
                    raise busy("this agent is at work.", self._retry_seconds(1))
            self._close(desk)
            yield desk

    @contextmanager
    def put_away(self, name: str) -> Generator[None]:
        """Close an agent while the block removes it. Raises ApiError (429) while it works."""
        with self.closed(name) as desk:
            desk.is_gone = True
            try:
                yield
            except BaseException:
                desk.is_gone = False
                raise
            with self._lock:
                self._desks.pop(name, None)

    # figures

    @property
    def figures(self) -> dict[str, int]:
        """Return how many agents are open and at work, and how many requests wait."""
        with self._lock:
            return {"open": len(self._opened), "running": len(self._running), "waiting": self._waiting}

    # inside

    def _desk(self, name: str) -> Desk:
        desk = self._desks.get(name)
        if desk is None:
            desk = self._desks[name] = Desk(name)
        return desk

    def _retry_seconds(self, before: float) -> int:
        return max(1, min(LONGEST_RETRY_SECONDS, round(self._mean_seconds * before)))

    def _work(self, desk: Desk) -> None:
        """Do the oldest job of an agent, and come back for the next one behind other agents'."""
        with self._lock:
            if not desk.jobs:
                desk.is_scheduled = False
                return
            job = desk.running = desk.jobs.popleft()
            self._waiting -= 1
            self._running.add(desk)
        began = monotonic()
        try:
            if job.future.set_running_or_notify_cancel():
                self._do(desk, job)
        finally:
            with self._lock:
                self._mean_seconds += REMEMBERED * (monotonic() - began - self._mean_seconds)
                desk.running = None
                self._running.discard(desk)
                if not desk.approvals:
                    self._approved.pop(desk.name, None)
                if desk.jobs and not self._stopping:
                    self._pool.submit(self._work, desk)
                else:
                    desk.is_scheduled = False
        self._close_others(desk)  # of those that were at work when it was opened

    def _do(self, desk: Desk, job: Job) -> None:
        try:
            with desk.lock:
                agent = self._agent(desk, task=job.task)
            result = job.work(agent)
        except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
            if isinstance(error, AgentLostError):
                with desk.lock:
                    self._close(desk)
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    @contextmanager
    def _dropping(self, desk: Desk) -> Generator[None]:
        """Close an agent that turns out to be lost, unless it is at work: the job does it then. The next to ask for it
        opens it again. Its desk is locked."""
        try:
            yield
        except AgentLostError:
            if desk.running is None:
                self._close(desk)
            raise

    def _agent(self, desk: Desk, *, task: bool) -> Agent:
        """Return the open agent; its desk is locked. What a long task needs is there if `task`, and only then."""
        if desk.is_gone:
            raise ApiError(404, "not_found", "this agent was removed.", YOURS)
        if desk.agent is not None and desk.for_task != task:
            self._close(desk)
        if desk.agent is None:
            if self._stopping:
                raise stopping()
            desk.agent, desk.for_task = self._open_agent(desk.name, desk.approve, task), task
        with self._lock:
            self._opened[desk.name] = desk
            self._opened.move_to_end(desk.name)
        self._close_others(desk)
        return desk.agent

    def _close_others(self, but: Desk) -> None:
        """Close agents that were used longest ago while more are open than may be. One at work stays."""
        with self._lock:
            much = len(self._opened) - self._limits.open_agents
            idle = [desk for desk in self._opened.values() if desk is not but and desk.is_idle] if much > 0 else []
        for desk in idle[: max(0, much)]:
            if desk.lock.acquire(blocking=False):
                try:
                    if desk.is_idle:
                        self._close(desk)
                finally:
                    desk.lock.release()

    def _close(self, desk: Desk) -> None:
        """Close the agent of a desk, which is locked."""
        agent, desk.agent = desk.agent, None
        with self._lock:
            self._opened.pop(desk.name, None)
        if agent is not None:
            try:
                agent.close()
            except (PagerError, OSError):
                log.exception("an agent was not closed as it should be")

    # the end

    def stop(self) -> bool:
        """Take nothing more, let turns end for a while, make the others stop at their next step, and close all agents.
        Return False if one was still at work at the end: what it did is saved all the same."""
        with self._lock:
            self._stopping = True
            left = [job for desk in self._desks.values() for job in desk.jobs]
            for desk in self._desks.values():
                desk.jobs.clear()
            self._waiting = 0
            running = [desk.running.future for desk in self._running if desk.running]
        for job in left:
            with suppress(Exception):
                job.future.set_exception(stopping())
        _, unfinished = wait(running, self._limits.grace_seconds)
        if unfinished:
            for desk in list(self._running):
                if desk.agent is not None:
                    desk.agent.stop()
            _, unfinished = wait(unfinished, self._limits.grace_seconds)
        self._pool.shutdown(wait=not unfinished, cancel_futures=True)
        for desk in list(self._desks.values()):
            if desk.is_idle and desk.lock.acquire(timeout=self._limits.grace_seconds):  # a short call may use it
                self._close(desk)
                desk.lock.release()
        return not unfinished
