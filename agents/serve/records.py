"""What an agent remembers of requests, so that the same key never begins a second turn: not after a kill either.

A record is stored in the agent's own memory, in the transaction that stores what was said. It holds no text: the answer
is read from the steps. The newest `KEPT` requests of an agent are remembered.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agents import tasks
from agents.events import Stopped
from agents.explain import AnyMemory
from agents.explain.json_form import to_json
from agents.serve.errors import ApiError
from pager.errors import NotFoundError
from pager.memory import Memory
from pager.types import Json, Usage, read_step_id

KEPT = 100
ORDER, EDITS = "serve:requests", "serve:edits"  # the digests of the keys, oldest first: of turns, and of edits
RECORD = "serve:request:"
BY_ITSELF = ("", "cancelled")  # how a task stands when it goes on by itself: it was killed, or the server was stopped


Kind = Literal["turn", "task", "resume", "edit"]


@dataclass(frozen=True, slots=True)
class Record:
    """A request that an agent has begun. `step` is what it said, or the newest step when it began; `through` the newest
    one when it had ended, and `stopped` how, if it was not simply answered. Of an edit `step` is what it made."""

    key: str
    kind: Kind
    body: str  # the digest of what was asked for
    step: str
    through: str = ""
    stopped: Json | None = None

    def check(self, body: str) -> None:
        """Raise ApiError (422) if the key was used for something else."""
        if self.body != body:
            text = "this Idempotency-Key was used for another request."
            raise ApiError(422, "key_reused", text, "Make a new key for each request; repeat one only unchanged.")


def is_at_work(stopped: str) -> bool:
    """Return True for a task, by why it stopped, that goes on by itself."""
    return stopped in BY_ITSELF


def digest(*parts: Any) -> str:
    """Return what tells one body from another."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def load(memory: AnyMemory, key: str) -> Record | None:
    """Return the record of a key; None if it was never used, or long ago."""
    text = memory.load_value(RECORD + digest(key))
    return Record(**json.loads(text)) if text else None


def newest(memory: AnyMemory) -> Record | None:
    """Return the record of the newest request."""
    order = (memory.load_value(ORDER) or "").split()
    text = memory.load_value(RECORD + order[-1]) if order else None
    return Record(**json.loads(text)) if text else None


def waits(memory: AnyMemory) -> bool:
    """Return True if the turn of the newest request has stopped for a person, and nothing came since."""
    record = newest(memory)
    return record is not None and record.stopped is not None and record.through == last_step(memory)


def store(memory: Memory, record: Record) -> None:
    """Store a record, and forget the oldest one."""
    name = digest(record.key)
    with memory.transaction():
        memory.save_value(RECORD + name, json.dumps(asdict(record)))
        line = EDITS if record.kind == "edit" else ORDER
        order = (memory.load_value(line) or "").split()
        if name not in order:
            order.append(name)
            for old in order[:-KEPT]:
                memory.save_value(RECORD + old, None)
            memory.save_value(line, " ".join(order[-KEPT:]))


def edit_once(memory: Memory, key: str, body: str, edit: Callable[[], str]) -> str:
    """Return what an edit makes, a page or a command, or has made when its key came before. Without a key it is always
    made."""
    with memory.transaction():
        found = load(memory, key) if key else None
        if found is not None:
            found.check(body)
            return found.step
        page = edit()
        if key:
            store(memory, Record(key, "edit", body, page))
    return page


def last_step(memory: AnyMemory) -> str:
    """Return the newest step; "s0" before the first."""
    rows = memory.inspect.steps(0, 1).rows
    return rows[0].page_id if rows else "s0"


def is_left(memory: AnyMemory, record: Record) -> bool:
    """Return True if what was begun is neither answered nor stopped."""
    if record.stopped is not None:
        return False
    if record.kind == "task":
        task = tasks.current(memory)
        return task is not None and task.step == record.step and task.state == "open"
    rows = memory.inspect.steps(0, 1).rows
    if not rows or (rows[0].ends_turn and not memory.open_calls):
        return False
    return rows[0].turn == memory.inspect.step(record.step).turn


def answer(memory: AnyMemory, record: Record) -> Json:
    """Return the answer to a request that has ended: the same every time."""
    found = replies(memory, record)
    text = next((text for text in reversed(found.values()) if text), "")
    stopped = record.stopped or to_json(Stopped("answered"))
    steps = [*found]
    return {"key": record.key, "text": text, "steps": steps, "usage": _usage(memory, steps), "stopped": stopped}


def replies(memory: AnyMemory, record: Record) -> dict[str, str]:
    """Return the texts of a request's replies, so far or in all, by their steps."""
    first = read_step_id(record.step)
    last = read_step_id(record.through or last_step(memory))
    found, turn = dict[str, str](), None
    for number in range(first, last + 1):
        try:
            row = memory.inspect.step(f"s{number}")
        except NotFoundError:
            continue
        if record.kind == "turn":
            turn = turn or row.turn
            if row.turn != turn:
                break
        if row.kind == "assistant" and number > first:
            parts = memory.inspect.said_parts(row.page_id)
            found[row.page_id] = "".join(each.text for each in parts if each.block.get("type") == "text")
    return found


def _usage(memory: AnyMemory, steps: list[str]) -> Json:
    total = Usage()
    if steps:
        for request in memory.inspect.requests(0, len(steps), through=steps[-1]).rows:
            if request.step in steps and request.usage:
                total += request.usage
    return to_json(total)
