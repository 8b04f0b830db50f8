"""The calls of helpers: other agents that work side by side, each in a thread, while their events come out here.

Only the thread that runs the loop writes the memory and asks a person: a helper's question comes to it like an event.
A result is committed as soon as its helper is done, together with the facts that the helper has found and with what it
has spent. A call whose helper was stopped stays open, and its helper goes on when the call is run again.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from agents.events import ApprovalNeeded, Event, HelperEvent, ToolFinished, ToolStarted
from agents.meter import Meter
from agents.tools.functions import SLICE_SECONDS, Tool
from pager.memory import Memory
from pager.types import Call, Fact

DENIED = "A person refused this call; it was not run."
SHOWN_FACTS = 20
Approve = Callable[[Call], bool | None]  # None: there is nobody to ask now
OnResult = Callable[[Call, bool], object]  # whether it is an error


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a helper's run: its answer and the facts that it found, with their untrusted sources."""

    text: str = ""
    is_error: bool = False
    sources: Collection[str] = ()
    facts: Sequence[Fact] = ()
    is_open: bool = False  # it was stopped: there is no answer yet
    waits: ApprovalNeeded | None = None  # it was stopped, because a call of its own waits for a person
    error: Exception | None = None  # it was stopped by this, which stops the other agent, too

    @property
    def is_answer(self) -> bool:
        """Return True if the call is answered; otherwise its helper goes on when it is run again."""
        return not (self.is_open or self.waits or self.error)


class HelperRun(Protocol):
    """One call of a helper."""

    def events(self) -> Generator[Event, None, Outcome]:
        """Work on the task, from the beginning or from where it was left, and yield what happens."""
        ...

    def stop(self) -> None:
        """Make it stop at its next step. It may be called at any moment, by another thread and again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool(Tool):
    """A tool that is another agent. `start` is given the call, the untrusted sources of what it says, and whom to ask
    about calls of its own."""

    start: Callable[[Call, Collection[str], Approve], HelperRun]
    model: str = ""
    provider: str = ""
    shows_facts: bool = True  # the model can do something with the ids of facts


class HelperCalls:
    """Runs the calls of helpers for one loop."""

    def __init__(
        self, memory: Memory, meter: Meter, approve: Approve, tools: Mapping[str, AgentTool],
        is_stopping: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._memory = memory
        self._meter = meter
        self._approve = approve
        self._is_stopping = is_stopping
        self._working: Sequence[_Thread] = ()
        self.tools = tools

    def stop(self) -> None:
        """Make the helpers stop at their next step. Called in signal handlers."""
        for thread in self._working:
            thread.stop()

    def run(self, calls: Sequence[Call], on_result: OnResult) -> Generator[Event, None, Call | None]:
        """Run calls side by side and commit each result as it comes; `on_result` is called in its transaction. Return
        one that waits for a person, if there is one. Raise what stopped a helper when all others have ended."""
        threads, events, waiting = dict[str, _Thread](), SimpleQueue[_Item](), None
        for call in calls:
            if self.tools[call.name].approve == "always" and not call.begun:
                allowed = self._approve(call)
                if allowed is None:
                    waiting = call
                    yield from self._hold(call, ApprovalNeeded(call.id, call.name, call.input))
                    break
                if not allowed:
                    with self._memory.transaction():
                        self._memory.append_result(call.id, DENIED, is_error=True)
                        on_result(call, True)
                    yield ToolFinished(call.id, call.name, DENIED, True)
                    continue
            sources = self._memory.read_page(call.step).via
            self._memory.begin_call(call.id)
            yield ToolStarted(call.id, call.name, call.input)
            # Only now: it takes the context with it, and whoever watches has made the span of this call.
            threads[call.id] = _Thread(call, self.tools[call.name].start, sources, events)
        self._working = tuple(threads.values())
        try:
            found = yield from self._follow(threads, events, on_result)
        except GeneratorExit:  # whoever leaves the turn may go on with it at once
            for thread in threads.values():
                thread.leave()
            for thread in threads.values():
                thread.join()
            raise
        except BaseException:
            for thread in threads.values():
                thread.leave()
            raise
        return waiting or found

    def _follow(
        self, threads: "Mapping[str, _Thread]", events: "SimpleQueue[_Item]", on_result: OnResult
    ) -> Generator[Event, None, Call | None]:
        held = dict[str, Call]()
        error: Exception | None = None
        for thread in threads.values():
            thread.start()
        left = dict(threads)
        while left:
            for thread in left.values() if self._is_stopping() else ():
                thread.stop()  # again and again: one that is about to begin would not notice
            try:
                thread, item = events.get(timeout=SLICE_SECONDS)
            except Empty:
                continue
            call = thread.call
            if isinstance(item, Question):
                item.answer.set_result(self._approve(item.call))
            elif not isinstance(item, Outcome):
                tool = self.tools[call.name]
                yield HelperEvent(call.id, call.name, item, tool.model, tool.provider)
            else:
                del left[call.id]
                error = error or item.error
                if item.waits:
                    why = f"the helper {call.name} asks"
                    held[call.id] = replace(call, name=item.waits.name, input=item.waits.input, why=why)
                    yield from self._hold(call, replace(item.waits, call_id=call.id))
                elif item.is_answer:
                    yield self._commit(call, item, on_result)
        if error:
            raise error
        return next((held[each] for each in threads if each in held), None)  # an answer is for the first of them

    def _hold(self, call: Call, needed: ApprovalNeeded) -> Generator[Event]:
        self._memory.hold_call(call.id)
        yield needed

    def _commit(self, call: Call, outcome: Outcome, on_result: OnResult) -> ToolFinished:
        """Commit a result with what the helper has found and spent."""
        with self._memory.transaction():
            facts = self._memory.take_over(outcome.facts, source=f"helper:{call.name}")
            text = outcome.text
            if facts and self.tools[call.name].shows_facts:
                ids = ", ".join(fact.id for fact in facts[:SHOWN_FACTS])
                more = f" and {len(facts) - SHOWN_FACTS} more" if len(facts) > SHOWN_FACTS else ""
                text += f"\n\nIn your archive now, from {call.name}: {ids}{more}."
            self._memory.append_result(call.id, text, is_error=outcome.is_error, source=outcome.sources)
            self._meter.add_up(call.id)
            on_result(call, outcome.is_error)
        return ToolFinished(call.id, call.name, text, outcome.is_error)


@dataclass(frozen=True, slots=True)
class Question:
    """A call of a helper's that a person has to approve, and where the helper waits for the answer."""

    call: Call
    answer: Future[bool | None]


class _Thread(Thread):
    """Runs a helper, and puts what happens into a queue."""

    def __init__(
        self, call: Call, start: Callable[[Call, Collection[str], Approve], HelperRun], sources: Collection[str],
        queue: "SimpleQueue[_Item]",
    ) -> None:  # fmt: skip
        super().__init__(name=f"helper {call.name}", daemon=True)
        self.call = call
        self._context = copy_context()  # of whoever watches
        self._run = start(call, sources, self._ask)
        self._queue = queue
        self._left = False
        self._question: Future[bool | None] | None = None

    def run(self) -> None:
        """Work until the helper is done, or was left."""
        self._context.run(self._work)

    def _work(self) -> None:
        events = self._run.events()
        try:
            while not self._left:
                self._queue.put((self, next(events)))
            events.close()
            outcome = Outcome(is_open=True)
        except StopIteration as end:
            outcome = end.value
        except Exception as error:  # noqa: BLE001 - it is raised again in the loop's thread
            outcome = Outcome(error=error)
        self._queue.put((self, outcome))

    def stop(self) -> None:
        """Make the helper stop at its next step."""
        self._run.stop()

    def leave(self) -> None:
        """Make the helper stop as soon as it notices: nobody follows its events any more."""
        self._left = True
        if self._question and not self._question.done():
            self._question.set_result(None)
        if self.is_alive():
            self.stop()

    def _ask(self, asked: Call) -> bool | None:
        why = f"The helper {self.call.name} asks. {asked.why}".strip()
        self._question = Future()
        if self._left:
            return None
        # Under the id of the call that a person sees, with which they answer.
        self._queue.put((self, Question(replace(asked, id=self.call.id, why=why), self._question)))
        return self._question.result()


_Item = tuple[_Thread, Event | Question | Outcome]
