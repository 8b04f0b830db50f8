"""SIGKILL while the embedder works: every turn is there, is found by its words, and gets its vector later."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pager import Memory
from tests.crash.children import Nursery
from tests.crash.embedding_life import SINGLE
from tests.support.clock import HandClock
from tests.support.embedders import Words

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


@pytest.mark.parametrize("last", [2, 3, SINGLE + 1, SINGLE + 2, SINGLE + 9, SINGLE + 25, SINGLE + 26, SINGLE + 27])
def test_killed_while_it_embeds(nursery: Nursery, tmp_path: Path, last: int) -> None:
    life = nursery.run("tests.crash.embedding_life:record", tmp_path, last)
    assert life.signal == signal.SIGKILL
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as memory:
        turns = memory._store.said.metadata(0)
        stored = memory._store.said.vectors(0)
        assert len(turns) >= sum(1 if kind == "single" else count for kind, count in life.said)
        assert memory.count_unembedded() == len(turns) - len(stored) > 0
        assert memory.check() == []
        newest = memory.page(f"s{turns[-1].step}")
        assert set(memory.search_recall(newest, limit=1)[0].parts) == {"words"}
        while memory.embed_pending(1_000):
            pass
        assert {part for _, part, _ in memory._store.said.vectors(0)} == {turn.part for turn in turns}
        assert memory.search_recall(newest, limit=1)[0].parts["meaning"] > 0
        assert memory.check() == []
