"""What becomes of a request that begins or continues something, in the thread of its agent."""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace

from agents import tasks
from agents.agent import Agent
from agents.events import Event, Stopped
from agents.explain.json_form import to_json
from agents.serve import records
from agents.serve.errors import ApiError
from agents.serve.messages_turn import rest
from agents.serve.records import Record
from agents.serve.runs import Run
from agents.serve.server import Server
from pager.types import Json

Begin = Callable[[Agent, Callable[[], object]], Generator[Event]]  # `also` of the text


def carry_out(server: Server, name: str, run: Run, asked: Record, begin: Begin, agent: Agent) -> None:
    """Do what a request asked for, or what is left of it if its agent has begun it before."""
    run.open()
    with server.visits.noted(name, agent):
        found = _carry_out(run, asked, begin, agent)
    server.metrics.turn(found)
    run.end(found, server.runs.now())


def _carry_out(run: Run, asked: Record, begin: Begin, agent: Agent) -> Json:
    memory = agent.memory
    found = records.load(memory, asked.key)
    if found is not None:
        found.check(asked.body)
        run.begin()
        if found.stopped is not None or not _is_left(agent, found):
            return records.answer(memory, found)

    def note() -> None:
        nonlocal found
        found = replace(asked, step=records.last_step(memory))
        records.store(memory, found)

    events = begin(agent, note) if found is None else _rest(agent, found)
    stopped = Stopped("answered")
    with closing(events):
        for event in events:
            if not run.began and found is not None:
                run.begin()
            run.add(event)
            stopped = event if isinstance(event, Stopped) else stopped
    if found is None:  # it was stopped before anything was said
        raise ApiError(409, "conflict", stopped.text, "Ask again.")
    if stopped.reason == "cancelled" and memory.turn_is_open:
        raise ApiError(503, "stopping", "the server stopped in the middle of this.", "Ask again with the same key.")
    if stopped.reason != "answered":
        found = replace(found, stopped=to_json(stopped), through=records.last_step(memory))
        records.store(memory, found)
    return records.answer(memory, found)


def _is_left(agent: Agent, record: Record) -> bool:
    """Return True if what was begun is not finished."""
    task = tasks.current(agent.memory)
    if record.kind == "task":
        return task is not None and task.step == record.step and task.state == "open"
    if not agent.memory.turn_is_open:
        return False
    return record.kind == "resume" or agent.memory.inspect.step(records.last_step(agent.memory)).turn == (
        agent.memory.inspect.step(record.step).turn
    )


def _rest(agent: Agent, record: Record) -> Generator[Event]:
    return agent.tasks().resume() if record.kind == "task" else rest(agent)
