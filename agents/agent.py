"""One agent: its configuration, its memory, its model and its tools, joined. The composition root of `agents`.

    >>> agent = Agent.load("configs/assistant.yaml", home="state")
    >>> for event in agent.stream("hello"): ...
    >>> agent.turn("what did I say?").text

A failed model call leaves the turn open: `resume` tries again, and nobody sends the text twice.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agents.assembly import Parts, assemble
from agents.config.agent_config import AgentConfig
from agents.config.agent_config import load as load_config
from agents.events import Event, Paged, Replied, Stopped, StreamLost, Text
from agents.loop import Approve, Loop, Patience
from agents.meter import Meter
from agents.models.model import Model
from agents.tasks import TaskRunner
from pager.clock import Clock, SystemClock
from pager.errors import RejectedError
from pager.home import Home
from pager.memory import Memory
from pager.types import Movement, Usage


@dataclass(frozen=True, slots=True)
class Turn:
    """An answered turn, or how far it came."""

    text: str
    steps: tuple[str, ...]
    usage: Usage
    paging: tuple[Movement, ...]
    stopped: Stopped


class Agent:
    """Made by `Agent.load`. Threads that call one agent take turns."""

    def __init__(self, config: AgentConfig, parts: Parts, clock: Clock, approve: Approve, patience: Patience) -> None:
        self.config = config
        self.memory: Memory = parts.memory
        self.meter: Meter = parts.meter
        self._parts = parts
        self._loop = Loop(parts.memory, parts.model, parts.tools, meter=parts.meter, approve=approve, patience=patience)
        self.background = parts.background
        self._one_at_a_time = threading.Lock()
        self._in_thread: int | None = None
        self._running: threading.Event | None = None  # the present turn, by what cancels it
        self.clock = clock

    @classmethod
    def load(
        cls,
        file: str | Path,
        *,
        home: str | Path | None = None,
        as_name: str | None = None,
        environ: Mapping[str, str] | None = None,
        approve: Approve | None = None,
        patience: Patience | None = None,
        clock: Clock | None = None,
        task: bool = False,
        model: Model | None = None,
    ) -> Self:
        """The agent that a YAML file describes. `as_name` is another instance of it, with a memory of its own.

        With `task` it gets what a long task needs, and `tasks()` runs them. A `model` that is handed in answers
        instead of the configured one; whoever made it closes it.
        """
        environ = os.environ if environ is None else environ
        clock = clock or SystemClock()
        config = load_config(Path(file), environ)
        directory = Home.locate(home, environ).files(as_name or config.name).directory
        parts = assemble(config, directory, clock, task=task, model=model)
        parts.background.wake()
        return cls(config, parts, clock, approve or _nobody_to_ask, patience or Patience())

    # turns

    def stream(self, text: str, *, name: str | None = None) -> Generator[Event]:
        """Say something and yield what happens until it is answered. Close the generator to leave it at any moment."""
        return self._stream(text, name, threading.Event())

    def _stream(self, text: str, name: str | None, cancelled: threading.Event) -> Generator[Event]:
        with self._turn(cancelled):
            if cancelled.is_set():
                yield Stopped("cancelled", "it was cancelled before it began; nothing was said.")
                return
            self.meter.start()
            if not (yield from self._loop.make_room()):
                return
            self.memory.append_user(text, name=name)
            yield from self._loop.run()

    def turn(self, text: str, *, name: str | None = None) -> Turn:
        return _drained(self.stream(text, name=name))

    async def aturn(self, text: str, *, name: str | None = None) -> Turn:
        """`turn` in a thread. Cancelled, it stops at its next step and can be resumed; while it waits for another turn
        to end, it is never begun."""
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(lambda: _drained(self._stream(text, name, cancelled)))
        except asyncio.CancelledError:
            cancelled.set()
            if self._running is cancelled:
                self.stop()
            raise

    def resume_stream(self) -> Generator[Event]:
        with self._turn():
            self.meter.start()
            yield from self._loop.run()

    def resume(self) -> Turn:
        """Finish an open turn: after a failed call, a stop, a crash, or an approval."""
        return _drained(self.resume_stream())

    @contextmanager
    def _turn(self, cancelled: threading.Event | None = None) -> Generator[None]:
        """One turn at a time. Two in one thread would wait for each other for ever."""
        if self._in_thread == threading.get_ident() and self._one_at_a_time.locked():
            raise RejectedError("this thread is in the middle of a turn of this agent: finish it, or close its events.")
        with self._one_at_a_time:
            self._in_thread, self._running = threading.get_ident(), cancelled
            self._loop.begin()
            try:
                yield
            finally:
                self._in_thread = self._running = None
                self.background.wake()

    def tasks(self) -> TaskRunner:
        """Long tasks of this agent; it has to be loaded with `task=True`."""
        return TaskRunner(self.memory, self._loop, self.meter, self._turn)

    @property
    def remarks(self) -> list[str]:
        """What its person should hear once, such as a window that had to be assumed."""
        return self._parts.remarks

    def stop(self) -> None:
        """Make the running turn return at its next step; it can be resumed."""
        self._loop.stop()

    def close(self) -> None:
        self._parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _nobody_to_ask(_: object) -> None:
    return None


def _drained(events: Generator[Event]) -> Turn:
    """What a turn came to. Text that was streamed before a connection was lost does not count."""
    said: list[str] = []
    kept: list[str] = []
    steps: list[str] = []
    moved: list[Movement] = []
    total = Usage()
    stopped = Stopped("answered")
    with closing(events):
        for event in events:
            match event:
                case Text(text):
                    said.append(text)
                case StreamLost():
                    said.clear()
                case Replied(step=step, usage=usage):
                    steps.append(step)
                    kept.append("".join(said))
                    said.clear()
                    total = _sum(total, usage) if usage else total
                case Paged(movement):
                    moved.append(movement)
                case Stopped():
                    stopped = event
                case _:
                    pass
    return Turn(next((text for text in reversed(kept) if text), ""), tuple(steps), total, tuple(moved), stopped)


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_input_tokens + other.cache_read_input_tokens,
        one.cache_creation_input_tokens + other.cache_creation_input_tokens,
    )
