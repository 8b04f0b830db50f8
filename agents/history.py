"""Turns from elsewhere, as JSON lines: `{"role": "user", "text": "...", "at": "2026-05-03T14:30Z", "name": "Dana"}`."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pager.errors import Refused
from pager.memory import Memory

IMPORTED = "history:"


def read(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The turns of a file in order, with their lines; an error names the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read: {error}.") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            turn = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Refused(f"{path}:{number}: this line is not JSON: {error}.") from None
        if not isinstance(turn, dict):
            raise Refused(f"{path}:{number}: a turn is an object with role and text, not {line[:60]!r}.")
        yield number, cast("dict[str, Any]", turn)


def take(memory: Memory, path: Path) -> int:
    """Record a file's turns, all or none, and each only once, also when the file has grown since; how many."""
    key = f"{IMPORTED}{path.resolve()}"
    known = json.loads(memory.note(key) or "[0, 0]")
    turns = list(read(path))
    start = known[0] if known == _mark(turns[: known[0]]) else 0
    with memory.transaction():
        for number, turn in turns[start:]:
            try:
                memory.record_many([{"session": path.name, **turn}], embed=False)
            except Refused as error:
                raise Refused(f"{path}:{number}: {str(error).removeprefix('turn 0: ')}") from None
        memory.put_note(key, json.dumps(_mark(turns)))
    return len(turns) - start


def _mark(turns: list[tuple[int, dict[str, Any]]]) -> list[int]:
    """How many turns, and a number that is another one for other turns."""
    return [len(turns), zlib.crc32(json.dumps([turn for _, turn in turns]).encode()) if turns else 0]
