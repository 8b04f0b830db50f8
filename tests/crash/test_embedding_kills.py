"""SIGKILL while the embedder works: every turn is there, is found by its words, and gets its vector later."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pager import Memory
from tests.crash.children import die, run, say
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


def record(directory: Path, last: int) -> None:
    """Single turns, then many without vectors, these in batches, then many at once."""
    memory = Memory.open(directory, embedder=Deadly(last), clock=HandClock())
    for number in range(SINGLE):
        memory.record("user", f"single{number}", session=str(number))
        say("single", 1)
    memory.record_many([{"role": "user", "text": f"early{n}", "session": str(n)} for n in range(TURNS)], embed=False)
    say("early", TURNS)
    while memory.embed_pending(100):
        pass
    memory.record_many({"role": "user", "text": f"late{n}", "session": str(n)} for n in range(TURNS))
    say("late", TURNS)


@pytest.mark.parametrize("last", [2, 3, SINGLE + 1, SINGLE + 2, SINGLE + 9, SINGLE + 25, SINGLE + 26, SINGLE + 27])
def test_killed_while_it_embeds(tmp_path: Path, last: int) -> None:
    life = run(record, tmp_path, last)
    assert life.signal == signal.SIGKILL
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        turns = memory._store.said.metadata(0)
        stored = memory._store.said.vectors(0)
        assert len(turns) >= sum(count for _, count in life.said)
        assert memory.count_unembedded() == len(turns) - len(stored) > 0
        assert memory.check() == []
        newest = memory.page_text(f"s{turns[-1].step}")
        assert set(memory.search_recall(newest, limit=1)[0].parts) == {"words"}
        while memory.embed_pending(1_000):
            pass
        assert {part for _, part, _ in memory._store.said.vectors(0)} == {turn.part for turn in turns}
        assert memory.search_recall(newest, limit=1)[0].parts["meaning"] > 0
        assert memory.check() == []
