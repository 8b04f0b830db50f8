"""What tests/crash/test_embedding_kills.py starts: a life that dies while the embedder works."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pager import Memory
from tests.crash.children import die, say
from tests.support.clock import HandClock
from tests.support.embedders import Words

TURNS, SINGLE = 600, 5


class Deadly(Words):
    """Ends the process in the middle of its work, when it is asked for the `last` time."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self._last = last

    def embed(self, texts: Sequence[str]) -> Any:
        rows = super().embed(texts)
        self._last -= 1
        if self._last == 0:
            die()
        return rows


def record(directory: str, last: int) -> None:
    """Single turns, then many of them and facts, and one batch at a time of what has waited."""
    memory = Memory.open(Path(directory), embedder=Deadly(last), clock=HandClock())
    for number in range(SINGLE):
        memory.record("user", f"single{number}", session=str(number))
        say("single", number)
    memory.record_many([{"role": "user", "text": f"early{n}", "session": str(n)} for n in range(TURNS)], embed=False)
    say("early", TURNS)
    while memory.embed_pending(100):
        pass
    memory.record_many({"role": "user", "text": f"late{n}", "session": str(n)} for n in range(TURNS))
    say("late", TURNS)
