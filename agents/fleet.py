"""The agents of a home at a glance: what state each is in, how full its window is, what it knows and has cost.

>>> [agent.name for agent in overview(home)]
['assistant', 'notes']
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agents import tasks
from agents.explain import AnyMemory
from agents.explain.figures import AgentFigures, figures
from pager.errors import PagerError
from pager.home import Home, Place
from pager.reader import MemoryReader
from pager.types import Movement

State = Literal["running", "waits for approval", "open task", "open turn", "idle", "unreadable"]


@dataclass(frozen=True, slots=True)
class AgentOverview:
    """One agent. `error` is why it cannot be read, or the newest error in its ledger."""

    name: str
    state: State
    window_share: float | None = None  # of the usable tokens; None before the first request
    steps: int = 0
    facts: int = 0
    last_at: datetime | None = None
    helpers: int = 0  # the calls of other agents that worked for it
    tokens: int = 0  # with those of its helpers
    usd: float | None = None  # None without prices
    model: str = ""
    task: str = ""
    error: str = ""


def overview(home: Home, names: Iterable[str] | None = None) -> Iterator[AgentOverview]:
    """Yield the agents of a home by their names, or those that are named. One that cannot be read is there with its
    error."""
    for name in home.names() if names is None else names:
        try:
            with home.read(name, embedder=None) as reader, reader.read_snapshot():
                yield overview_of(home, name, reader, running=bool(home.owner(name)))
        except (PagerError, OSError) as error:
            yield AgentOverview(name, "unreadable", error=str(error))


def overview_of(home: Home, name: str, reader: AnyMemory, *, running: bool) -> AgentOverview:
    """Return one agent at a glance, from its memory."""
    found, task = figures(reader), tasks.current(reader)
    helpers = [*_helpers(home.existing(name))]
    return AgentOverview(
        name,
        _state(reader, found, task, running=running),
        window_share=found.used_tokens / found.usable_tokens if found.usable_tokens else None,
        steps=found.steps,
        facts=found.facts,
        last_at=found.last_at,
        helpers=len(helpers),
        tokens=found.tokens + sum(each.tokens for each in helpers),
        usd=None if found.usd is None else found.usd + sum(each.usd or 0 for each in helpers),
        model=found.model,
        task=task.text if task and task.state == "open" else "",
        error=_words(found.last_error) if found.last_error else "",
    )


def _words(error: Movement) -> str:
    """Return an error as a sentence, also a call that was cut off, of which the ledger has the tool alone."""
    is_cut = error.event == "interrupted"
    return f"a call of {error.reason} was cut off and may have run" if is_cut else error.reason


def _helpers(place: Place) -> Iterator[AgentFigures]:
    """Yield the figures of an agent's helpers, and of theirs."""
    for helper in place.helpers():
        with MemoryReader.open(helper) as opened:
            yield figures(opened)
        yield from _helpers(helper)


def _state(reader: AnyMemory, found: AgentFigures, task: tasks.Task | None, *, running: bool) -> State:
    if found.approvals:
        return "waits for approval"  # also while a worker has it open: nothing happens before a person answers
    if running:
        return "running"
    if task and task.state == "open":
        return "open task"
    newest = reader.inspect.steps(0, 1).rows
    return "open turn" if found.open_calls or (newest and newest[0].resident and not newest[0].ends_turn) else "idle"
