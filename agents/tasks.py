"""Long tasks: a turn that goes on until the agent says that it is done, or a limit holds.

What a task needs to be taken up again stands in the memory itself, committed with each step: a task survives whatever
ends its process, and is told where it stopped and why.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import asdict, dataclass, replace
from typing import Literal

from agents.events import Event, Replied, Stopped, ToolStarted
from agents.loop import Loop
from agents.meter import Meter
from agents.tools import Tool
from pager.errors import Refused
from pager.memory import Memory
from pager.types import BlockSpec

NOTE = "task"
NUDGES = 3
NUDGE = "You stopped without calling task_done. If the task is done, call it; if not, go on with the next step."
PLAN_BLOCK = BlockSpec(description="Your plan for the task: keep it current, mark what is done.", limit_tokens=800)
INSTRUCTIONS = """\
You work on a long task by yourself. Keep the plan in the core block "plan": write it first, then mark what is done.
Store what you find out in the archive. When the whole task is done, call task_done."""


@dataclass(frozen=True, slots=True)
class Task:
    text: str
    state: Literal["open", "done"] = "open"
    summary: str = ""
    steps: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    stopped: str = ""


def current(memory: Memory) -> Task | None:
    """The newest task of this memory, done or not."""
    note = memory.note(NOTE)
    return Task(**json.loads(note)) if note else None


def keep(memory: Memory, task: Task) -> None:
    memory.put_note(NOTE, json.dumps(asdict(task), ensure_ascii=False))


class TaskTools:
    """Made before the memory, whose prompt begins with their definitions; `bind` joins the two."""

    _memory: Memory

    def bind(self, memory: Memory) -> None:
        self._memory = memory

    def tools(self) -> list[Tool]:
        return [Tool.of(self.task_done, memory=True, idempotent=True)]

    def task_done(self, summary: str, step: str | None = None) -> str:
        """Say that the task is done.

        Args:
            summary: What was done and what came of it, for the person who asked.
            step: Only when a single later message (s45) is done and the task itself goes on.
        """
        if step:
            self._memory.mark_done(step)
            return f"{step} is marked as done. Go on with the task."
        task = current(self._memory)
        if task is None:
            raise Refused("there is no task to be done.")
        keep(self._memory, replace(task, state="done", summary=summary))
        return "The task is marked as done. Say a last word to the person."


class TaskRunner:
    def __init__(self, memory: Memory, loop: Loop, meter: Meter) -> None:
        self._memory = memory
        self._loop = loop
        self._meter = meter

    def start(self, text: str) -> Generator[Event]:
        """A new task. One that is still open has to be resumed, or ended, first."""
        task = current(self._memory)
        if task and task.state == "open":
            raise Refused(f"a task is still open: {task.text[:80]!r}. Go on with it (--resume), or drop it (--new).")
        with self._memory.transaction():
            keep(self._memory, Task(text))
            self._memory.append_user(text)
        self._meter.start()
        yield from self._go_on()

    def resume(self) -> Generator[Event]:
        task = current(self._memory)
        if task is None:
            raise Refused("there is no task to resume; start one with its text.")
        self._meter.start(steps=task.steps, usd=task.usd, seconds=task.seconds)
        if task.state == "done" and not self._memory.turn_is_open:
            yield Stopped("done", task.summary)
            return
        yield from self._go_on()

    def drop(self) -> None:
        """End an open task without finishing it."""
        task = current(self._memory)
        if task and task.state == "open":
            keep(self._memory, replace(task, state="done", stopped="dropped"))

    def _go_on(self) -> Generator[Event]:
        nudges = 0
        while True:
            worked = False
            stopped = Stopped("answered")
            for event in self._loop.run():
                worked = worked or isinstance(event, ToolStarted)
                if isinstance(event, Replied):
                    self._note()
                if isinstance(event, Stopped):
                    stopped = event
                else:
                    yield event
            task = self._note(stopped.reason)
            if task.state == "done" and stopped.reason in ("answered", "cut"):
                yield Stopped("done", task.summary)
                return
            if stopped.reason not in ("answered", "cut"):
                yield stopped
                return
            nudges = 0 if worked else nudges + 1
            if nudges > NUDGES:
                yield Stopped("answered", "the agent stopped and did not say that the task is done; resume it.")
                return
            self._memory.append_user(NUDGE)

    def _note(self, stopped: str = "") -> Task:
        task = current(self._memory)
        assert task is not None
        task = replace(task, steps=self._meter.steps, usd=self._meter.usd, seconds=self._meter.seconds, stopped=stopped)
        keep(self._memory, task)
        return task
