"""What is restored is what was committed, byte for byte; the log stays short; damaged rows are noticed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from pager import Home, Memory, StorageError
from pager.errors import AgentLostError
from pager.log import log as log_module
from pager.log.rows import Rows
from pager.log.states import States


def rows_of(address: str) -> Rows:
    from tests.support.postgres import rows_of

    return rows_of(address)


def restore(address: str, file: Path, name: str = "x") -> bytes:
    rows = rows_of(address)
    state = rows.state(name)
    assert state is not None
    file.unlink(missing_ok=True)
    rows.states.restore(state.agent, file)
    return file.read_bytes()


def file_of(memory: Memory) -> bytes:
    """The file of an open memory, with everything that was committed in it."""
    assert memory._store.checkpoint()
    return memory._store.path.read_bytes()


def log_of(memory: Memory) -> log_module.Log:
    log = memory._store._log
    assert isinstance(log, log_module.Log)
    return log


def finish_folding(memory: Memory) -> None:
    """Wait for the fold that is under way, and for the one that is due after it."""
    for number in range(2):
        if (folding := log_of(memory)._folding) is not None:
            folding.join()
        memory.save_value("finished", str(number))
    if (folding := log_of(memory)._folding) is not None:
        folding.join()


def fold(memory: Memory) -> None:
    """Fold what was committed, after the fold that may be under way."""
    log = log_of(memory)
    if log._folding:
        log._folding.join()
        log._note_fold()
    log._restored.log_bytes = 1 << 30  # longer than any
    memory.save_value("folded", str(log._seq))
    assert log._folding is not None
    log._folding.join()


def live(memory: Memory, random: Random, facts: int) -> None:
    for number in range(facts):
        memory.archive(f"fact {number} {random.randbytes(200).hex()}", key=f"k{random.randrange(20)}")
        if random.random() < 0.2:
            memory.search_archive("fact")  # commits without being durable
        if random.random() < 0.1:
            memory.forget(memory.inspect.newest_facts()[0].id, "no more")


def test_a_restored_agent_is_the_same_byte_for_byte(home: Home, address: str, tmp_path: Path) -> None:
    with home.open("x", embedder=None) as memory:
        for seed in range(5):
            live(memory, Random(seed), 15)
            memory.save_value("seed", str(seed))  # durable: what went before goes with it
            assert restore(address, tmp_path / "copy") == file_of(memory)
        memory.purge(memory.inspect.newest_facts()[0].id)
        assert restore(address, tmp_path / "copy") == file_of(memory)
        last = memory._store.path
        memory.close()
        assert not last.parent.exists()
    with home.open("x", embedder=None) as memory:
        assert memory.check() == []


def test_the_log_is_folded_and_what_is_restored_stays_the_same(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "FOLD_BYTES", 10_000)
    home, address = Home(f"{address}&keep_days=0"), f"{address}&keep_days=0"
    rows, folds = rows_of(address), set[int]()
    for seed in range(3):
        with home.open("x", embedder=None) as memory:
            live(memory, Random(seed), 50)
            memory.save_value("seed", str(seed))
            assert restore(address, tmp_path / "copy") == file_of(memory)
            finish_folding(memory)
            assert restore(address, tmp_path / "copy") == file_of(memory)
            assert memory.check() == []
        [(seq, folded, size, logged)] = rows.server.ask(
            """SELECT seq, folded, (SELECT sum(length(data)) FROM selfpager.chunks),
               (SELECT coalesce(sum(length(data)), 0) FROM selfpager.commits) FROM selfpager.agents"""
        )
        folds.add(folded)
        assert rows.server.ask("SELECT count(*) FROM selfpager.commits") == [(seq - folded,)]
        assert logged < max(20_000, size)
    assert len(folds - {0}) > 1


def test_a_database_that_became_smaller_has_no_chunks_behind_its_end(
    home: Home, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "FOLD_BYTES", 1)
    rows = rows_of(address)
    with home.open("x", embedder=None) as memory:
        for number in range(40):
            memory.save_value(f"large {number}", Random(number).randbytes(20_000).hex())
        fold(memory)
        many = rows.server.ask("SELECT count(*) FROM selfpager.chunks")
        for number in range(40):
            memory.save_value(f"large {number}", None)
        memory._store.maintenance.erase_freed()
        fold(memory)
        assert rows.server.ask("SELECT count(*) FROM selfpager.chunks") < many
        assert restore(address, tmp_path / "copy") == file_of(memory)


def test_a_commit_of_many_pages_has_several_rows_and_is_one(
    home: Home, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "PART_PAGES", 3)
    with home.open("x", embedder=None) as memory:
        memory.save_value("large", Random(1).randbytes(50_000).hex())
        assert restore(address, tmp_path / "copy") == file_of(memory)
    assert rows_of(address).server.ask("SELECT max(part) > 10 FROM selfpager.commits") == [(True,)]
    with home.open("x", embedder=None) as memory:
        assert memory.load_value("large") == Random(1).randbytes(50_000).hex()


def test_a_worker_that_lost_the_agent_folds_nothing(home: Home, address: str, tmp_path: Path) -> None:
    from tests.log.test_ownership import end_lease, stop_renewing

    first = home.open("x", embedder=None)
    live(first, Random(1), 20)
    stop_renewing(address)
    end_lease(address)
    with home.open("x", embedder=None) as second:
        live(second, Random(2), 20)
        before = restore(address, tmp_path / "copy")
        log = log_of(first)
        held = log._restored
        with pytest.raises(AgentLostError):
            log._rows.states.fold(log._claim, held, log._chunks(held, {}))
        assert restore(address, tmp_path / "copy") == before
    first.close()


DAMAGES = {
    "a commit that is gone": "DELETE FROM selfpager.commits WHERE seq = 2",
    "the last commit": "DELETE FROM selfpager.commits WHERE seq = (SELECT max(seq) FROM selfpager.commits)",
    "another byte": "UPDATE selfpager.commits SET data = set_byte(data, 30, get_byte(data, 30) # 1) WHERE seq = 1",
    "a row cut off": "UPDATE selfpager.commits SET data = substr(data, 1, 60) WHERE seq = 1",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_rows_are_noticed(home: Home, address: str, damage: str) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory, Random(1), 5)
    rows_of(address).server.ask(DAMAGES[damage])
    with pytest.raises(StorageError, match=r"rows in Postgres are damaged .* Restore the database from its backup"):
        home.open("x", embedder=None)
    with pytest.raises(StorageError, match="damaged"):
        home.read("x")
    assert rows_of(address).state("x").owner is None  # type: ignore[union-attr]


def test_writes_outside_of_a_transaction_are_commits_too(home: Home, address: str, tmp_path: Path) -> None:
    with home.open("x", embedder=None) as memory:
        store: Any = memory._store
        for write in (
            lambda: store.settings.put("a", "1"),
            lambda: store.run_many("INSERT INTO meta VALUES (?, ?)", [("b", "2"), ("c", "3")]),
            lambda: store.run("DELETE FROM meta WHERE key = 'b'"),
        ):
            write()
            assert restore(address, tmp_path / "copy") == file_of(memory)


def test_what_is_not_durable_goes_with_the_next_commit_that_is(home: Home, address: str) -> None:
    rows = rows_of(address)
    with home.open("x", embedder=None) as memory:
        memory.archive("likes trams")
        before = rows.state("x")
        memory.search_archive("trams")
        assert rows.state("x") == before or rows.state("x").seq == before.seq  # type: ignore[union-attr]
        memory.archive("likes boats")
        assert rows.state("x").seq == before.seq + 1  # type: ignore[union-attr]
        memory.search_archive("boats")
    with home.read("x") as reader:
        assert len(reader.ledger(events=["search"])) == 2


def test_after_a_purge_no_row_holds_the_text(home: Home, address: str, tmp_path: Path) -> None:
    from pager.log.pages import unpack

    secret = "the code is 4711-xyzzy"
    with home.open("x", embedder=None) as memory:
        fact = memory.archive(secret)
        memory.archive("something else")
        assert memory.purge(fact.id)
        rows = rows_of(address).server
        for table in ("commits", "packs"):
            assert rows.ask(f"SELECT count(*) FROM selfpager.{table}") == [(0,)]
        pages = [unpack(row[0]) for row in rows.ask("SELECT data FROM selfpager.chunks")]
        assert pages
        assert not [each for each in pages if b"4711-xyzzy" in each]
        assert restore(address, tmp_path / "copy") == file_of(memory)


def test_a_purge_deletes_what_is_no_command(home: Home, address: str) -> None:
    with home.open("x", embedder=None) as memory:
        fact = memory.archive("the code is 4711 4711")
        odd = "SELECT id, 'odd', convert_to('4711 ', 'UTF8') || '\\xff' FROM selfpager.agents"
        rows_of(address).server.ask(f"INSERT INTO selfpager.commands {odd}")
        memory.purge(fact.id)
    assert rows_of(address).server.ask("SELECT * FROM selfpager.commands") == []


def test_a_purge_that_postgres_interrupts_is_finished_by_the_next_opening(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.open("x", embedder=None) as memory:
        fact = memory.archive("the code is 4711-xyzzy")

        def fail(*_: Any) -> None:
            raise StorageError("no room")

        with monkeypatch.context() as patched:
            patched.setattr(States, "fold", fail)
            with pytest.raises(StorageError, match="cannot be folded now"):
                memory.purge(fact.id)
    with home.open("x", embedder=None) as memory:
        assert memory.fact(fact.id).purged
        assert memory.check() == []
