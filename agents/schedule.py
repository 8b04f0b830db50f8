"""What an agent begins by itself, at times that its YAML names (`schedule:`).

Whoever keeps the agent open asks now and then:

    >>> while events := begin_due(agent):
    ...     for event in events:
    ...         show(event)
    >>> sleep_if_due(agent)
    >>> wake_me_at(next_due(agent))

A run is noted in the transaction that stores its message, so it begins once, whatever ends a process. Runs that were
missed are made up for once.
"""

import hashlib
import json
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from functools import partial

from agents import tasks
from agents.agent import Agent
from agents.config.cron import Cron
from agents.config.sections import ScheduleConfig
from agents.events import Event
from pager.memory import Memory

STORED_AS = "schedule"
SLEPT = "slept"
NAME = "schedule"  # who says what a schedule says
BEHIND_OPEN = timedelta(minutes=5)  # before what waits for the end of a turn or task is looked at again


def begin_due(agent: Agent) -> Generator[Event] | None:
    """Begin the run that has waited longest, and yield what happens. Return None if nothing is due.

    It waits while a turn is open, and a task while another one is. An entry counts from when it was seen first, so a
    new one makes up for nothing. A task needs an agent that was made or loaded with task=True.
    """
    entries = {_key(each): each for each in agent.config.schedule}
    if not entries or agent.memory.turn_is_open:
        return None
    now, begun = agent.clock.now(), _begun(agent.memory)
    if begun.keys() != entries.keys():
        begun = {key: begun.get(key, now) for key in entries}
        _store(agent.memory, begun)
    waiting = _has_task(agent)
    due: list[tuple[datetime, str]] = []
    for key, entry in entries.items():
        newest = Cron.read(entry.at).newest(begun[key], now)
        if newest and not (entry.task and waiting):
            due.append((newest, key))
    if not due:
        return None
    at, key = min(due)
    note = partial(_store, agent.memory, {**begun, key: at})
    entry = entries[key]
    if entry.task:
        return agent.tasks().start(entry.task, also=note)
    return agent.stream(entry.say or "", name=NAME, also=note)


def sleep_if_due(agent: Agent, stop: Callable[[], bool] = lambda: False) -> bool:
    """Sleep if its time has come (`sleep.when`) and no turn is open. Return True if it did.

    A sleep gives way when `stop()` is true, and then goes on the next time.
    """
    now, due = agent.clock.now(), _sleep_due(agent)
    if due is None or due > now or agent.memory.turn_is_open:
        return False
    agent.sleep(stop=stop)
    if not stop():
        agent.memory.save_value(SLEPT, now.astimezone(UTC).isoformat())
    return True


def next_due(agent: Agent) -> datetime | None:
    """Return when something is due next, a sleep included, in UTC; None if never. What can begin was due before now;
    what waits for an open turn or task is due a while later."""
    now, begun = agent.clock.now().astimezone(UTC), _begun(agent.memory)
    turn_is_open, has_task = agent.memory.turn_is_open, _has_task(agent)
    times: list[tuple[datetime, bool]] = []  # when, and if it waits for what is open
    for each in agent.config.schedule:
        waits = turn_is_open or (each.task is not None and has_task)
        times.append((Cron.read(each.at).next_after(begun.get(_key(each), now)), waits))
    if sleep := _sleep_due(agent):
        times.append((sleep, turn_is_open))
    due = [(at.astimezone(UTC), waits) for at, waits in times]
    return min((now + BEHIND_OPEN if waits and at <= now else at for at, waits in due), default=None)


def _has_task(agent: Agent) -> bool:
    task = tasks.current(agent.memory)
    return task is not None and task.state == "open"


def _sleep_due(agent: Agent) -> datetime | None:
    """Return when the next sleep is due; None if there is none to come, as nothing was said since the last one."""
    config, stored = agent.config.sleep, agent.memory.load_value(SLEPT)
    slept = datetime.fromisoformat(stored) if stored else None
    if config.times:
        if slept is None:  # from now on
            slept = agent.clock.now()
            agent.memory.save_value(SLEPT, slept.astimezone(UTC).isoformat())
        return config.times.next_after(slept)
    if config.after_seconds is None or not (newest := agent.memory.inspect.steps(0, 1).rows):
        return None
    said = newest[0].at
    return None if slept and slept > said else said + timedelta(seconds=config.after_seconds)


def _begun(memory: Memory) -> dict[str, datetime]:
    """Return by entry when its newest run was due, or when the entry was seen first."""
    stored = memory.load_value(STORED_AS)
    return {key: datetime.fromisoformat(at) for key, at in json.loads(stored).items()} if stored else {}


def _store(memory: Memory, begun: dict[str, datetime]) -> None:
    memory.save_value(STORED_AS, json.dumps({key: at.astimezone(UTC).isoformat() for key, at in begun.items()}))


def _key(entry: ScheduleConfig) -> str:
    """Return a name for an entry. One that was changed is another one."""
    return hashlib.sha256(json.dumps([entry.at, entry.say, entry.task]).encode()).hexdigest()[:16]
