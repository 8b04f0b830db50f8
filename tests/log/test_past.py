"""Earlier states: any moment of the last days can be restored as another agent, and what is older is dropped."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pager import Home, Memory, NotFoundError, RejectedError, StorageError
from pager.errors import AgentLostError
from pager.log import log as log_module
from pager.log import past
from tests.log.test_restore import file_of, fold, live, rows_of

TABLES = ("bases", "chunks", "commits", "packs")


def now(address: str) -> datetime:
    """The moment, on the clock that counts."""
    return rows_of(address).server.ask("SELECT clock_timestamp()")[0][0]


def restored(address: str, file: Path, at: datetime) -> bytes:
    rows = rows_of(address)
    state = rows.state("x")
    assert state
    file.unlink(missing_ok=True)
    rows.states.restore(state.agent, file, at)
    return file.read_bytes()


def age(address: str, days: float) -> None:
    """Let everything have happened so much earlier."""
    for table in ("commits", "packs", "bases"):
        rows_of(address).server.ask(f"UPDATE selfpager.{table} SET at = at - %s", (timedelta(days=days),))


def counts(address: str) -> dict[str, int]:
    server = rows_of(address).server
    return {table: server.ask(f"SELECT count(*) FROM selfpager.{table}")[0][0] for table in TABLES}


def settle(memory: Memory) -> None:
    log: Any = memory._store._log
    log.settle()


def test_every_moment_is_restored_byte_for_byte_across_folds(
    home: Home, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "FOLD_BYTES", 8_000)
    moments = list[tuple[datetime, bytes]]()
    for seed in range(3):
        with home.open("x", embedder=None) as memory:
            for part in range(4):
                live(memory, Random(10 * seed + part), 15)
                memory.save_value("large", Random(part).randbytes(40_000 * (part % 2)).hex())
                if part == 3:
                    memory._store.maintenance.drop_vector(0)
                settle(memory)
                memory.save_value("at", str(part))
                moments.append((now(address), file_of(memory)))
    assert counts(address)["bases"] > 1
    assert counts(address)["packs"] > 3
    for at, content in moments:
        assert restored(address, tmp_path / "copy", at) == content


def test_what_is_older_than_the_days_that_are_kept_is_dropped(
    home: Home, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "FOLD_BYTES", 8_000)
    moments = list[tuple[datetime, bytes]]()
    for day in range(30):
        with home.open("x", embedder=None) as memory:
            live(memory, Random(day), 10)
            memory.save_value("day", str(day))
            settle(memory)
            memory.save_value("end of day", str(day))
            settle(memory)
            moments.append((now(address), file_of(memory)))
        age(address, 1)
        moments = [(at - timedelta(days=1), content) for at, content in moments]
        assert counts(address)["bases"] <= 5
    for at, content in moments[-7:]:
        assert restored(address, tmp_path / "copy", at) == content
    with pytest.raises(RejectedError, match=r"nothing of it is kept from then\. Its past begins at 20"):
        restored(address, tmp_path / "copy", moments[0][0])
    [(total, kept)] = rows_of(address).server.ask(
        "SELECT max(seq), max(seq) - (SELECT min(seq) FROM selfpager.packs) FROM selfpager.commits"
    )
    assert kept < total * 0.8
    assert counts(address)["packs"] > 3
    stale = """
        SELECT count(*) FROM selfpager.chunks c WHERE NOT EXISTS (
            SELECT FROM selfpager.bases b WHERE b.seq >= c.seq AND NOT EXISTS (
                SELECT FROM selfpager.chunks newer
                WHERE newer.number = c.number AND newer.seq > c.seq AND newer.seq <= b.seq))"""
    assert rows_of(address).server.ask(stale) == [(0,)]


def test_each_commit_in_a_pack_is_a_moment_that_can_be_restored(home: Home, address: str, tmp_path: Path) -> None:
    """Also where a commit has several parts, and where a pack ends in the middle of one."""
    server, moments = rows_of(address).server, list[tuple[datetime, bytes]]()
    with pytest.MonkeyPatch.context() as patched, home.open("x", embedder=None) as memory:
        patched.setattr(log_module, "PART_PAGES", 3)
        patched.setattr(past, "PACK_BYTES", 20_000)
        for number in range(12):
            memory.save_value("large", Random(number).randbytes(9_000 * (number % 3)).hex())
            moments.append((now(address), file_of(memory)))
        fold(memory)
        memory.save_value("large", None)
    [(split,)] = server.ask(
        "SELECT count(*) FROM selfpager.packs a JOIN selfpager.packs b ON a.last_seq = b.seq WHERE b.part > 0"
    )
    assert split > 0
    assert server.ask("SELECT count(DISTINCT seq) FROM selfpager.commits") == [(1,)]
    for at, content in moments:
        assert restored(address, tmp_path / "copy", at) == content


def test_a_damaged_pack_is_noticed_and_needed_by_nobody_but_the_past(home: Home, address: str, tmp_path: Path) -> None:
    with home.open("x", embedder=None) as memory:
        memory.archive("likes trams")
        before = now(address)
        memory.archive("likes boats")
        fold(memory)
    rows_of(address).server.ask("UPDATE selfpager.packs SET data = set_byte(data, 90, get_byte(data, 90) # 1)")
    with pytest.raises(StorageError, match=r"rows in Postgres are damaged \(pack 1: "):
        restored(address, tmp_path / "copy", before)
    with home.open("x", embedder=None) as memory:
        assert memory.check() == []


def test_who_lost_the_agent_packs_nothing(home: Home, address: str) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory, Random(1), 5)
        log: Any = memory._store._log
        rows_of(address).server.ask("UPDATE selfpager.agents SET claim = gen_random_uuid()")
        before = counts(address)
        with pytest.raises(AgentLostError, match="nothing was packed"):
            past.pack(rows_of(address).server, log._claim, log._restored.box, 3)
        assert counts(address) == before


def test_an_agent_as_it_was_becomes_another_one(home: Home, address: str) -> None:
    with home.open("x", embedder=None) as memory:
        memory.archive("likes trams")
        before = now(address)
        memory.archive("likes boats")
    home.restore("x", before, into="y")
    with home.open("y", embedder=None) as other:
        assert [use.fact.text for use in other.inspect.facts("current").rows] == ["likes trams"]
        other.archive("goes its own way")
    with home.read("x", embedder=None) as memory:
        assert [use.fact.text for use in memory.inspect.facts("current").rows] == ["likes boats", "likes trams"]
    with pytest.raises(RejectedError, match=r"there is an agent 'y' in .* already; choose another name"):
        home.restore("x", before, into="y")
    with pytest.raises(RejectedError, match="is in the future; give a time that has passed"):
        home.restore("x", before + timedelta(days=3), into="z")
    with pytest.raises(RejectedError, match=r"nothing of it is kept from then\. Its past begins at"):
        home.restore("x", before - timedelta(days=3), into="z")
    assert home.names() == ["x", "y"]


def begin_of_past(home: Home, address: str) -> str:
    with pytest.raises(RejectedError, match="nothing of it is kept from then") as refused:
        home.restore("x", now(address) - timedelta(days=30), into="y")
    return str(refused.value).partition("begins at ")[2].rstrip(".")


def test_where_its_past_begins_it_can_be_restored(
    home: Home, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where older commits are in one pack with those that are kept, as after a pack that failed."""
    pack, purged = past.pack, []
    monkeypatch.setattr(past, "pack", lambda *_: purged.append(1) if len(purged) < 2 else pack(*_))
    for day in range(4):
        with home.open("x", embedder=None) as memory:
            live(memory, Random(day), 10)
            fold(memory)
        begin = datetime.fromisoformat(begin_of_past(home, address))
        assert restored(address, tmp_path / "copy", begin)
        age(address, 4)


def test_the_past_of_an_agent_that_is_removed_meanwhile(home: Home, address: str, tmp_path: Path) -> None:
    home.open("x", embedder=None).close()
    rows = rows_of(address)
    state = rows.state("x")
    home.remove("x")
    with pytest.raises(NotFoundError, match="was removed a moment ago"):
        rows.states.restore(state.agent, tmp_path / "copy", now(address))  # type: ignore[union-attr]


def test_after_a_purge_no_earlier_state_is_kept(home: Home, address: str) -> None:
    with home.open("x", embedder=None) as memory:
        fact = memory.archive("the code is 4711-xyzzy")
        before = now(address)
        memory.archive("something else")
        memory.purge(fact.id)
    with pytest.raises(RejectedError, match="nothing of it is kept from then"):
        home.restore("x", before, into="y")


def test_a_chunk_of_an_earlier_state_in_place_of_the_newest_is_noticed(
    home: Home, address: str, tmp_path: Path
) -> None:
    with home.open("x", embedder=None) as memory:
        for number in range(2):
            memory.archive(f"fact {number}")
            fold(memory)
    rows_of(address).server.ask(
        "DELETE FROM selfpager.chunks WHERE number = 0 AND seq = (SELECT max(seq) FROM selfpager.chunks)"
    )
    with pytest.raises(Exception, match=r"chunk from 0 to .* is missing"):
        home.open("x", embedder=None)


def test_a_directory_keeps_no_past_and_says_what_does(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.open("x", embedder=None).close()
    with pytest.raises(RejectedError, match=r"no earlier states; restore a backup .* A home in Postgres keeps"):
        home.restore("x", "2026-01-01", into="y")
    assert home.names() == ["x"]


def test_of_a_removed_agent_and_its_helper_no_row_is_left(home: Home, address: str) -> None:
    with home.open("x", embedder=None) as memory:
        memory.archive("likes trams")
        fold(memory)
        memory.archive("likes boats")
        with Memory.open(home.place("x").helper("one"), embedder=None) as helper:
            helper.archive("of the helper")
    assert all(counts(address).values())
    home.remove("x")
    assert not any(counts(address).values())
