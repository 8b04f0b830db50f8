"""Long tasks: turns that go on until the agent says that the task is done, or a limit holds.

What is needed to resume a task is stored in the memory and committed with each step, so a task survives whatever ends
its process.
"""

import json
from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, replace
from typing import Literal

from agents.events import Event, Stopped, ToolStarted
from agents.loop import Loop
from agents.meter import Meter
from agents.tools.functions import Json, Tool, definitions_of
from pager.errors import RejectedError
from pager.memory import Memory
from pager.reader import MemoryReader
from pager.types import BlockSpec

STORED_AS = "task"
TOOL_NAMES = ("task_done",)
NUDGES = 3  # in a row, without a call in between
NUDGE = (  # in turns: a small model follows what comes first, and said nothing at all to the same words again
    "You stopped without calling task_done. If the task is not done, go on with its next step; if it is, call"
    " task_done. The task was:\n",
    "You stopped without calling task_done. If the task is done, call it; if not, go on with its next step. The task"
    " was:\n",
)
NUDGE_CHARACTERS = 4000
PLAN_BLOCK = BlockSpec(description="Your plan for the task: keep it current, mark what is done.", limit_tokens=800)
_WITH_PLAN = """\
You work on a long task by yourself. Keep the plan in the core block "plan": write it first, then mark what is done.
Store what you find out in the archive. A person may write in between: when what they asked for is done, call task_done
with the page id of their message, and go on. When the whole task is done, call task_done."""
_ALONE = "You work on a long task by yourself. {}When all is done, call task_done with a summary of what you found."
INSTRUCTIONS = {  # by the tools for the memory: each speaks of what these can do
    "pager": _WITH_PLAN, "anthropic": _WITH_PLAN, "few": _ALONE.format("Call remember for what you find out. "),
    "none": _ALONE.format(""),
}  # fmt: skip
PLANS = frozenset({"pager", "anthropic"})  # the tools with which a plan in core can be written


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it is stored: its text, its state, and what it has spent."""

    text: str
    step: str = ""  # where it was asked for
    sources: tuple[str, ...] = ()  # the untrusted ones of its text
    state: Literal["open", "done", "dropped"] = "open"
    summary: str = ""
    steps: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    stopped: str = ""

    def nudge(self, number: int) -> str:
        """Return what the agent reads when it stops too early. The task's own turn is over, so it is repeated."""
        rest = f"… (the rest is in {self.step})" if len(self.text) > NUDGE_CHARACTERS else ""
        return NUDGE[number % len(NUDGE)] + self.text[:NUDGE_CHARACTERS] + rest


def current(memory: Memory | MemoryReader) -> Task | None:
    """Return the newest task of this memory, done or not."""
    text = memory.load_value(STORED_AS)
    return Task(**json.loads(text)) if text else None


def store(memory: Memory, task: Task) -> None:
    """Store a task as the newest one."""
    memory.save_value(STORED_AS, json.dumps(asdict(task), ensure_ascii=False))


class TaskTools:
    """The tool with which an agent ends its task."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @classmethod
    def definitions(cls) -> list[Json]:
        """Return the definitions of the tools, with which their memory has to be opened."""
        return definitions_of(cls, TOOL_NAMES)

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [Tool.of(self.task_done, memory=True, idempotent=True)]

    def task_done(self, summary: str, step: str | None = None) -> str:
        """Say that the task is done.

        Args:
            summary: What was done and what came of it, for the person who asked.
            step: Leave it out. Only when a later message is done and the task goes on: the page id of that message.
        """
        task = current(self._memory)
        if task is None:
            raise RejectedError("there is no open task, so nothing can be marked as done.")
        if task.state == "done":
            raise RejectedError("the task is done already, and its summary stands.")
        if step == task.step:
            raise RejectedError(f"{step} is the task itself: when all of it is done, call task_done without a step.")
        if step:
            self._memory.mark_done(step)
            return f"{step} is marked as done. Go on with the task."
        store(self._memory, replace(task, state="done", summary=summary))
        return "The task is done."


class TaskRunner:
    """Made by `Agent.tasks`. `hold` locks the agent while a task runs."""

    def __init__(
        self, memory: Memory, loop: Loop, meter: Meter, hold: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._memory = memory
        self._loop = loop
        self._meter = meter
        self._hold = hold

    def start(self, text: str, *, sources: Collection[str] = ()) -> Generator[Event]:
        """Start a task and yield what happens. Raise RejectedError if another one is still open. Untrusted `sources`
        of the text label what the agent writes."""
        with self._hold():
            task = current(self._memory)
            if task and task.state == "open":
                raise RejectedError(f"a task is open: {task.text[:80]!r}. Resume it, or drop it and start anew.")
            self._meter.start()
            if not (yield from self._loop.make_room()):
                return
            with self._memory.transaction():
                step = self._memory.append_user(text, source=sources)
                store(self._memory, Task(text, step=step, sources=tuple(sources)))
            yield from self._go_on()

    def resume(self) -> Generator[Event]:
        """Go on with the newest task, however it ended. What it has spent until then counts."""
        with self._hold():
            task = current(self._memory)
            if task is None:
                raise RejectedError("there is no task to resume; start one with its text.")
            if task.state == "dropped":
                raise RejectedError(f"the task was dropped: {task.text[:80]!r}. Start one with its text.")
            self._meter.start(steps=task.steps, usd=task.usd, seconds=task.seconds)
            if task.state == "done" and not self._memory.turn_is_open:
                yield Stopped("done", task.summary)
                return
            yield from self._go_on()

    def drop(self) -> None:
        """End an open task without finishing it."""
        task = current(self._memory)
        if task and task.state == "open":
            store(self._memory, replace(task, state="dropped", stopped="dropped"))

    def _go_on(self) -> Generator[Event]:
        nudges = 0
        while True:
            worked = False
            stopped = Stopped("answered")
            with closing(self._loop.run(on_reply=self._store, is_done=self._is_done)) as events:
                for event in events:
                    worked = worked or isinstance(event, ToolStarted)
                    if isinstance(event, Stopped):
                        stopped = event
                    else:
                        yield event
            task = self._store(stopped.reason)
            if task.state == "done" and not self._memory.turn_is_open:
                if self._memory.process_inbox() and self._memory.turn_is_open:
                    continue  # a message came before the task had ended
                yield Stopped("done", task.summary)
                return
            if stopped.reason not in ("answered", "cut"):
                yield stopped
                return
            nudges = 0 if worked else nudges
            if nudges == NUDGES:
                yield Stopped("answered", "the agent stopped and did not say that the task is done; resume it.")
                return
            if over := self._meter.over():
                self._store(over.reason)
                yield over
                return
            self._memory.append_user(task.nudge(nudges), source=task.sources)
            nudges += 1

    def _is_done(self) -> bool:
        task = current(self._memory)
        return task is not None and task.state == "done"

    def _store(self, stopped: str = "") -> Task:
        task = current(self._memory)
        assert task is not None
        task = replace(task, steps=self._meter.steps, usd=self._meter.usd, seconds=self._meter.seconds, stopped=stopped)
        store(self._memory, task)
        return task
