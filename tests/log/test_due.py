"""Agents that want to be visited: when, by whom, and also when a worker has died."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pager import Home
from pager.log.leases import Leases
from pager.store.schema import VERSION
from tests.log.test_restore import rows_of
from tests.support.clock import HandClock

TOMORROW = timedelta(days=1)
DEAD = "'{\"worker\": \"dead\"}', clock_timestamp() - interval '1 minute'"
DIES = f"UPDATE selfpager.agents SET (owner, lease_until) = ({DEAD}) WHERE name = %s"


def make(home: Home, name: str) -> None:
    with home.open(name, embedder=None) as memory:
        memory.archive("something")


@pytest.mark.parametrize("days", [-2, 0, 2])
def test_a_clock_that_is_wrong_says_how_long_it_is_until_then_all_the_same(address: str, days: int) -> None:
    clock = HandClock()
    clock.set(datetime.now(UTC) + timedelta(days=days))
    home = Home(address, clock=clock)
    make(home, "x")
    home.set_due("x", clock.now() + TOMORROW)
    assert home.take_due() == []
    home.set_due("x", clock.now())
    assert home.take_due() == ["x"]
    home.end_work("x", clock.now() + TOMORROW, takes_messages=True, visited=True)
    assert home.take_due() == []
    home.send("x", "message", {"text": "hello"})
    assert home.take_due() == ["x"]
    home.end_work("x", clock.now() - TOMORROW, takes_messages=True, visited=True)
    assert home.take_due() == ["x"]


def test_one_whose_owner_has_died_is_taken_once_though_it_is_due_later(home: Home, address: str) -> None:
    make(home, "x")
    home.set_due("x", datetime.now(UTC) + TOMORROW)
    rows_of(address).server.ask(DIES, ("x",))
    assert (home.take_due(), home.take_due()) == (["x"], [])


def test_what_another_owner_has_stored_is_not_taken_for_what_this_one_had_stored(home: Home, address: str) -> None:
    other, due = Home(f"{address}&application_name=other"), datetime.now(UTC) - TOMORROW
    make(home, "x")
    home.end_work("x", due, takes_messages=False, visited=False)
    other.set_due("x", None)
    with home.open("x", embedder=None):
        pass
    home.end_work("x", due, takes_messages=False, visited=False)
    assert home.take_due() == ["x"]


def test_what_nobody_can_be_sent_to_keeps_nobody_from_the_rest(home: Home, address: str) -> None:
    """Helpers that a dead worker has left stay claimed, and a newer format is for newer workers."""
    home.names()
    ask = rows_of(address).server.ask
    ask(
        f"""INSERT INTO selfpager.agents (name, seq, format, owner, lease_until)
            SELECT 'x/' || n, 1, 0, {DEAD} FROM generate_series(1, 200) n UNION ALL
            SELECT 'new' || n, 1, {VERSION + 1}, {DEAD} FROM generate_series(1, 200) n UNION ALL
            SELECT 'x', 1, {VERSION}, {DEAD}"""
    )
    assert home.take_due() == ["x"]
    assert home.take_due() == []  # for as long as a lease lasts


def test_who_takes_over_begins_with_what_was_at_work(home: Home, address: str) -> None:
    home.names()
    ask = rows_of(address).server.ask
    ask(
        f"""INSERT INTO selfpager.agents (name, seq, owner, lease_until, at_work, due)
            SELECT 'open' || n, 1, {DEAD}, false, NULL::timestamptz FROM generate_series(1, 200) n UNION ALL
            SELECT 'visited', 1, {DEAD}, false, clock_timestamp() - interval '10 s' UNION ALL
            SELECT 'working', 1, {DEAD}, true, NULL"""
    )
    assert [sorted(home.take_due(limit)) for limit in (1, 1)] == [["working"], ["visited"]]
    assert len(home.take_due(300)) == 200


def test_a_renewal_says_who_is_at_work(home: Home, address: str) -> None:
    rows = rows_of(address)
    with home.open("idle", embedder=None), home.open("busy", embedder=None) as memory:
        leases = Leases.of(rows)

        def at_work() -> list[str]:
            leases.renew(dict(leases._held))
            return [row[0] for row in rows.server.ask("SELECT name FROM selfpager.agents WHERE at_work ORDER BY 1")]

        assert at_work() == []
        home.begin_work("busy")
        assert at_work() == ["busy"]
        home.end_work("busy", None, takes_messages=False, visited=False)
        assert at_work() == []
        home.begin_work("busy")
        assert at_work() == ["busy"]
        memory.archive("it is closed at work")
    assert rows.server.ask("SELECT name FROM selfpager.agents WHERE at_work") == []
    assert rows.server.at_work == set()


def test_it_is_found_without_reading_all_agents(home: Home, address: str) -> None:
    home.names()
    ask = rows_of(address).server.ask
    ask("INSERT INTO selfpager.agents (name, seq) SELECT 'a' || n, 1 FROM generate_series(1, 20000) n")
    ask("UPDATE selfpager.agents SET due = clock_timestamp() WHERE name IN ('a7', 'a9')")
    ask("VACUUM ANALYZE selfpager.agents")
    before = read(address)
    assert sorted(home.take_due()) == ["a7", "a9"]
    assert read(address) == before


def read(address: str) -> int:
    """How often the table was read from its beginning to its end."""
    server = rows_of(address).server
    with server.transaction() as transaction:
        transaction.rows("SELECT pg_stat_force_next_flush()")
    return server.ask("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'agents'")[0][0]
