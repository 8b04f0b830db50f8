"""Turns from elsewhere, out of a file in one of these forms:

- JSON lines of turns: `{"role": "user", "text": "...", "at": "2026-05-03T14:30Z", "name": "Dana"}`;
- a conversation in the message format of OpenAI or Anthropic, as one JSON value;
- JSON lines of such messages, or of conversations (a training file).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from agents import conversations
from pager.errors import Refused
from pager.memory import Memory

IMPORTED = "history:"
SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})


def is_conversation(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def read(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The turns of a file in order, with where they stand; an error says where."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read: {error}.") from None
    whole = _conversation(text)
    if whole is not None:
        yield from _turns(whole, str(path), {})
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Refused(f"{where}: this line is not JSON: {error}.") from None
        if conversations.is_message(value):
            yield from ((where, turn) for turn in conversations.of_message(value))
        elif isinstance(value, dict) and conversations.are_messages(value):
            yield from _turns(value, where, {"session": f"{path.name}:{number}"})
        elif isinstance(value, dict):
            yield where, cast("dict[str, Any]", value)
        else:
            raise Refused(f"{where}: a turn is an object with role and text, not {line[:60]!r}.")


def _conversation(text: str) -> Any:
    """The file as one conversation, or None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if conversations.are_messages(value) else None


def _turns(conversation: Any, where: str, common: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        for turn in conversations.turns(conversation):
            yield where, {**common, **turn}
    except Refused as error:
        raise Refused(f"{where}: {error}") from None


def take(memory: Memory, path: Path) -> int:
    """Record a file's turns, all or none, and each only once, also when the file has grown since; how many."""
    key = f"{IMPORTED}{path.resolve()}"
    known = json.loads(memory.note(key) or "[0, 0]")
    turns = list(read(path))
    start = known[0] if known == _mark(turns[: known[0]]) else 0
    with memory.transaction():
        for where, turn in turns[start:]:
            try:
                memory.record_many([{"session": path.name, **turn}], embed=False)
            except Refused as error:
                raise Refused(f"{where}: {str(error).removeprefix('turn 0: ')}") from None
        memory.put_note(key, json.dumps(_mark(turns)))
    return len(turns) - start


def _mark(turns: list[tuple[str, dict[str, Any]]]) -> list[int]:
    """How many turns, and a number that is another one for other turns."""
    return [len(turns), zlib.crc32(json.dumps([turn for _, turn in turns]).encode()) if turns else 0]
