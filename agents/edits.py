"""What a person changes in a memory: done at once when no process holds the agent, else left for the one that does.

One way for both: the command goes into the agent's inbox, and when nobody holds the agent it is taken out at once. So
it has its effect exactly once, and in the order in which it was given. A message is never taken here: it waits for
the process that will answer it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pager import inbox
from pager.clock import Clock
from pager.errors import InUse
from pager.limits import Limits
from pager.lock import held_by
from pager.memory import Memory
from pager.opening import LOCK

DONE, PENDING, REFUSED = "done", "pending", "refused"
MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a command: done, refused (`text` says why), or pending until the agent's process takes it."""

    command: str
    state: str
    text: str = ""


def edit(directory: Path, kind: str, arguments: Mapping[str, Any], clock: Clock) -> Outcome:
    """Leave a command, and carry it out if nobody else will."""
    command = inbox.leave(directory, kind, arguments, clock)
    if kind != MESSAGE:
        settle(directory, clock)
    return outcomes(directory, [command])[0]


def settle(directory: Path, clock: Clock) -> bool:
    """Take what waits, but for messages, unless a process holds the agent; whether that was so."""
    if held_by(directory / LOCK):
        return False
    # As the agent ran last. Without an embedder: a fact gets its vector when the agent runs.
    with Memory.read(directory, clock=clock) as reading:
        limits = reading.limits_at() or Limits.for_window()
    try:
        with Memory.open(directory, limits=limits, embedder=None, clock=clock) as memory:
            memory.take_inbox(messages=False)
    except InUse:
        return False
    return True


def outcomes(directory: Path, commands: Iterable[str]) -> list[Outcome]:
    with Memory.read(directory) as reading:
        return [_outcome(command, reading.browse.command(command)) for command in commands]


def _outcome(command: str, known: str | None) -> Outcome:
    if known is None:
        return Outcome(command, PENDING)
    state, _, text = known.partition(": ")
    return Outcome(command, DONE) if state == DONE else Outcome(command, REFUSED, text)
