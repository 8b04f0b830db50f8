"""What is new in a history that a client sends again, and where it belongs. Pure.

Each message is known by a digest of itself and of all before it: two histories with the same digest at a place are the
same up to there. The memory has stored the digests that it has seen, each with the step that it led to (`Place`).

>>> known = {"a": Place("s1", False), "b": Place("s2", True)}
>>> plan(["a", "b", "c"], known.get, lambda index: index == 1)
Plan(kind='continued', told=2, after=None)
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

from agents.serve.messages_request import Message

Kind = Literal["continued", "begun", "branched", "repeated"]
BEGINNING = ""


@dataclass(frozen=True, slots=True)
class Place:
    """The end of a known history: the newest step then, and True if it ended a turn, so that another branch may begin
    there. Of an answer also the step behind which it began (`told`)."""

    step: str
    ends_turn: bool
    told: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The way to tell a history: its messages from `told` on are new. They go on where the agent is (`continued`), or
    behind the step `after` (`branched`; None: behind nothing, `begun`). Of a `repeated` one nothing is new."""

    kind: Kind
    told: int
    after: str | None = None


def digests(messages: Sequence[Message]) -> list[str]:
    """Return the digest of each message with all before it."""
    found: list[str] = []
    before = BEGINNING
    for message in messages:
        before = extended(before, message)
        found.append(before)
    return found


def extended(before: str, message: Message) -> str:
    """Return the digest of a history with one message more."""
    text = f"{before} {_canonical(message)}"
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _canonical(message: Message) -> str:
    """Return what makes a message the same one. Clients cut and join the texts of replies, so blanks do not count
    there; of what a person said every letter does. Most messages are texts, which do without JSON: each request
    brings all of them."""
    if message.role == "user":
        if len(message.blocks) == 1 and message.blocks[0]["type"] == "text":
            return f"u{message.blocks[0]['text']}"
        return f"U{_encode([_block(block) for block in message.blocks])}"
    text = "".join("".join(block["text"].split()) for block in message.blocks if block["type"] == "text")
    if calls := message.calls:
        return f"A{_encode([text, [[call['id'], call['name'], call['input']] for call in calls]])}"
    return f"a{text}"


_encode = json.JSONEncoder(sort_keys=True).encode


def _block(block: Any) -> Any:
    content = block.get("content")
    if block["type"] == "tool_result" and isinstance(content, str):
        block = {**block, "content": [{"type": "text", "text": content}]}
    if block["type"] == "tool_result" and not block.get("is_error"):
        block = {name: value for name, value in block.items() if name != "is_error"}
    return block


def plan(
    history: Sequence[str], known: Callable[[str], Place | None], is_here: Callable[[int], bool], *, anew: bool = False
) -> Plan:
    """Decide what to do with a history, by its digests. `is_here` tells of a place in it, by its index, if the agent
    can go on there as it is. With `anew` the last message is told once more, although it is known."""
    last = len(history) - 1
    if not anew and is_here(last):
        return Plan("repeated", last + 1)
    for index in range(last - 1, -1, -1):
        if is_here(index):
            return Plan("continued", index + 1)
        place = known(history[index])
        if place is not None and place.ends_turn:
            return Plan("branched", index + 1, place.step)
    return Plan("begun", 0)
