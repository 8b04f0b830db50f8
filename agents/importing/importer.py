"""Turns from elsewhere, out of a file in one of these forms:

- one JSON value: whatever `agents.importing.conversations` knows, or a list of turns;
- JSON lines of turns: `{"role": "user", "text": "...", "at": "2026-05-03T14:30Z", "name": "Dana"}`;
- JSON lines of messages, or of conversations (a training file).

A conversation is known by what it says, wherever its file is: taken again it is left alone, also as it was earlier, and
of one that has grown only the new end is taken, into the same session. One that was changed, or that goes on otherwise
than one that was taken, is another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agents.importing.conversations import Conversation, conversations, is_conversation, is_turn
from agents.importing.messages import Turn, is_message, of_message
from pager.blocks import clean, dump
from pager.errors import RejectedError
from pager.memory import Memory

IMPORTED = "history:"
BEGINNING = ""  # what is noted of a beginning of what was taken; of its end it is the session, into which more may come


def read(path: Path) -> Iterator[Conversation]:
    """The conversations of a file in order; an error says where."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RejectedError(f"{path} cannot be read: {error}.") from None
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.strip() and not _is_json(text.strip().split("\n")[0]):
            raise RejectedError(
                f"{path} is not JSON: {error}. What can be taken is an exported agent, conversations as JSON or JSON "
                "lines, and Markdown (.md, or a folder)."
            ) from None
        yield from _of_lines(text, path)
        return
    yield from conversations(whole, str(path))


def _of_lines(text: str, path: Path) -> Iterator[Conversation]:
    """Lines that hold conversations are each one; lines of turns or messages are one together."""
    single: list[tuple[str, Turn]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        value = _value(line, where)
        if is_message(value):
            single += [(where, turn) for turn in of_message(value, where)]
        elif is_conversation(value):
            yield from (Conversation(str(number), found.turns) for found in conversations(value, where))
        elif is_turn(value):
            single.append((where, dict(value)))
        else:
            raise RejectedError(f"{where}: a turn is an object with role and text, not {line[:60]!r}.")
    if single:
        yield Conversation("", iter(single))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _value(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"{where}: this line is not JSON: {error}.") from None


def take(memory: Memory, path: Path) -> int:
    """Record a file's turns, all or none, and each only once; how many."""
    with memory.transaction():
        return sum(_take(memory, path, found) for found in read(path))


def _take(memory: Memory, path: Path, conversation: Conversation) -> int:
    turns = list(conversation.turns)
    digests = _digests([turn for _, turn in turns])
    start, session = _known(memory, digests)
    session = session or ":".join(filter(None, (path.name, conversation.name)))
    for where, turn in turns[start:]:
        try:
            memory.record_many([{"session": session, **turn}], embed=False)
        except RejectedError as error:
            raise RejectedError(f"{where}: {str(error).removeprefix('turn 0: ')}") from None
    if start < len(turns):
        for digest in digests[max(0, start - 1) : -1]:
            memory.save_value(f"{IMPORTED}{digest}", BEGINNING)
        memory.save_value(f"{IMPORTED}{digests[-1]}", session)
    return len(turns) - start


def _known(memory: Memory, digests: list[str]) -> tuple[int, str]:
    """How many of the first turns an earlier import took, and into which session: all of them, or those of a whole
    conversation."""
    if digests and memory.load_value(f"{IMPORTED}{digests[-1]}") is not None:
        return len(digests), ""
    for count in range(len(digests) - 1, 0, -1):
        if session := memory.load_value(f"{IMPORTED}{digests[count - 1]}"):
            return count, session
    return 0, ""


def _digests(turns: list[Turn]) -> list[str]:
    """For each turn what stands for the conversation up to it."""
    running, found = hashlib.sha256(), list[str]()
    for turn in turns:
        running.update(dump(clean(turn)).encode() + b"\n")
        found.append(running.hexdigest())
    return found
