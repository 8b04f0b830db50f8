"""One agent: its configuration, its memory, its model and its tools. Callers start here.

    >>> agent = Agent.load("configs/assistant.yaml", home="state")
    >>> agent = Agent(name="clerk", model="claude-sonnet-5-5", tools=[fetch_order], home="state")  # without a file
    >>> for event in agent.stream("hello"): ...
    >>> agent.turn("what did I say?").text

A failed model call leaves the turn open: `resume` tries again, and the text need not be sent twice.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Event as Flag
from threading import Lock, Thread, get_ident
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from agents.assembly import assemble
from agents.config.agent_config import AgentConfig
from agents.config.agent_config import load as load_config
from agents.config.arguments import from_arguments
from agents.events import Event, Paged, Replied, Stopped, StreamLost, Text
from agents.logs import log
from agents.loop import Approve, Loop
from agents.meter import Meter, Prices, RunLimits
from agents.models.model import Model
from agents.models.patience import Patience
from agents.sleep.idle import IdleSleep
from agents.tasks import TaskRunner, drop_withdrawn
from agents.tools.functions import Tool
from agents.tools.results import ResultSchema
from pager import BlockSpec, EmbedderChoice, Limits, Prefetch, Withdrawn
from pager.clock import Clock, SystemClock
from pager.errors import PagerError, RejectedError, brief
from pager.home import Home, Place
from pager.memory import Memory
from pager.reader import MemoryReader
from pager.sleep import Proposal
from pager.types import Movement, Usage

if TYPE_CHECKING:
    from agents.telemetry import Observed

CUT_MARK = " [the person cut the answer off here]"


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that was answered, or that stopped on its way: `stopped` says which."""

    text: str
    steps: tuple[str, ...]
    usage: Usage
    paging: tuple[Movement, ...]
    stopped: Stopped


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A task that is done, or that stopped on its way: `stopped` says which. `summary` is then what to do."""

    summary: str
    result: Any  # what was asked for as `output`; None if the task is not done
    usage: Usage
    stopped: Stopped


class Agent:
    """An agent, open until it is closed. Threads that call one agent wait for each other."""

    def __init__(
        self, *, name: str, model: str | Model, tools: Sequence[Callable[..., Any] | Tool] = (), instructions: str = "",
        core: Mapping[str, str | BlockSpec] | None = None, window: int | Limits | None = None,
        home: str | Path | Home | None = None, memory_tools: Literal["pager", "few", "anthropic", "none"] = "pager",
        embedder: EmbedderChoice = "default", prefetch: Prefetch | None = None, limits: RunLimits | None = None,
        prices: Prices | None = None, task: bool = False, skills: str | Path | None = None, output: Any = None,
        approve: Approve | None = None, patience: Patience | None = None, clock: Clock | None = None,
    ) -> None:  # fmt: skip
        """Open an agent without a YAML file. Raise ConfigError if an argument cannot be used.

        `model` is the id of a model of Anthropic's, or a `Model` object, which the caller closes: it may answer for
        several agents. `tools` are functions with type hints and a docstring, or `Tool.of(function, approve="always")`
        for one with options. `core` has the texts of blocks by their names. `window` is the largest request together
        with its reply, in tokens. `skills` is a directory of skills. With `task` the agent can `run` long tasks, whose
        results have to fit `output`, a pydantic class. What is left out has the default of the YAML file.
        """
        config = from_arguments(
            name=name, model=model, tools=tools, instructions=instructions, core=core, window=window,
            memory_tools=memory_tools, embedder=embedder, prefetch=prefetch, limits=limits, prices=prices,
            skills=skills,
        )  # fmt: skip
        place = Home.locate(home).place(name)
        made = None if isinstance(model, str) else model
        own = None if embedder == "default" else embedder
        self._open(
            config, place, approve, patience, clock, task=task, model=made, tools=tools, embedder=own, output=output
        )

    def _open(
        self, config: AgentConfig, place: Place, approve: Approve | None, patience: Patience | None,
        clock: Clock | None, **given: Any,
    ) -> None:  # fmt: skip
        self.config = config
        self._place = place
        self._is_helper = False
        self.clock = clock or SystemClock()
        self.is_new = not place.exists()  # there was no memory before
        open_helper = partial(self._open_helper, patience=patience, clock=clock)
        self._parts = assemble(config, place, self.clock, open_helper=open_helper, **given)
        self.memory: Memory = self._parts.memory
        self.meter: Meter = self._parts.meter
        self.remarks = self._parts.remarks  # for its person to read once, such as a window that was assumed
        self.background = BackgroundWork(self.memory)
        self._loop = Loop(
            self.memory, self._parts.model, self._parts.tools, self.meter, approve or (lambda _: None),
            patience or Patience(),
        )  # fmt: skip
        self._one_at_a_time = Lock()
        self._in_thread: int | None = None
        self._idle: IdleSleep | None = None
        self._running: Flag | None = None  # the present turn, by the flag that cancels it
        self.background.wake()

    @classmethod
    def load(
        cls, file: str | Path, *, home: str | Path | Home | None = None, as_name: str | None = None,
        environ: Mapping[str, str] | None = None, approve: Approve | None = None, patience: Patience | None = None,
        clock: Clock | None = None, task: bool = False, model: Model | None = None,
    ) -> Self:  # fmt: skip
        """Return the agent that a YAML file describes. Raise ConfigError if the file cannot be used.

        `as_name` is another instance of it, with a memory of its own. With `task` it gets what a long task needs, and
        `tasks()` runs them. A `model` answers instead of the configured one; the caller closes it.
        """
        if not isinstance(file, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"file is {brief(file)}; give the path of a YAML file.")
        environ = os.environ if environ is None else environ
        config = load_config(Path(file), environ)
        place = Home.locate(home, environ).place(as_name or config.name)
        agent = cls.__new__(cls)  # what its constructor would read from arguments is in the file
        agent._open(config, place, approve, patience, clock, task=task, model=model)
        return agent

    @property
    def model(self) -> Model:
        """Return the model that answers."""
        return self._parts.model

    @property
    def tool_names(self) -> frozenset[str]:
        """Return the names of the tools that it runs, or its provider does."""
        return frozenset(tool.name for tool in self._parts.tools)

    def reading(self) -> MemoryReader:
        """Return a reader of the memory, to be closed. The ledger logs nothing of its searches."""
        return MemoryReader.open(self._place)

    @classmethod
    def _open_helper(cls, config: AgentConfig, place: Place, approve: Approve, **given: Any) -> Self:
        """Return an agent that works on a task for another one."""
        agent = cls.__new__(cls)
        agent._open(config, place, approve, task=True, **given)
        agent._is_helper = True
        return agent

    def stream(
        self, text: str, *, name: str | None = None, also: Callable[[], object] | None = None
    ) -> Generator[Event]:
        """Say something and yield what happens until it is answered. Close the generator to leave it at any moment.

        `also` is called in the transaction that stores what was said.
        """
        return self._stream(text, name, Flag(), also)

    def _stream(
        self, text: str, name: str | None, cancelled: Flag, also: Callable[[], object] | None = None
    ) -> Generator[Event]:
        return self._observed(self._answer(text, name, cancelled, also), text)

    def _observed(self, events: Generator[Event], said: str = "") -> Generator[Event]:
        """Return the events; with spans and metrics if the program has set up OpenTelemetry. A helper's are made of the
        events of whom it works for."""
        if self._is_helper or not _is_watched():
            return events
        from agents.telemetry import observe

        return observe(events, self._watched, said)

    @cached_property
    def _watched(self) -> "Observed":
        from agents.telemetry import Observed

        return Observed(self._place.agent, self.config.model.id, self.config.model.provider, self.memory)

    def _answer(
        self, text: str, name: str | None, cancelled: Flag, also: Callable[[], object] | None
    ) -> Generator[Event]:
        with self._hold(cancelled):
            if cancelled.is_set():
                yield Stopped("cancelled", "it was cancelled before it began; nothing was said.")
                return
            self.meter.start()
            if not (yield from self._loop.make_room()):
                return
            with self.memory.transaction() if also else nullcontext():
                self.memory.append_user(text, name=name)
                if also:
                    also()
            yield from self._loop.run()

    def stream_told(
        self, tell: Callable[[], bool], *, elsewhere: Collection[str] = (), also: Callable[[], object] = lambda: None
    ) -> Generator[Event]:
        """Yield what happens until that is answered which `tell` appends to the memory, when no other turn runs.

        If it returns False, nothing is asked. Calls of the tools `elsewhere`, which `memory.offer` has told the model
        of, are left to the caller: the turn stops with the reason `calls`, and goes on when they have their results.
        `also` is called in the transaction that stores a reply. What was offered is withdrawn at the end.
        """
        return self._observed(self._answer_told(tell, elsewhere, also))

    def _answer_told(
        self, tell: Callable[[], bool], elsewhere: Collection[str], also: Callable[[], object]
    ) -> Generator[Event]:
        with self._hold():
            self.meter.start()
            try:
                if tell():
                    yield from self._loop.run(also, elsewhere=elsewhere)
                else:
                    yield Stopped("answered")
            finally:
                self.memory.offer()

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
        return self._observed(self._go_on())

    def _go_on(self) -> Generator[Event]:
        with self._hold():
            self.meter.start()
            yield from self._loop.run()

    def resume(self) -> Turn:
        """Finish an open turn: after a failed call, a stop, a crash, or an approval."""
        return _collect(self.resume_stream())

    def cut(self, text: str) -> bool:
        """End a turn whose answer a person has cut off. What came of it (`text`) is kept as the reply. Return False if
        nothing came: then the turn ends without an answer."""
        with self._hold():
            if not self.memory.turn_is_open:
                return bool(text)
            if text.strip() and self.memory.accepts_message:
                self.memory.append_assistant(
                    {
                        "role": "assistant",
                        "content": [{"type": "text", "text": text + CUT_MARK}],
                        "stop_reason": "end_turn",
                    }
                )
                return True
            self.memory.leave_turn("A person stopped the turn before this call was answered. It may have been begun.")
            return False

    def undo(self) -> Withdrawn:
        """Withdraw the last turn: for the prompt, the current facts and core it was never said, and a task that was
        asked for in it is dropped. The result names what its tools did elsewhere, which stays done."""
        with self._hold():
            with self.memory.transaction():
                withdrawn = self.memory.undo()
                drop_withdrawn(self.memory, withdrawn.steps)
            self._loop.skip_movements()
            return withdrawn

    @contextmanager
    def _hold(self, cancelled: Flag | None = None) -> Generator[None]:
        """Hold the agent for one turn. A second turn in the same thread would wait for itself for ever."""
        if self._in_thread == get_ident() and self._one_at_a_time.locked():
            raise RejectedError("this thread is in the middle of a turn of this agent: finish it, or close its events.")
        if self._idle is not None:
            self._idle.talk()
        with self._one_at_a_time:
            self._in_thread, self._running = get_ident(), cancelled
            try:
                self._loop.begin()
                yield
            finally:
                self._in_thread = self._running = None
                self.background.wake()
                if self._idle is not None:
                    self._idle.rest()

    def tasks(self) -> TaskRunner:
        """Return what runs long tasks of this agent, which has to be made or loaded with `task=True`."""
        tools = self._parts.task_tools
        if tools is None:
            raise RejectedError("this agent has no tools for a long task; make it, or load it, with task=True.")
        return TaskRunner(
            self.memory, self._loop, self.meter, self._hold, tools, self._parts.output, observed=self._observed
        )

    def run(self, text: str, *, output: Any = None) -> TaskResult:
        """Work on a task until it is done or a limit is reached, and return what came of it; `resume_run` goes on.

        The result has to fit `output`, a pydantic class, and is an object of it. Without it the result is what the
        agent's own `output` says. The agent has to be made or loaded with task=True.
        """
        asked = None if output is None else ResultSchema.of(output)
        return self._collect_task(self.tasks().start(text, output=asked), asked)

    def resume_run(self, *, output: Any = None) -> TaskResult:
        """Go on with the newest task and return what came of it. Give the `output` with which it was started."""
        asked = None if output is None else ResultSchema.of(output)
        return self._collect_task(self.tasks().resume(output=asked), asked)

    def _collect_task(self, events: Generator[Event], asked: ResultSchema | None) -> TaskResult:
        turn, output = _collect(events), asked or self._parts.output
        result = turn.stopped.result
        if turn.stopped.reason == "done" and output:
            result = output.read(result)
        return TaskResult(turn.stopped.text, result, turn.usage, turn.stopped)

    def sleep(self, *, stop: Callable[[], bool] = lambda: False) -> Proposal | None:
        """Sleep now, as its YAML says. Return what is proposed, or applied already; None if there is nothing to do.

        It gives way when `stop()` is true; the next sleep goes on. Raises RejectedError while a turn is open.
        `memory.sleeps` applies, refuses and undoes.
        """
        return self._sleep(stop)

    def sleep_when_idle(self, report: Callable[[Proposal], None]) -> None:
        """Sleep from now on whenever nobody has talked for as long as the YAML says. `report` gets each proposal."""
        after = self.config.sleep.after_seconds
        if after is not None and self._idle is None:
            steps = self.memory.inspect.steps(0, 1).rows
            passed = (self.clock.now() - steps[0].at).total_seconds() if steps else 0.0
            self._idle = IdleSleep(self._sleep, after, max(0.0, after - passed), report)

    def _sleep(self, stop: Callable[[], bool]) -> Proposal | None:
        if stop() or (self._idle is not None and self.memory.turn_is_open):
            return None
        if not _is_watched():
            return self._sleep_and_apply(stop)
        from agents.telemetry import observe_sleep

        with observe_sleep(self._watched) as watch:
            return watch.proposed(self._sleep_and_apply(stop, request=watch.request))

    def _sleep_and_apply(self, stop: Callable[[], bool], **options: Any) -> Proposal | None:
        proposal = self._parts.sleeper.run(stop, **options)
        if proposal is not None and self.config.sleep.apply == "auto":
            proposal = self.memory.sleeps.apply(proposal.number, auto=True)
        self.background.wake()
        return proposal

    def stop(self) -> None:
        """Make the running turn return at its next step; it can be resumed."""
        self._loop.stop()

    def close(self) -> None:
        """Finish the background work at hand; close the memory, the tools and the model, unless it was handed in."""
        with self._parts.opened:
            if self._idle is not None:
                self._idle.close()
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


def _is_watched() -> bool:
    """Return True if the program has set up OpenTelemetry: it alone says where spans go. Loads nothing."""
    loaded = sys.modules
    tracing, measuring = loaded.get("opentelemetry.trace"), loaded.get("opentelemetry.metrics")
    if tracing is not None and not isinstance(tracing.get_tracer_provider(), tracing.ProxyTracerProvider):
        return True
    return measuring is not None and type(measuring.get_meter_provider()).__module__.startswith("opentelemetry.sdk")


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
