"""Turns from elsewhere, as JSON lines: `{"role": "user", "text": "...", "at": "2026-05-03T14:30Z", "name": "Dana"}`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pager.errors import Refused
from pager.memory import Memory

IMPORTED = "history:"


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The turns of a file in order; an error names the line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read: {error}.") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            turn = json.loads(line)
        except ValueError as error:
            raise Refused(f"{path}:{number}: this line is not JSON: {error}.") from None
        if not isinstance(turn, dict):
            raise Refused(f"{path}:{number}: a turn is an object with role and text, not {line[:60]!r}.")
        yield cast("dict[str, Any]", turn)


def take(memory: Memory, path: Path) -> int:
    """Record a file's turns, all or none, and only once; how many."""
    key = f"{IMPORTED}{path.resolve()}"
    stamp = f"{path.stat().st_size}:{path.stat().st_mtime_ns}" if path.exists() else ""
    if stamp and memory.note(key) == stamp:
        return 0
    with memory.transaction():
        taken = len(memory.record_many({"session": path.name, **turn} for turn in read(path)))
        memory.put_note(key, stamp)
    return taken
