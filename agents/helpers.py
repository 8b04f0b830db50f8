"""Helpers: another agent as a tool. Each call is a whole agent, with a window, a memory and a budget of its own.

Its memory is in `HOME/<name>/helpers/<call>`, and stays there. So a call that was cut off is run again and goes on from
what is on disk: after a crash, at a limit of the task for which the call was made, or when a call of the helper's own
waits for a person. At a limit of a turn it answers with what it has. A helper that is done answers from its summary,
without a request.
"""

import json
from collections.abc import Collection, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from typing import Any, Protocol

from agents import tasks
from agents.config.agent_config import AgentConfig
from agents.config.embedders import Options
from agents.config.tool_sections import HelperTool
from agents.events import ApprovalNeeded, Event, Replied, Stopped, StreamLost, Text
from agents.logs import log
from agents.meter import Meter
from agents.models.model import ModelUnavailableError
from agents.tasks import TaskRunner
from agents.tools.functions import NAME, Sourced, Tool, ToolConfigError, describe_error
from agents.tools.helper_calls import AgentTool, Approve, Outcome
from pager import Clock, Fact, InUseError, Memory, MemoryReader, StorageError, one_line
from pager.home import Place
from pager.safety.sources import label
from pager.types import Call

FACTS_AT_ONCE = 500
DESCRIPTION = "Give a task to {name}, another agent, which works on it by itself and answers when it is done."
BEGINNING_CHARS = 300  # of its instructions, in the description
SCHEMA = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "All that it has to know: it sees nothing else."}},
    "required": ["task"],
    "additionalProperties": False,
}


class OpenedAgent(AbstractContextManager["OpenedAgent"], Protocol):
    """What a helper is: `agents.Agent`."""

    memory: Memory
    meter: Meter

    def tasks(self) -> TaskRunner:
        """Return what runs its task."""
        ...

    def stop(self) -> None:
        """Make it stop at its next step."""
        ...


class OpenAgent(Protocol):
    """Opens an agent that works on a task."""

    def __call__(
        self, config: AgentConfig, place: Place, approve: Approve, *, within: Meter, tools: Sequence[Tool]
    ) -> OpenedAgent:
        """Open it at a place, for a run within another one."""
        ...


@dataclass(frozen=True, slots=True)
class Helped:
    """The agent that helpers work for: its place, its tools for the memory, its way to find facts, its meter."""

    place: Place
    memory_tools: str
    found_by: Options
    clock: Clock
    meter: Meter
    open_agent: OpenAgent


def tool_of(section: HelperTool, config: AgentConfig, helped: Helped | None) -> AgentTool:
    """Return the tool that an agent is for another one; one that cannot be called if none is given."""
    if not NAME.fullmatch(config.name):
        way = "as a tool it needs one of letters, digits, _ and -, at most 64"
        raise ToolConfigError(f"an agent called {config.name!r} cannot be a tool: {way}. Rename it.")
    beginning = config.instructions.strip().partition("\n\n")[0]
    if len(beginning) > BEGINNING_CHARS:
        beginning = beginning[: BEGINNING_CHARS - 1] + "…"
    about = section.description or (beginning and f"Its instructions begin: {one_line(beginning)}")
    sees = " It can search your archive." if section.archive == "read" else ""
    text = f"{DESCRIPTION.format(name=config.name)}{sees} {about}".strip()

    def start(call: Call, sources: Collection[str], approve: Approve) -> "Run":
        assert helped is not None
        return Run(section, config, helped, call, sources, approve)

    def alone(_: Any) -> str:
        raise ToolConfigError(f"{config.name} is an agent: only the loop of another one runs it.")

    shows = helped is not None and helped.memory_tools != "none"
    return AgentTool(
        name=config.name, description=text, schema=SCHEMA, call=alone, idempotent=True, approve=section.approve,
        timeout_seconds=section.timeout_seconds, start=start, shows_facts=shows, model=config.model.id,
        provider=config.model.provider,
    )  # fmt: skip


class Run:
    """One call of a helper, from the beginning or from where it was left."""

    def __init__(
        self, section: HelperTool, config: AgentConfig, helped: Helped, call: Call, sources: Collection[str],
        approve: Approve,
    ) -> None:  # fmt: skip
        most = section.timeout_seconds / 60
        limits = config.limits.model_copy(update={"max_minutes": min(config.limits.max_minutes or most, most)})
        self._config = config.model_copy(update={"limits": limits})
        self._section = section
        self._helped = helped
        self._call = call
        self._sources = sources
        self._approve = approve
        self._agent: OpenedAgent | None = None

    def stop(self) -> None:
        """Make the helper stop at its next step."""
        if self._agent:
            self._agent.stop()

    def events(self) -> Generator[Event, None, Outcome]:
        """Work on the task and yield what happens."""
        task = self._call.input.get("task")
        if not isinstance(task, str) or not task.strip() or len(self._call.input) > 1:
            text = f"{self._call.name} was not run, its arguments are wrong: give it 'task', a text, and nothing else."
            return Outcome(text, is_error=True)
        try:
            with ExitStack() as opened:
                self._agent = opened.enter_context(self._open(opened))
                self._helped.meter.running[self._call.id] = self._agent.meter
                return (yield from self._work(self._agent, task))
        except (ModelUnavailableError, InUseError, StorageError) as error:
            return Outcome(error=error)  # the other agent stops as well, and goes on with this when it is resumed
        except Exception as error:
            log.exception("the helper %s failed", self._call.name)
            text = f"{self._call.name} failed: {describe_error(error)}"
            return Outcome(text, is_error=True, sources=self._sources)
        finally:
            self._agent = None

    def _open(self, opened: ExitStack) -> OpenedAgent:
        helped, tools = self._helped, list[Tool]()
        if self._section.archive == "read":
            reader = opened.enter_context(MemoryReader.open(helped.place, clock=helped.clock, **helped.found_by))
            tools.append(Tool.of(ParentArchive(reader).search_parent_archive))
        place = helped.place.helper(self._call.id)
        return helped.open_agent(self._config, place, self._approve, within=helped.meter, tools=tools)

    def _work(self, agent: OpenedAgent, text: str) -> Generator[Event, None, Outcome]:
        runner, stopped, words = agent.tasks(), Stopped("answered"), LastWords()
        waits: ApprovalNeeded | None = None
        begun = tasks.current(agent.memory) is not None
        try:
            with closing(runner.resume() if begun else runner.start(text, sources=self._sources)) as events:
                for event in events:
                    words.hear(event)
                    if isinstance(event, Stopped):
                        stopped = event
                    elif isinstance(event, ApprovalNeeded):
                        waits = event
                    yield event
        except (ModelUnavailableError, StorageError):
            raise
        except Exception as error:
            log.exception("the helper %s failed", self._call.name)
            stopped = Stopped("answered", describe_error(error))
        if stopped.reason == "cancelled" and not self._helped.meter.ends_a_turn:
            return Outcome(is_open=True)
        if stopped.reason == "approval":
            return Outcome(waits=waits)
        return self._answer(agent.memory, stopped, words)

    def _answer(self, memory: Memory, stopped: Stopped, words: "LastWords") -> Outcome:
        task = tasks.current(memory)
        is_done = task is not None and task.state == "done"
        text = task.summary if task and is_done else f"{self._call.name} did not finish its task: {stopped.text}"
        if task and is_done and task.result is not None:
            text += f"\n\n{json.dumps(task.result, ensure_ascii=False)}"
        if not is_done and words.text:
            text += f"\n\nThe last that it said: {words.text}"
        newest = memory.inspect.steps(0, 2).rows  # a reply, or behind it a message that it had not read
        via = {name for step in newest for name in step.via} | {*self._sources}
        return Outcome(text, is_error=not is_done, sources=via, facts=_facts(memory))


def _facts(memory: Memory) -> list[Fact]:
    """Return the facts that are true now, oldest first."""
    found, offset = list[Fact](), 0
    while rows := memory.inspect.facts("current", offset=offset, limit=FACTS_AT_ONCE).rows:
        found += [row.fact for row in rows]
        offset += len(rows)
    return found[::-1]


class LastWords:
    """The text of the newest reply. What was streamed before a connection was lost does not count."""

    def __init__(self) -> None:
        self.text = ""
        self._pieces: list[str] = []

    def hear(self, event: Event) -> None:
        """Take note of what was said."""
        match event:
            case Text(text):
                self._pieces.append(text)
            case StreamLost():
                self._pieces.clear()
            case Replied():
                self.text = "".join(self._pieces) or self.text
                self._pieces.clear()
            case _:
                pass


class ParentArchive:
    """The archive of the agent that a helper works for, to be read. Its ids are left out: the helper has its own."""

    def __init__(self, reader: MemoryReader) -> None:
        self._reader = reader

    def search_parent_archive(self, query: str, limit: int = 5) -> list[Sourced]:
        """Find facts in the archive of the agent that gave you the task, by meaning and by words."""
        hits = self._reader.search_archive(query, limit=max(1, min(limit, 20)))
        found = [
            Sourced(hit.via, _block(f"since {hit.valid_from:%Y-%m-%d}{label(hit.via)}: {one_line(hit.text)}"))
            for hit in hits
        ]
        return found or [Sourced((), _block("Nothing there fits. Try other words."))]


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
