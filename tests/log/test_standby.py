"""A Postgres with a standby: what was acknowledged is there when that one has taken over, and the work goes on by
itself. What only the old one had passes for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from pager import Home, InUseError, Memory, StorageError
from pager.errors import AgentLostError, UnavailableError

if TYPE_CHECKING:
    from tests.support.standby import Pair


def facts(memory: Memory) -> list[str]:
    found = list[str]()
    while rows := memory.inspect.facts("current", offset=len(found), limit=100).rows:
        found += [use.fact.text for use in rows]
    return found[::-1]


def database(address: str) -> str:
    return urlsplit(address).path.strip("/")


def test_an_agent_between_two_commits_does_not_notice(pair: Pair, pair_address: str) -> None:
    with Home(pair_address).open("x", embedder=None) as memory:
        for number in range(3):
            memory.archive(f"fact {number}")
            pair.fail_over()
        assert facts(memory) == ["fact 0", "fact 1", "fact 2"]
        memory.archive("fact 3")
    with Home(pair_address).open("x", embedder=None) as memory:
        assert facts(memory) == [f"fact {number}" for number in range(4)]
        assert memory.check() == []


def reopened(home: Home, address: str, name: str) -> Memory:
    """Open an agent that was lost here. Its lease may not have been given back."""
    from tests.support.postgres import end_leases

    while True:
        with suppress(InUseError, UnavailableError):
            return home.open(name, embedder=None)
        with suppress(UnavailableError):
            end_leases(address)


def test_promotions_while_agents_work_lose_nothing_that_was_acknowledged(pair: Pair, pair_address: str) -> None:
    """Each worker opens its agent again when it has lost it, and goes on."""
    home, ended = Home(pair_address), Event()
    acknowledged: dict[str, list[str]] = {name: [] for name in ("a", "b", "c")}
    lost = list[str]()

    def work(name: str) -> None:
        number = 0
        while not ended.is_set():
            with reopened(home, pair_address, name) as memory:
                with suppress(AgentLostError):
                    while not ended.is_set():
                        memory.archive(f"{name} {number}")
                        acknowledged[name].append(f"{name} {number}")
                        number += 1
                    return
                number += 1  # of what was not acknowledged
                lost.append(name)

    workers = [Thread(target=work, args=(name,)) for name in acknowledged]
    for worker in workers:
        worker.start()
    try:
        for round_ in range(3):
            while min(map(len, acknowledged.values())) < 5 * (round_ + 1):
                workers[0].join(0.01)
            pair.fail_over()
    finally:
        ended.set()
    for worker in workers:
        worker.join()
    for name, texts in acknowledged.items():
        with home.open(name, embedder=None) as memory:
            found = facts(memory)
            assert [text for text in found if text in set(texts)] == texts
            assert len(found) - len(texts) <= lost.count(name)
            assert memory.check() == []


# The standby is missing


@contextmanager
def without_standby(pair: Pair) -> Iterator[None]:
    pair.kill_standby()
    try:
        yield
    finally:
        pair.start_standby()


def test_without_its_standby_a_commit_ends_with_what_to_do(pair: Pair, pair_address: str) -> None:
    from tests.support.postgres import impatient

    home = Home(pair_address)
    memory = home.open("x", embedder=None)
    memory.archive("one")
    assert home.failure() is None
    with without_standby(pair), impatient(pair_address):
        with pytest.raises(
            AgentLostError, match=r"nobody knows .* not answered .* synchronous standby, see in pg_stat"
        ):
            memory.archive("two")
        assert str(home.failure()).startswith("it has not answered for ")
        memory.close()
    with reopened(home, pair_address, "x") as memory:
        assert facts(memory) in (["one"], ["one", "two"])
        memory.archive("three")
        assert home.failure() is None


@contextmanager
def cancelled(pair: Pair) -> Iterator[None]:
    """Have somebody cancel whatever waits for the standby."""
    ended = Event()

    def cancel() -> None:
        while not ended.wait(0.02):
            pair.run("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    canceller = Thread(target=cancel)
    with without_standby(pair):
        canceller.start()
        try:
            yield
        finally:
            ended.set()
            canceller.join()


def test_what_the_standby_lacks_is_not_acknowledged(pair: Pair, pair_address: str) -> None:
    """Postgres calls a commit a success whose wait was cancelled."""
    home = Home(pair_address)
    memory = home.open("x", embedder=None)
    memory.archive("one")
    with cancelled(pair):
        with pytest.raises(AgentLostError, match=r"nobody knows .*standby has not confirmed .* Nobody may cancel"):
            memory.archive("two")
        memory.close()
    with reopened(home, pair_address, "x") as memory:
        assert facts(memory) == ["one", "two"]


def test_who_opens_an_agent_after_a_loss_waits_until_its_state_is_safe(pair: Pair, pair_address: str) -> None:
    """Or it would answer from a commit that is gone when the standby takes over."""
    from tests.support.postgres import rows_of

    home, rows = Home(pair_address), rows_of(pair_address)
    memory = home.open("x", embedder=None)
    memory.archive("one")
    with cancelled(pair):
        with pytest.raises(UnavailableError, match="has not confirmed"):
            rows.last_commit(memory._store._log._claim)  # type: ignore[union-attr]
        with pytest.raises(AgentLostError):
            memory.archive("two")
        memory.close()
        with pytest.raises(UnavailableError, match="has not confirmed"):
            home.open("x", embedder=None)


# A standby that lacks the last commits


def test_nothing_is_put_on_top_of_a_gap(pair: Pair, pair_address: str) -> None:
    """It takes over after Postgres was told not to wait for it."""
    home = Home(pair_address)
    memory = home.open("x", embedder=None)
    memory.archive("one")
    pair.kill_standby()
    pair.run("ALTER SYSTEM SET synchronous_standby_names = ''")
    pair.run("SELECT pg_reload_conf()")
    memory.archive("two")
    memory.archive("three")
    pair.kill()
    pair.start_standby()
    pair.fail_over()
    with pytest.raises(
        AgentLostError, match=r"acknowledged (\d+) commits and has \d+: a standby took over that lacked"
    ):
        memory.archive("four")
    memory.close()
    with reopened(home, pair_address, "x") as memory:
        assert facts(memory) == ["one"]
        memory.archive("five")
        assert memory.check() == []


def test_an_agent_that_the_standby_never_had_is_gone_and_that_is_said(pair: Pair, pair_address: str) -> None:
    home = Home(pair_address)
    pair.kill_standby()
    pair.run("ALTER SYSTEM SET synchronous_standby_names = ''")
    pair.run("SELECT pg_reload_conf()")
    memory = home.open("x", embedder=None)
    memory.archive("one")
    pair.kill()
    pair.start_standby()
    pair.fail_over()
    with pytest.raises(AgentLostError, match="it is not there any more: it was removed, or Postgres has lost it"):
        memory.archive("two")
    memory.close()
    assert home.names() == []


# Addresses of several hosts


def test_the_primary_is_found_whatever_comes_first(pair: Pair, pair_address: str) -> None:
    assert pair.standby
    name = database(pair_address)
    for hosts in ((pair.primary, pair.standby), (pair.standby, pair.primary)):
        address = f"postgresql://postgres@/{name}?host={','.join(str(host.sockets) for host in hosts)}"
        with Home(address).open("x", embedder=None) as memory:
            memory.archive("one")


def test_commands_take_an_address_of_several_hosts(pair: Pair, pair_address: str) -> None:
    from tests.support.cli import command_line

    assert pair.standby
    hosts = f"{pair.standby.sockets},{pair.primary.sockets}"
    address = f"postgresql://postgres@/{database(pair_address)}?host={hosts}"
    with Home(address).open("x", embedder=None) as memory:
        memory.record("user", "hello")
    assert "x" in command_line("list", "--home", address).out
    assert command_line("check", "x", "--home", address).code == 0


def test_a_standby_alone_is_refused_unless_it_is_asked_for(pair: Pair, pair_address: str) -> None:
    from pager.log.postgres import Server

    with Home(pair_address).open("x", embedder=None) as memory:
        memory.archive("one")
    pair.apply_everything()
    assert pair.standby
    address = f"postgresql://postgres@/{database(pair_address)}?host={pair.standby.sockets}"
    with pytest.raises(UnavailableError, match=r"it takes no writes .* Promote it"):
        Home(address)
    reader = f"{address}&target_session_attrs=any"
    with Home(reader).read("x", embedder=None) as memory:
        assert [use.fact.text for use in memory.inspect.facts("current").rows] == ["one"]
    with pytest.raises(StorageError, match=r"it takes no writes .* Promote it"):
        Home(reader).open("x", embedder=None)
    Server.at(reader).close()


def test_a_host_that_is_gone_is_not_tried_first_again(pair: Pair, pair_address: str) -> None:
    """To wait for it would cost each new connection a time-out."""
    from pager.log.postgres import Server
    from tests.support.proxy import Proxy

    Home(pair_address)  # makes the tables
    gone = Proxy(pair.socket)
    gone.lose_everything()
    there = Proxy(pair.socket)
    hosts = f"127.0.0.1:{gone.port},127.0.0.1:{there.port}"
    options = "sslmode=disable&gssencmode=disable&connect_timeout=2"
    server = Server.at(f"postgresql://postgres@{hosts}/{database(pair_address)}?{options}")
    for _ in range(3):
        server._pool.drop_idle()
        assert server.ask("SELECT 1") == [(1,)]
    assert (gone.attempts, there.attempts) == (1, 4)
    server.close()
    gone.close()
    there.close()
