"""Long tasks: turns that go on until the agent says that the task is done, or a limit holds.

What is needed to resume a task is stored in the memory and committed with each step, so a task survives whatever ends
its process.
"""

import json
import re
from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from agents.events import Event, Paged, Planned, Stopped, ToolStarted
from agents.loop import Loop
from agents.meter import Meter
from agents.tools.functions import ErrorText, Json, Tool, definitions_of
from agents.tools.results import ResultSchema
from pager import Checklist, shortened
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
ASKED_RESULT = "The result that you give to task_done has to fit this JSON schema: "
NUDGE_CHARACTERS = 4000
MISFITS = 2  # results that do not fit, after which the next one ends the task as failed
PLAN = "plan"  # the core block with the plan
PLAN_BLOCK = BlockSpec(
    description="Your plan for the task, a line for each item: - [ ] what is to be done, - [x] what is done.",
    limit_tokens=800,
)
_WITH_PLAN = """\
You work on a long task by yourself. Keep the plan in the core block "plan" as a checklist: write it first, a line
"- [ ] ..." for each item, and make that "- [x] ..." as soon as the item is done. Store what you find out in the
archive. A person may write in between: when what they asked for is done, call task_done with the page id of their
message, and go on. When the whole task is done, call task_done."""
_ALONE = "You work on a long task by yourself. {}When all is done, call task_done with a summary of what you found."
INSTRUCTIONS = {  # by the tools for the memory: each speaks of what these can do
    "pager": _WITH_PLAN, "anthropic": _WITH_PLAN, "few": _ALONE.format("Call remember for what you find out. "),
    "none": _ALONE.format(""),
}  # fmt: skip
_PAGE = re.compile(r"[a-z]\d+")
PLANS = frozenset({"pager", "anthropic"})  # the tools with which a plan in core can be written


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it is stored: its text, its state, and what it has spent."""

    text: str
    step: str = ""  # where it was asked for
    sources: tuple[str, ...] = ()  # the untrusted ones of its text
    state: Literal["open", "done", "failed", "dropped"] = "open"
    summary: str = ""
    result: Any = None  # as JSON
    schema: Json | None = None  # what the result has to fit, if the task asks for more than its agent
    misfits: int = 0  # results that did not fit
    item: str = ""  # of the plan: that for which memory was looked through last
    steps: int = 0
    usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    stopped: str = ""

    @property
    def is_over(self) -> bool:
        """Return True if the agent has ended it."""
        return self.state in ("done", "failed")

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


def drop_withdrawn(memory: Memory, steps: Collection[str]) -> None:
    """Drop the present task if it was asked for in one of these steps, which were withdrawn."""
    task = current(memory)
    if task and task.state == "open" and task.step in steps:
        store(memory, replace(task, state="dropped", stopped="dropped"))


def plan_of(memory: Memory) -> Checklist | None:
    """Return the plan of the present task; None while there is none."""
    return next((Checklist.read(block.value) for block in memory.core() if block.name == PLAN), None)


class TaskTools:
    """The tool with which an agent ends its task."""

    def __init__(self, memory: Memory, output: ResultSchema | None = None) -> None:
        self._memory = memory
        self.output = output  # what the result of the present task has to fit

    @classmethod
    def definitions(cls, output: ResultSchema | None = None) -> list[Json]:
        """Return the definitions of the tools, with which their memory has to be opened."""
        definitions = definitions_of(cls, TOOL_NAMES)
        return [output.within(each, "result") for each in definitions] if output else definitions

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [Tool.of(self.task_done, memory=True, idempotent=True)]

    def task_done(self, summary: str, result: Any = None, step: str | None = None) -> str:
        """Say that the task is done.

        Args:
            summary: What was done and what came of it, for the person who asked.
            result: The result as data, if one is asked for.
            step: Leave it out. Only when a later message is done and the task goes on: the page id of that message.
        """
        task = current(self._memory)
        if task is None:
            raise RejectedError("there is no open task, so nothing can be marked as done.")
        if task.is_over:
            raise RejectedError(f"the task is {task.state} already, and its summary stands.")
        # Small models fill in every argument: what names no other message means the task.
        if step and step != task.step and _PAGE.fullmatch(step):
            self._memory.mark_done(step)
            return f"{step} is marked as done. Go on with the task."
        if self.output and (fault := self.output.fault_of(result)):
            return self._refuse(replace(task, misfits=task.misfits + 1, summary=summary), fault)
        store(self._memory, replace(task, state="done", summary=summary, result=result))
        return "The task is done."

    def _refuse(self, task: Task, fault: str) -> ErrorText:
        """Count a result that does not fit. The task stays open, but not for ever."""
        is_last = task.misfits > MISFITS
        store(self._memory, replace(task, state="failed") if is_last else replace(task, summary=""))
        end = "The task has failed." if is_last else "Call task_done again with one that does."
        return ErrorText(f"The result does not fit: {fault}. {end}")


class TaskRunner:
    """Made by `Agent.tasks`. `hold` locks the agent while a task runs."""

    def __init__(
        self, memory: Memory, loop: Loop, meter: Meter, hold: Callable[[], AbstractContextManager[None]],
        tools: TaskTools, output: ResultSchema | None, *, observed: Callable[[Generator[Event], str], Generator[Event]],
    ) -> None:  # fmt: skip
        self._memory = memory
        self._observed = observed
        self._tools = tools
        self._output = output  # what the result of every task of this agent has to fit
        self._loop = loop
        self._meter = meter
        self._hold = hold

    def start(
        self, text: str, *, sources: Collection[str] = (), output: ResultSchema | None = None,
        also: Callable[[], object] | None = None,
    ) -> Generator[Event]:  # fmt: skip
        """Start a task and yield what happens. Raise RejectedError if another one is still open.

        Untrusted `sources` of the text label what the agent writes. Its result has to fit `output`, of which the agent
        reads behind the text, or else what is configured. `also` is called in the transaction that stores the task.
        """
        return self._observed(self._start(text, sources, output, also), text)

    def _start(
        self, text: str, sources: Collection[str], output: ResultSchema | None, also: Callable[[], object] | None
    ) -> Generator[Event]:
        with self._hold():
            task = current(self._memory)
            if task and task.state == "open":
                raise RejectedError(
                    f"a task is open: {shortened(task.text, 80)!r}. Resume it, or drop it and start anew."
                )
            self._meter.start(is_task=True)
            schema = output.schema if output and output != self._output else None
            self._tools.output = output or self._output
            asked = f"{text}\n\n{ASKED_RESULT}{json.dumps(schema, ensure_ascii=False)}" if schema else text
            if not (yield from self._loop.make_room()):
                return
            with self._memory.transaction():
                step = self._memory.append_user(asked, source=sources)
                store(self._memory, Task(text, step=step, sources=tuple(sources), schema=schema))
                if also:
                    also()
            yield from self._go_on()

    def resume(self, *, output: ResultSchema | None = None) -> Generator[Event]:
        """Go on with the newest task, however it ended. What it has spent until then counts.

        `output` is what it was started with: a class may check more than the schema that was stored.
        """
        return self._observed(self._resume(output), "")

    def _resume(self, output: ResultSchema | None) -> Generator[Event]:
        with self._hold():
            task = current(self._memory)
            if task is None:
                raise RejectedError("there is no task to resume; start one with its text.")
            if task.state == "dropped":
                raise RejectedError(f"the task was dropped: {shortened(task.text, 80)!r}. Start one with its text.")
            self._meter.start(
                steps=task.steps, usd=task.usd, tokens=task.tokens, seconds=task.seconds, is_task=True
            )  # fmt: skip
            self._tools.output = output or (ResultSchema(task.schema) if task.schema else self._output)
            if task.is_over and not self._memory.turn_is_open:
                yield _ended(task)
                return
            yield from self._go_on()

    def drop(self) -> None:
        """End an open task without finishing it."""
        task = current(self._memory)
        if task and task.state == "open":
            store(self._memory, replace(task, state="dropped", stopped="dropped"))

    def _go_on(self) -> Generator[Event]:
        nudges = 0
        plan = plan_of(self._memory)
        yield from _planned(plan)
        while True:
            worked = False
            stopped = Stopped("answered")
            with closing(self._loop.run(on_reply=self._store, before_request=self._prepare)) as events:
                for event in events:
                    worked = worked or isinstance(event, ToolStarted)
                    if isinstance(event, Stopped):
                        stopped = event
                    else:
                        yield event
                    if isinstance(event, Paged) and event.movement.event == "core":
                        before, plan = plan, plan_of(self._memory)
                        yield from _planned(plan) if plan != before else ()
            task = self._store(stopped.reason)
            if task.is_over and not self._memory.turn_is_open:
                if self._memory.process_inbox() and self._memory.turn_is_open:
                    continue  # a message came before the task had ended
                yield _ended(task)
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

    def _prepare(self) -> bool:
        """Prepare the next request of a task. Return False if there is none to come.

        When the plan has come to another item, what the memory has for it is put behind the last result, once.
        """
        task = current(self._memory)
        if task is None or task.is_over:
            return False
        plan = plan_of(self._memory)
        item = plan.current if plan else ""
        if item != task.item:
            with self._memory.transaction():
                if not item or self._memory.recall(item) is not None:
                    store(self._memory, replace(task, item=item))
        return True

    def _store(self, stopped: str = "") -> Task:
        task = current(self._memory)
        assert task is not None
        spent = self._meter
        task = replace(
            task, steps=spent.steps, usd=spent.usd, tokens=spent.tokens, seconds=spent.seconds, stopped=stopped
        )
        store(self._memory, task)
        return task


def _ended(task: Task) -> Stopped:
    return Stopped("done" if task.state == "done" else "failed", task.summary, task.result)


def _planned(plan: Checklist | None) -> Generator[Planned]:
    if plan:
        yield Planned(plan.done, plan.total, plan.current)
