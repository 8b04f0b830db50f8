"""A task as a person follows it: what is done now, and at its end what it took, stored and wrote."""

from collections.abc import Iterator
from pathlib import Path

from agents import tasks
from agents.agent import Agent
from agents.cli.visible import counted
from agents.config.tool_sections import FilesTool
from agents.events import Event, Replied, ToolFinished
from agents.tasks import Task
from pager.types import Json

WRITING = frozenset({"write_file", "edit_file"})  # tools whose `path` is a file of the result
STEPS_AT_ONCE = 200
SHOWN_FILES = 20


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> duration(7.4), duration(185), duration(93_784)
    ('7 s', '3 min 5 s', '1 d 2 h 3 min')
    """
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{value} {unit}" for value, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if value]
    return " ".join(parts if hours or days else [*parts, f"{whole} s"])


def asks_next(agent: Agent, event: Event) -> bool:
    """Return True if the model is asked next: after a reply without calls, or the last result of a step."""
    if not isinstance(event, Replied | ToolFinished) or agent.memory.open_calls:
        return False
    if isinstance(event, Replied) and agent.meter.over():
        return False  # at a limit the model is asked once more, and this was its last word
    task = tasks.current(agent.memory)
    return task is not None and task.state == "open"


def asking(agent: Agent, share: float | None) -> str:
    """Return that the model is asked now, in which step, with what was spent until now."""
    meter = agent.meter
    spent = [f"{meter.tokens:,} tokens"] if meter.tokens else []
    spent += [f"${meter.usd:.4f}"] if meter.tokens and meter.has_prices else []
    spent += [f"window {share:.0%}"] if share is not None else []
    return " · ".join([f"step {meter.steps + 1}", "asking the model", *spent])


def summary(agent: Agent, task: Task, file: Path) -> Iterator[str]:
    """Yield what a task of the agent in `file` has taken until now, with all its earlier runs, and what came of it."""
    first = int(task.step[1:])
    money = [f"${task.usd:.4f}"] if agent.meter.has_prices else []
    yield " · ".join([duration(task.seconds), counted(task.steps, "step"), f"{task.tokens:,} tokens", *money])
    rows = [row for row in agent.memory.ledger(events=["epoch", "archive"]) if int(row.step[1:]) >= first]
    evictions = sum(row.event == "epoch" and bool(row.detail.get("left")) for row in rows)
    facts = sum(row.event == "archive" for row in rows)
    yield f"{counted(evictions, 'eviction')} · {counted(facts, 'fact')} stored"
    roots = [file.parent / each.root for each in agent.config.tools if isinstance(each, FilesTool) and each.write]
    if files := [str(root / path) for path in _written(agent, first) for root in roots[:1]]:
        more = f" and {len(files) - SHOWN_FILES} more" if len(files) > SHOWN_FILES else ""
        yield f"files: {', '.join(files[:SHOWN_FILES])}{more}"


def _written(agent: Agent, first: int) -> list[str]:
    """Return the paths that a task has written to, in the order of the first time."""
    found: list[str] = []
    for step in _writing_steps(agent, first):
        blocks: list[Json] = agent.memory.history.blocks_of(step)
        failed = {block.get("tool_use_id") for block in blocks if block.get("is_error")}
        answered = {block.get("tool_use_id") for block in blocks} - failed
        found += [
            str(block["input"].get("path"))
            for block in blocks
            if block.get("type") == "tool_use" and block["name"] in WRITING and block["id"] in answered
        ]
    return list(dict.fromkeys(found))


def _writing_steps(agent: Agent, first: int) -> list[str]:
    steps: list[str] = []
    offset = 0
    while rows := agent.memory.inspect.steps(offset, STEPS_AT_ONCE).rows:
        steps += [row.page_id for row in rows if int(row.page_id[1:]) >= first and WRITING.intersection(row.calls)]
        if int(rows[-1].page_id[1:]) < first:
            break
        offset += STEPS_AT_ONCE
    return steps[::-1]
