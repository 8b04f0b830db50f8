"""Agents that want to be visited: when, by whom, and also when a worker has died."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pager import Home
from tests.log.test_restore import rows_of
from tests.support.clock import HandClock

TOMORROW = timedelta(days=1)
DIES = """UPDATE selfpager.agents SET owner = '{"worker": "dead"}',
          lease_until = clock_timestamp() - interval '1 second' WHERE name = %s"""


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


def test_helpers_whose_owner_has_died_hold_nobody_up(home: Home, address: str) -> None:
    make(home, "x")
    server = rows_of(address).server
    for number in range(3):
        server.ask("INSERT INTO selfpager.agents (name, seq) VALUES (%s, 1)", (f"x/call_{number}",))
        server.ask(DIES, (f"x/call_{number}",))
    home.set_due("x", datetime.now(UTC))
    assert home.take_due(limit=2) == ["x"]


def test_what_another_owner_has_stored_is_not_taken_for_what_this_one_had_stored(home: Home, address: str) -> None:
    other, due = Home(f"{address}&application_name=other"), datetime.now(UTC) - TOMORROW
    make(home, "x")
    home.end_work("x", due, takes_messages=False, visited=False)
    other.set_due("x", None)
    with home.open("x", embedder=None):
        pass
    home.end_work("x", due, takes_messages=False, visited=False)
    assert home.take_due() == ["x"]
