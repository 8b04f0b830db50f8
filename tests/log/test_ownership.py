"""Who owns an agent: one at a time, the newest claim, as long as its lease lasts or nobody else comes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from pager import Home, InUseError, NewerFormatError, StorageError
from pager.clock import SystemClock
from pager.errors import AgentLostError
from pager.log.leases import Leases
from pager.log.rows import Rows
from pager.memory import Memory
from pager.store.schema import VERSION
from tests.support.cli import ROOT

if TYPE_CHECKING:
    from tests.support.postgres import Postgres


def rows_of(address: str) -> Rows:
    from tests.support.postgres import rows_of

    return rows_of(address)


def end_lease(address: str) -> None:
    from tests.support.postgres import end_leases

    end_leases(address)


def stop_renewing(address: str) -> None:
    """As of a worker that stands still."""
    leases = Leases.of(rows_of(address))
    for claim in list(leases._held):
        leases.drop(claim)


def opened(home: Home, name: str = "x", **options: Any) -> Memory:
    return home.open(name, **{"embedder": None, **options})


def test_the_second_is_told_who_has_it_and_since_when(home: Home) -> None:
    with opened(home), pytest.raises(InUseError, match=f"process {os.getpid()} on .*since .* lease ends in"):
        opened(home)
    with opened(home) as memory:  # given back when it is closed, without waiting for the lease
        assert memory.check() == []


def test_a_lease_is_renewed_as_long_as_it_is_open(quick_address: str) -> None:
    with opened(Home(quick_address)) as memory:
        rows, ends = rows_of(quick_address), set[object]()
        for _ in range(3000):
            ends.add(rows.server.ask("SELECT lease_until FROM selfpager.agents")[0][0])
            if len(ends) == 3:
                break
            Event().wait(0.02)
        assert len(ends) == 3
        memory.archive("still here")


def test_leases_are_renewed_also_after_no_thread_could_be_started(
    home: Home, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            opened(home)
    with opened(home):
        thread = Leases.of(rows_of(address))._thread
        assert thread
        assert thread.is_alive()


def test_who_lost_it_is_refused_everything_and_the_next_has_all(home: Home, address: str) -> None:
    first = opened(home)
    first.archive("by the first")
    stop_renewing(address)
    end_lease(address)
    with opened(home) as second:
        with pytest.raises(AgentLostError, match="lost the agent 'x': another process has claimed it"):
            first.archive("too late")
        for refused in (first.core, first.request, lambda: first.append_user("hello"), first.check):
            with pytest.raises(AgentLostError, match="open the agent again"):
                refused()
        first.close()
        second.archive("by the second")
        assert [use.fact.text for use in second.inspect.facts("current").rows] == ["by the second", "by the first"]
        assert second.check() == []


def test_a_worker_learns_from_its_renewal_that_it_lost_the_agent(home: Home, address: str) -> None:
    first = opened(home)
    leases = Leases.of(rows_of(address))
    held = dict(leases._held)
    stop_renewing(address)
    end_lease(address)
    with opened(home):
        leases.renew(held)
        with pytest.raises(AgentLostError):
            first.core()
    first.close()


def test_in_a_transaction_it_is_lost_with_it(home: Home, address: str) -> None:
    first = opened(home)
    stop_renewing(address)

    def archive_two() -> None:
        with first.transaction():
            first.archive("one")
            end_lease(address)
            opened(home).close()
            first.archive("two")

    with pytest.raises(AgentLostError):
        archive_two()
    first.close()
    with opened(home) as second:
        assert second.inspect.facts("current").total == 0


def test_of_many_that_claim_at_once_one_has_it(home: Home, address: str) -> None:
    opened(home).close()
    rows, owners = rows_of(address), list[object]()
    begin = Event()

    def claim() -> None:
        begin.wait()
        owners.append(rows.claim("x", {"pid": 1}))

    threads = [Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    begin.set()
    for thread in threads:
        thread.join()
    assert len([owner for owner in owners if owner]) == 1


def test_a_claim_whose_answer_was_lost_is_found_again(
    home: Home, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(home).close()
    rows = rows_of(address)
    tell, lost = rows.server.tell, list[int]()

    def tell_and_lose(*statements: Any) -> Any:
        answer = tell(*statements)
        if not lost and "SET fence" in statements[0][0]:
            from pager.log.postgres import UnavailableError

            lost.append(1)
            raise UnavailableError("the answer was lost")
        return answer

    monkeypatch.setattr(rows.server, "tell", tell_and_lose)
    assert rows.claim("x", {"pid": 1}) is not None
    assert lost


def test_an_agent_of_a_newer_format_is_not_claimed(home: Home, address: str) -> None:
    with opened(home) as memory:
        memory.archive("kept")
    rows_of(address).server.ask("UPDATE selfpager.agents SET format = %s", (VERSION + 1,))
    with pytest.raises(NewerFormatError, match=f"has format {VERSION + 1}; .* up to {VERSION}"):
        opened(home)
    assert rows_of(address).server.ask("SELECT fence FROM selfpager.agents") == [(1,)]


def test_of_an_agent_that_never_was_nothing_stays(home: Home, address: str) -> None:
    with pytest.raises(TypeError):
        home.open("x", nonsense=True)
    claim = rows_of(address)
    claim.create("y")
    held = claim.claim("y", {"pid": 1})
    assert held is not None
    claim.release(held)
    assert claim.state("y") is None
    assert home.names() == []


def test_one_that_goes_away_while_it_is_claimed_is_made_anew(
    home: Home, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another process has given it back empty, or has removed it."""
    create = Rows.create

    def create_and_lose(rows: Rows, name: str) -> None:
        create(rows, name)
        monkeypatch.undo()
        rows.server.ask("DELETE FROM selfpager.agents")

    monkeypatch.setattr(Rows, "create", create_and_lose)
    with opened(home) as memory:
        assert memory.check() == []


def test_tables_of_a_newer_layout_are_refused(postgres: Postgres, home: Home, address: str) -> None:
    from pager.log.postgres import Server

    home.names()
    Server.at(address).ask("UPDATE selfpager.about SET layout = 99")
    Server.at(address).close()
    with pytest.raises(NewerFormatError, match="layout 99"):
        Home(address)


def test_what_a_killed_process_left_in_the_cache_is_deleted(home: Home, tmp_path: Path, monkeypatch: Any) -> None:
    from pager.log import cache

    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cache.Cache, "_own", None)
    left = cache.root() / "left"
    left.mkdir(parents=True, mode=0o700)
    (left / cache.USED).touch()
    (left / "pager.db").write_bytes(b"a secret")
    half = cache.root() / "half"  # it was being deleted
    half.mkdir()
    (half / "pager.db").write_bytes(b"a secret")
    with opened(home) as memory:
        assert not left.exists()
        assert not half.exists()
        [used] = cache.root().iterdir()
        [copy] = (each for each in used.iterdir() if each.name != cache.USED)
        memory.archive("hello")
        assert used.stat().st_mode & 0o777 == copy.stat().st_mode & 0o777 == 0o700
        assert (copy / "pager.db").stat().st_mode & 0o777 == 0o600
    assert list(cache.root().iterdir()) == []


MAKE_MANY = """
from pager.log.cache import Cache
for _ in range(100):
    cache = Cache()
    (cache.path / "pager.db").touch()
    cache.close()
"""


def test_a_process_has_one_lock_for_all_of_its_caches(tmp_path: Path, monkeypatch: Any) -> None:
    from pager.log import cache

    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cache.Cache, "_own", None)
    first, *others = (cache.Cache() for _ in range(20))
    assert len({each.path for each in (first, *others)}) == 20
    [used] = cache.root().iterdir()
    assert {each.path.parent for each in others} == {used}
    assert sorted(each.name for each in used.rglob("*") if each.is_file()) == [cache.USED]
    for each in others:
        each.close()
        each.close()
    assert first.path.is_dir()
    first.close()
    assert list(cache.root().iterdir()) == []


def test_a_commit_writes_no_index_of_agents(home: Home, address: str) -> None:
    """Commits and renewals change only columns without an index: Postgres then writes the row alone."""
    home.names()
    sql = """SELECT DISTINCT attname::text FROM pg_index
             JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
             WHERE indrelid = 'selfpager.agents'::regclass"""
    assert {row[0] for row in rows_of(address).server.ask(sql)} == {"id", "name", "due"}


@pytest.mark.slow
def test_no_process_deletes_the_cache_that_another_makes(tmp_path: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    makers = [subprocess.Popen([sys.executable, "-c", MAKE_MANY], env=environ, cwd=ROOT) for _ in range(4)]
    assert [maker.wait() for maker in makers] == [0] * 4
    [root] = tmp_path.iterdir()
    assert list(root.iterdir()) == []


def test_a_link_in_the_place_of_the_cache_is_refused(home: Home, tmp_path: Path, monkeypatch: Any) -> None:
    from pager.log import cache

    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cache.Cache, "_own", None)
    cache.root().symlink_to(tmp_path)
    with pytest.raises(StorageError, match="no directory can be made"):
        opened(home)


def test_a_fence_that_is_given_out_twice_has_one_owner(home: Home, address: str) -> None:
    """Postgres may lose a claim in a crash, or with a standby that did not have it. The next has the same fence."""
    first = opened(home)
    stop_renewing(address)
    rows = rows_of(address)
    rows.server.ask("UPDATE selfpager.agents SET fence = fence - 1, claim = NULL, owner = NULL")
    with opened(home) as second:
        assert rows.server.ask("SELECT fence FROM selfpager.agents") == [(1,)]
        with pytest.raises(AgentLostError):
            first.archive("of the first")
        second.archive("of the second")
        assert [use.fact.text for use in second.inspect.facts("current").rows] == ["of the second"]
    first.close()


def test_dead_helpers_hide_no_agent_that_is_due(home: Home, address: str) -> None:
    """A helper is visited with its agent. Those whose process has died take no place among what is due."""
    with opened(home) as memory:
        memory.archive("kept")
    rows_of(address).server.ask(
        """INSERT INTO selfpager.agents (name, seq, owner, lease_until)
           SELECT 'x/' || n, 1, '{}', clock_timestamp() - interval '1 minute' FROM generate_series(1, 1000) n"""
    )
    home.set_due("x", SystemClock().now())
    assert home.take_due() == ["x"]


def test_whose_lease_was_not_renewed_is_not_sure(home: Home, address: str) -> None:
    with opened(home) as memory:
        assert memory.is_sure
    with opened(Home(f"{address}&lease_seconds=0.1")) as memory:
        stop_renewing(f"{address}&lease_seconds=0.1")
        while memory.is_sure:  # a tenth of a second
            pass
