"""One agent: its configuration, its memory, its model and its tools. Callers start here.

    >>> agent = Agent.load("configs/assistant.yaml", home="state")
    >>> for event in agent.stream("hello"): ...
    >>> agent.turn("what did I say?").text

A failed model call leaves the turn open: `resume` tries again, and the text need not be sent twice.
"""

import asyncio
import os
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from threading import Lock, Thread, get_ident
from typing import NamedTuple, Self

from agents.assembly import Parts, assemble
from agents.config.agent_config import AgentConfig
from agents.config.agent_config import load as load_config
from agents.events import Event, Paged, Replied, Stopped, StreamLost, Text
from agents.logs import log
from agents.loop import Approve, Loop, Patience
from agents.meter import Meter
from agents.models.model import Model
from agents.tasks import TaskRunner
from pager.clock import Clock, SystemClock
from pager.errors import PagerError, RejectedError
from pager.home import Home
from pager.memory import Memory
from pager.types import Movement, Usage


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that was answered, or that stopped on its way: `stopped` says which."""

    text: str
    steps: tuple[str, ...]
    usage: Usage
    paging: tuple[Movement, ...]
    stopped: Stopped


class Agent:
    """Made by `Agent.load`. Threads that call one agent wait for each other."""

    def __init__(self, config: AgentConfig, parts: Parts, clock: Clock, approve: Approve, patience: Patience) -> None:
        self.config = config
        self.memory: Memory = parts.memory
        self.meter: Meter = parts.meter
        self.clock = clock
        self.remarks: list[str] = parts.remarks  # for its person to read once, such as a window that was assumed
        self.background = BackgroundWork(parts.memory)
        self._parts = parts
        self._loop = Loop(parts.memory, parts.model, parts.tools, parts.meter, approve, patience)
        self._one_at_a_time = Lock()
        self._in_thread: int | None = None
        self._running: Flag | None = None  # the present turn, by the flag that cancels it

    @classmethod
    def load(
        cls, file: str | Path, *, home: str | Path | None = None, as_name: str | None = None,
        environ: Mapping[str, str] | None = None, approve: Approve | None = None, patience: Patience | None = None,
        clock: Clock | None = None, task: bool = False, model: Model | None = None,
    ) -> Self:  # fmt: skip
        """Return the agent that a YAML file describes. Raise ConfigError if the file cannot be used.

        `as_name` is another instance of it, with a memory of its own. With `task` it gets what a long task needs, and
        `tasks()` runs them. A `model` answers instead of the configured one; the caller closes it.
        """
        if not isinstance(file, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"file is {file!r:.100}; give the path of a YAML file.")
        environ = os.environ if environ is None else environ
        clock = clock or SystemClock()
        config = load_config(Path(file), environ)
        directory = Home.locate(home, environ).agent_files(as_name or config.name).directory
        parts = assemble(config, directory, clock, task=task, model=model)
        agent = cls(config, parts, clock, approve or (lambda _: None), patience or Patience())
        agent.background.wake()
        return agent

    def stream(self, text: str, *, name: str | None = None) -> Generator[Event]:
        """Say something and yield what happens until it is answered. Close the generator to leave it at any moment."""
        return self._stream(text, name, Flag())

    def _stream(self, text: str, name: str | None, cancelled: Flag) -> Generator[Event]:
        with self._hold(cancelled):
            if cancelled.is_set():
                yield Stopped("cancelled", "it was cancelled before it began; nothing was said.")
                return
            self.meter.start()
            if not (yield from self._loop.make_room()):
                return
            self.memory.append_user(text, name=name)
            yield from self._loop.run()

    def turn(self, text: str, *, name: str | None = None) -> Turn:
        """Say something and return the answered turn."""
        return _collect(self.stream(text, name=name))

    async def aturn(self, text: str, *, name: str | None = None) -> Turn:
        """Run `turn` in a thread. Cancelled, it stops at its next step and can be resumed; if it was still waiting for
        another turn to end, it never begins."""
        cancelled = Flag()
        try:
            return await asyncio.to_thread(lambda: _collect(self._stream(text, name, cancelled)))
        except asyncio.CancelledError:
            cancelled.set()
            if self._running is cancelled:
                self.stop()
            raise

    def resume_stream(self) -> Generator[Event]:
        """Go on with an open turn and yield what happens."""
        with self._hold():
            self.meter.start()
            yield from self._loop.run()

    def resume(self) -> Turn:
        """Finish an open turn: after a failed call, a stop, a crash, or an approval."""
        return _collect(self.resume_stream())

    @contextmanager
    def _hold(self, cancelled: Flag | None = None) -> Generator[None]:
        """Hold the agent for one turn. A second turn in the same thread would wait for itself for ever."""
        if self._in_thread == get_ident() and self._one_at_a_time.locked():
            raise RejectedError("this thread is in the middle of a turn of this agent: finish it, or close its events.")
        with self._one_at_a_time:
            self._in_thread, self._running = get_ident(), cancelled
            try:
                self._loop.begin()
                yield
            finally:
                self._in_thread = self._running = None
                self.background.wake()

    def tasks(self) -> TaskRunner:
        """Return what runs long tasks of this agent, which has to be loaded with `task=True`."""
        return TaskRunner(self.memory, self._loop, self.meter, self._hold)

    def stop(self) -> None:
        """Make the running turn return at its next step; it can be resumed."""
        self._loop.stop()

    def close(self) -> None:
        """Finish the background work at hand and close the memory, the model and the tools."""
        with self._parts.opened:
            self.background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Progress(NamedTuple):
    """The number of embedded texts, and of all."""

    done: int
    total: int


class BackgroundWork:
    """A thread between turns that embeds what left the prompt, embeds everything again after a change of the embedder,
    and brings the vector index up to date. Searches use what there is; what is not done today is done next time."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._thread: Thread | None = None
        self._closing = Flag()
        self.progress = Progress(0, 0)

    @property
    def is_busy(self) -> bool:
        """Return True while the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def wake(self) -> None:
        """Start the thread if there is pending work and it is not running."""
        if self.is_busy or self._closing.is_set() or not self._memory.has_background_work:
            return
        self.progress = Progress(0, self._memory.count_unembedded())
        self._thread = Thread(target=self._work, name="selfpager embedding", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            while not self._closing.is_set() and (count := self._memory.embed_pending(stop=self._closing.is_set)):
                done = self.progress.done + count
                self.progress = Progress(done, max(self.progress.total, done))
        except PagerError:
            log.exception("embedding stopped; it goes on after the next turn")

    def finish(self) -> None:
        """Wait until there is no pending work."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Stop after the batch at hand, which is a few texts."""
        self._closing.set()
        self.finish()


def _collect(events: Generator[Event]) -> Turn:
    """Return the turn that the events make. Text that was streamed before a connection was lost does not count."""
    pieces: list[str] = []
    answer, steps, paging = "", list[str](), list[Movement]()
    total, stopped = Usage(), Stopped("answered")
    with closing(events):
        for event in events:
            match event:
                case Text(text):
                    pieces.append(text)
                case StreamLost():
                    pieces.clear()
                case Replied(step=step, usage=usage):
                    steps.append(step)
                    answer = "".join(pieces) or answer
                    pieces.clear()
                    total = total + usage if usage else total
                case Paged(movement):
                    paging.append(movement)
                case Stopped():
                    stopped = event
                case _:
                    pass
    return Turn(answer, tuple(steps), total, tuple(paging), stopped)
