"""Postgres' disk is full: what is not stored is refused, with the reason, and when there is space all goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from pager import Home, Memory, StorageError
from pager.errors import AgentLostError, UnavailableError
from tests.log.test_standby import facts, reopened

if TYPE_CHECKING:
    from tests.support.standby import Pair

random = Random(4)


def text() -> str:
    return random.randbytes(3000).hex()  # that cannot be packed


@pytest.fixture
def disk(pair: Pair, pair_address: str) -> Iterator[Pair]:
    Home(pair_address)  # makes the tables
    pair.run("SELECT pg_switch_wal()")
    yield pair
    pair.free_disk()


def fill_up(memory: Memory, stored: list[str]) -> None:
    """Store facts until that is refused."""
    while len(stored) < 1000:
        new = text()
        memory.archive(new)
        stored.append(new)


def test_what_has_no_space_is_refused_and_then_all_goes_on(disk: Pair, pair_address: str) -> None:
    home, stored = Home(pair_address), list[str]()
    for _ in range(2):
        with reopened(home, pair_address, "x") as memory:
            memory.archive(text())
            stored.append(facts(memory)[-1])
            disk.fill_disk()
            with pytest.raises(AgentLostError, match=r"was not stored .*(its disk is full|File too large).* try again"):
                fill_up(memory, stored)
            assert home.failure() in ("its disk is full", "it refuses")
            disk.free_disk()
        with reopened(home, pair_address, "x") as memory:
            assert facts(memory) == stored
            memory.archive(text())
            stored.append(facts(memory)[-1])
            assert home.failure() is None
            assert memory.check() == []


def test_a_postgres_that_gives_up_comes_back_with_all_that_was_acknowledged(disk: Pair, pair_address: str) -> None:
    """Where there is no space for its own log, it ends."""
    home, stored = Home(pair_address), list[str]()
    with reopened(home, pair_address, "x") as memory:
        memory.archive(text())
        stored.append(facts(memory)[-1])
        disk.fill_disk()
        with suppress(Exception):
            disk.run("SELECT pg_logical_emit_message(false, 'x', repeat('x', 3000000))")
        with pytest.raises(AgentLostError):
            fill_up(memory, stored)
        with suppress(UnavailableError):
            home.names()
        disk.free_disk()
    with reopened(home, pair_address, "x") as memory:
        assert facts(memory)[: len(stored)] == stored
        memory.archive("the next")
        assert memory.check() == []


def settle(memory: Memory) -> None:
    log: Any = memory._store._log
    log.settle()
    assert not log._is_folding


def test_a_fold_without_space_is_made_up_for(disk: Pair, pair_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commits before a fold left space for some more."""
    from pager.log import log as log_module
    from tests.support.postgres import commits_of, rows_of

    if disk.primary.disk is None:
        pytest.skip("needs a small disk for Postgres, which may not be mounted here")
    home, rows = Home(f"{pair_address}&keep_days=0"), rows_of(pair_address)
    with home.open("x", embedder=None) as memory, home.open("y", embedder=None) as other:
        for _ in range(60):
            memory.archive(text())
        other.archive("behind them")
        memory._store._log.forget_past()  # type: ignore[union-attr]
        rows.server.ask("VACUUM selfpager.commits")
        for _ in range(8):
            memory.archive(text())
        before = commits_of(rows, "x")
        disk.fill_disk()
        monkeypatch.setattr(log_module, "FOLD_BYTES", 0)
        memory.archive("small")
        settle(memory)
        assert commits_of(rows, "x") == (before[0] + 1, before[1])
        memory.archive("goes on")
        settle(memory)
        assert commits_of(rows, "x") == (before[0] + 2, before[1])
        with pytest.raises(StorageError, match=r"cannot be folded now\. Try again"):
            memory._store._log.forget_past()  # type: ignore[union-attr]
        disk.free_disk()
        memory.archive("the last")
        settle(memory)
        last, folded = commits_of(rows, "x")
        assert folded == last == before[0] + 3
        assert memory.check() == []
    with home.open("x", embedder=None) as memory:
        assert len(facts(memory)) == 71
        assert memory.check() == []
