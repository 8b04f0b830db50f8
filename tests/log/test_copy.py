"""A reader's copy follows its owner: what it holds is what is restored, and it pays for the changes only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pager import Home, Memory, MemoryReader, Mount, NewerFormatError, NotFoundError, Prefetch, StorageError
from pager.log import copy as copy_module
from pager.log import log as log_module
from pager.log.copies import Copies
from pager.log.copy import Copy
from tests.log.test_restore import finish_folding, fold, live, restore, rows_of
from tests.support.postgres import end_leases

SECRET = "xyzzy plugh quuxly"


@contextmanager
def copied(address: str, tmp_path: Path) -> Iterator[tuple[Copy, Path]]:
    copy = Copy(rows_of(address), "x", tmp_path / "copy.db")
    with closing(copy):
        copy.attend(copy.follow)
        yield copy, tmp_path / "copy.db"


def same(one: bytes, other: bytes) -> bool:
    """Return True for files of the same pages. In the head of a copy are other versions and numbers of changes."""
    return (one[:18], one[20:24], one[28:92], one[96:]) == (other[:18], other[20:24], other[28:92], other[96:])


def texts(reader: MemoryReader) -> list[str]:
    return [use.fact.text for use in reader.inspect.facts("current").rows]


def questions(address: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets each statement of this process from now on."""
    server: Any = rows_of(address).server
    asked: list[str] = []
    tell, snapshot = server.tell, server.snapshot
    monkeypatch.setattr(server, "tell", lambda *all_: (asked.extend(sql for sql, _ in all_), tell(*all_))[1])
    monkeypatch.setattr(server, "snapshot", lambda: (asked.append("snapshot"), snapshot())[1])
    return asked


@pytest.mark.parametrize("seed", range(3))
def test_a_copy_is_what_is_restored_whatever_is_committed(
    home: Home, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(log_module, "FOLD_BYTES", 20_000)
    random = Random(seed)
    with home.open("x", embedder=None) as memory, copied(address, tmp_path) as (copy, file), home.read("x") as reader:
        for number in range(40):
            doing = random.randrange(12)
            if doing == 0:
                fact = memory.archive(f"{SECRET} {number}")
                memory.purge(fact.id)  # gets smaller, and ends the past
            elif doing == 1:
                finish_folding(memory)
            elif doing == 2:
                memory.save_value("large", "x" * random.randrange(300_000))
            else:
                for each in range(random.randrange(4)):
                    memory.archive(f"fact {number} {each}")
            copy.follow()
            assert same(file.read_bytes(), restore(address, tmp_path / "expected"))
            if random.random() < 0.5:
                assert texts(reader) is not None
                reader.follow()
                assert texts(reader) == [use.fact.text for use in memory.inspect.facts("current").rows]
        assert reader._store.maintenance.damage() == []


def test_it_costs_one_question_while_nothing_changes_and_the_changes_afterwards(
    home: Home, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.open("x", embedder=None) as memory:
        live(memory, Random(1), 30)
        memory.archive("The ferry takes twenty minutes.")
        with (
            home.open("ann", embedder=None, mounts=[Mount(home.place("x"))], prefetch=Prefetch(k=3)) as ann,
            home.read("x") as reader,
        ):
            ann.search_archive("ferry")
            asked = questions(address, monkeypatch)
            reader.search_archive("ferry")
            assert len(asked) == 1
            asked.clear()
            ann.append_user("How long does the ferry take?")
            ann.request()
            read = [sql for sql in asked if "SELECT" in sql and "UPDATE" not in sql]
            assert len(read) == 1  # the other statements are its own commits
            fold(memory)
            ann.search_archive("ferry")
            memory.archive("The ferry is blue.")
            asked.clear()
            assert {hit.text for hit in ann.search_archive("ferry")} >= {"The ferry is blue."}
            assert len([sql for sql in asked if "UPDATE" not in sql]) == 2
            assert "snapshot" not in asked  # nothing was restored


def test_what_is_read_as_of_one_moment_does_not_follow(home: Home) -> None:
    with home.open("x", embedder=None) as memory, home.read("x") as reader:
        memory.archive("one")
        with reader.read_snapshot():
            assert texts(reader) == ["one"]
            memory.archive("two")
            assert reader.search_archive("two") == []
            assert texts(reader) == ["one"]
        before = reader.revision()
        assert texts(reader) == ["two", "one"]
        memory.archive("three")
        assert reader.revision() != before


def holds_secret(reader: MemoryReader) -> bool:
    return any(SECRET.encode() in file.read_bytes() for file in reader._store.path.parent.iterdir() if file.is_file())


def test_of_a_purge_nothing_stays_in_a_copy_also_when_nobody_reads_it(home: Home, address: str) -> None:
    with home.open("x", embedder=None) as memory:
        fact = memory.archive(SECRET)
        with home.read("x") as reader, home.read("x") as other:
            assert holds_secret(reader)
            memory.purge(fact.id)
            assert not holds_secret(reader)
            assert not holds_secret(other)
            assert reader.search_archive("xyzzy") == []
        assert rows_of(address).server.ask("SELECT * FROM selfpager.copies") == []


def test_of_an_agent_that_is_erased_nothing_stays_in_a_copy_also_when_nobody_reads_it(home: Home, address: str) -> None:
    server = rows_of(address).server
    with home.open("x", embedder=None) as memory:
        memory.archive(SECRET)
    with home.read("x") as reader:
        assert holds_secret(reader)
        home.remove("x")
        Copies.of(server)._changed.set()  # as when its lease is renewed next
        while server.ask("SELECT 1 FROM selfpager.copies WHERE awaited IS NOT NULL"):
            pass
        assert not holds_secret(reader)
        for word in ("one", "two"):
            with home.open("x", embedder=None) as memory:
                memory.archive(word)
                assert [hit.text for hit in reader.search_archive(word)] == [word]
            home.remove("x")  # the next one is another agent, whether the copy has noticed that or not


def test_a_purge_names_who_reads_an_old_copy_and_is_finished_afterwards(home: Home, quick_address: str) -> None:
    home.open("x", embedder=None).close()
    with home.read("x") as reader:  # its lease does not end, and the purge waits for it as long as its own lasts
        with Home(quick_address).open("x", embedder=None) as memory:
            fact = memory.archive(SECRET)
            with (
                reader.read_snapshot(),
                pytest.raises(StorageError, match=rf"process {os.getpid()} on .* reads an old copy.* it goes on then"),
            ):
                memory.purge(fact.id)
            assert memory.load_value("purging") is None
            assert memory._store.settings.get("purging") == fact.id
            assert holds_secret(reader)
        with home.open("x", embedder=None) as memory:
            assert not holds_secret(reader)
            assert memory._store.settings.get("purging") is None


def test_a_process_that_has_died_with_a_copy_is_named_in_the_ledger(home: Home, address: str) -> None:
    server = rows_of(address).server
    with home.open("x", embedder=None) as memory:
        fact = memory.archive(SECRET)
        sql = """INSERT INTO selfpager.copies SELECT gen_random_uuid(), id, 'process 7 on far', NULL,
                 clock_timestamp() - interval '1 second' FROM selfpager.agents"""
        server.ask(sql)
        memory.purge(fact.id)
        told = [row.reason for row in memory.ledger(events=["error"])]
        assert [reason[:36] for reason in told] == ["process 7 on far, which has died, may"[:36]]
        assert server.ask("SELECT * FROM selfpager.copies") == []
        assert memory.check() == []


def test_a_copy_that_was_taken_for_dead_is_known_again(home: Home, address: str) -> None:
    server = rows_of(address).server
    with home.open("x", embedder=None) as memory, home.read("x"):
        server.ask("DELETE FROM selfpager.copies")
        copies = Copies.of(server)
        copies._renew(dict(copies._held))
        assert len(server.ask("SELECT * FROM selfpager.copies")) == 1
        assert memory.check() == []


def test_a_copy_of_another_agent_than_before_is_known_again_as_that(home: Home, address: str) -> None:
    server = rows_of(address).server
    home.open("x", embedder=None).close()
    with home.read("x") as reader:
        home.remove("x")
        home.open("x", embedder=None).close()
        reader.follow()
        server.ask("DELETE FROM selfpager.copies")  # a purge took this process for dead
        copies = Copies.of(server)
        copies._renew(dict(copies._held))
        assert server.ask("SELECT agent FROM selfpager.copies") == server.ask("SELECT id FROM selfpager.agents")


def test_a_copy_that_is_dropped_during_a_renewal_is_not_known_again(home: Home, address: str) -> None:
    server = rows_of(address).server
    home.open("x", embedder=None).close()
    copies = Copies.of(server)
    with home.read("x"):
        held = dict(copies._held)
    copies._renew(held)
    assert server.ask("SELECT * FROM selfpager.copies") == []


@pytest.mark.parametrize("equal", [True, False])
def test_a_past_that_has_become_another_one_is_noticed(home: Home, address: str, equal: bool) -> None:
    """As after a failover to a standby that lacked the last commit."""
    server = rows_of(address).server
    with home.open("x", embedder=None) as memory:
        memory.archive("kept")
    with home.open("x", embedder=None) as memory, home.read("x") as reader:
        memory.archive("lost")
        reader.follow()
        assert texts(reader) == ["lost", "kept"]
        server.ask("DELETE FROM selfpager.commits c USING selfpager.agents a WHERE c.seq = a.seq")
        server.ask("UPDATE selfpager.agents SET seq = seq - 1")
        end_leases(address)
        with home.open("x", embedder=None) as other:
            other.archive("other")
            for number in range(0 if equal else 3):
                other.archive(f"other {number}")
            reader.follow()
            assert texts(reader)[-2:] == ["other", "kept"]
            assert reader._store.maintenance.damage() == []


def test_whoever_falls_far_behind_restores(
    home: Home, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_module, "MOST_FOLLOWED", 3)
    with home.open("x", embedder=None) as memory:
        memory.archive("one")
        with copied(address, tmp_path) as (copy, _):
            for count, anew in ((0, False), (3, False), (4, True)):
                for number in range(count):
                    memory.archive(f"{count} {number}")
                assert copy.follow() is anew


def test_a_reader_does_not_follow_into_a_format_that_it_does_not_know(home: Home, address: str) -> None:
    """As when a newer selfpager has opened the agent."""
    with home.open("x", embedder=None) as memory, home.read("x") as reader:
        memory.archive("one")
        reader.follow()
        rows_of(address).server.ask("UPDATE selfpager.agents SET format = 999, seq = seq + 1")
        with pytest.raises(NewerFormatError, match=r"/x has format 999; .* Install a newer selfpager"):
            reader.core()
        assert texts(reader) == ["one"]


def test_an_agent_that_is_gone_and_one_that_has_its_name_now(home: Home) -> None:
    with home.open("x", embedder=None) as memory:
        memory.archive("of the first")
    with home.read("x") as reader:
        assert texts(reader) == ["of the first"]
        home.remove("x")
        with pytest.raises(NotFoundError, match="there is no memory"):
            reader.core()
        with home.open("x", embedder=None) as memory:
            memory.archive("of the second")
        assert [hit.text for hit in reader.search_archive("of the")] == ["of the second"]


def test_a_mount_of_an_agent_that_is_gone_is_empty(home: Home) -> None:
    home.open("x", embedder=None).close()
    with home.open("ann", embedder=None, mounts=[Mount(home.place("x"))]) as ann:
        home.send("x", "archive", {"text": "The ferry is blue."})
        assert len(ann.search_archive("ferry")) == 1
        home.remove("x")
        assert ann.search_archive("ferry") == []
        with home.open("x", embedder=None) as memory:
            memory.archive("The ferry is green.")
        assert [hit.text for hit in ann.search_archive("ferry")] == ["The ferry is green."]


def test_a_copy_that_could_not_be_written_is_whole_again_the_next_time(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.open("x", embedder=None) as memory, home.read("x") as reader:
        memory.archive("one")

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(Copy, "_finish", full)
            with pytest.raises(StorageError, match=r"No space left .*Choose another TMPDIR"):
                reader.core()
        memory.archive("two")
        reader.follow()
        assert texts(reader) == ["two", "one"]
        assert reader._store.maintenance.damage() == []


def test_a_new_key_is_followed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography", reason="needs cryptography: pip install 'selfpager[encryption]'")
    monkeypatch.setenv("SELFPAGER_MASTER_KEY", "A" * 43 + "=")
    with Memory.open(home.place("x"), embedder=None) as memory:
        memory.archive("one")
    with home.read("x") as reader:
        home.change_key("x")
        with home.open("x", embedder=None) as memory:
            memory.archive("two")
            reader.follow()
            memory.archive("three")
            reader.follow()
        assert texts(reader) == ["three", "two", "one"]
