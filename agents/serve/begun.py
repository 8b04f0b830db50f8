"""What becomes of a request that begins or continues something, in the thread of its agent."""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace

from agents.agent import Agent
from agents.events import Event, Stopped
from agents.explain.json_form import to_json
from agents.serve import records
from agents.serve.errors import ApiError
from agents.serve.messages_turn import rest
from agents.serve.records import Record
from agents.serve.runs import Run, Runs
from pager.types import Json

Begin = Callable[[Agent, Callable[[], object]], Generator[Event]]  # `also` of the text


def carry_out(run: Run, asked: Record, begin: Begin, agent: Agent) -> Json:
    """Do what a request asked for, or what is left of it if its agent has begun it before. Return the answer."""
    memory = agent.memory
    found = records.load(memory, asked.key)
    if found is not None:
        found.check(asked.body)
        return _go_on(run, found, agent)

    def note() -> None:
        nonlocal found
        found = replace(asked, step=records.last_step(memory))
        records.store(memory, found)

    events = begin(agent, note)
    return _answer(run, lambda: found, events, agent)


def go_on(runs: Runs, name: str, agent: Agent, otherwise: Callable[[], Generator[Event]]) -> None:
    """Go on with what is left of the newest request, for whoever comes back for it; or do `otherwise`. A run that is
    there already has a job in the line of the agent."""
    record = records.newest(agent.memory)
    if record is not None and records.is_left(agent.memory, record):
        run, is_new = runs.begin(name, record.key, record.body)
        if is_new:
            _run(runs, run, name, record, agent)
        if is_new or run.ended_at is None:
            return
    with closing(otherwise()) as events:
        for _ in events:
            pass


def _run(runs: Runs, run: Run, name: str, record: Record, agent: Agent) -> None:
    run.open()
    try:
        run.end(_go_on(run, record, agent), runs.now())
    except BaseException as error:
        run.fail(error, runs.now())
        raise
    finally:
        runs.keep(name, run)


def _go_on(run: Run, record: Record, agent: Agent) -> Json:
    memory = agent.memory
    run.resume(records.replies(memory, record))
    if not records.is_left(memory, record):
        return records.answer(memory, record)
    events = agent.tasks().resume() if record.kind == "task" else rest(agent)
    return _answer(run, lambda: record, events, agent)


def _answer(run: Run, found: Callable[[], Record | None], events: Generator[Event], agent: Agent) -> Json:
    """Add the events to the run, store how they ended, and return the answer."""
    memory, stopped = agent.memory, Stopped("answered")
    with closing(events):
        for event in events:
            if not run.began and found() is not None:
                run.begin()
            run.add(event)
            stopped = event if isinstance(event, Stopped) else stopped
    record = found()
    if record is None:  # it was stopped before anything was said
        raise ApiError(409, "conflict", stopped.text, "Ask again.")
    if stopped.reason == "cancelled" and memory.turn_is_open:
        raise ApiError(503, "stopping", "the server stopped in the middle of this.", "Ask again with the same key.")
    if stopped.reason != "answered":
        record = replace(record, stopped=to_json(stopped), through=records.last_step(memory))
        records.store(memory, record)
    return records.answer(memory, record)
