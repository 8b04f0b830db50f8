"""The pool lends each connection to one at a time, never more than the limit, and none that has ended."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from pager.log.pool import BusyError, Pool


class Wire:
    """A connection to nowhere, whose other side a test may end."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self.closed = False

    def fileno(self) -> int:
        return self._ours.fileno()

    def close(self) -> None:
        self.closed = True
        self._ours.close()
        self.theirs.close()


@pytest.fixture
def wires() -> Iterator[list[Wire]]:
    made: list[Wire] = []
    yield made
    for wire in made:
        wire.close()


@pytest.fixture
def pool(wires: list[Wire]) -> Pool[Wire]:
    def connect() -> Wire:
        wires.append(Wire())
        return wires[-1]

    return Pool(connect, 3)


def test_the_newest_idle_one_is_lent_first(pool: Pool[Wire], wires: list[Wire]) -> None:
    with pool.lend(0) as first, pool.lend(0) as second:
        assert [first, second] == wires
    with pool.lend(0) as again:
        assert again is first  # it was given back last
    assert len(wires) == 2


def test_no_more_than_the_limit_are_lent(pool: Pool[Wire], wires: list[Wire]) -> None:
    for _ in range(2):
        with ExitStack() as lent:
            for _ in range(3):
                lent.enter_context(pool.lend(0))
            with pytest.raises(BusyError, match="all 3 connections to it have been in use for 0 seconds"):
                lent.enter_context(pool.lend(0))
    assert len(wires) == 3


def test_one_that_cannot_be_made_is_not_counted(wires: list[Wire]) -> None:
    def connect() -> Wire:
        raise OSError("refused")

    pool = Pool(connect, 1)
    for _ in range(3):
        with pytest.raises(OSError, match="refused"), pool.lend(0):
            pass


@pytest.mark.parametrize("end", ["close", "send"])
def test_one_that_has_ended_or_says_something_unasked_is_closed(pool: Pool[Wire], wires: list[Wire], end: str) -> None:
    with pool.lend(0), pool.lend(0):
        pass
    for wire in wires:
        wire.theirs.send(b"terminating") if end == "send" else wire.theirs.close()
    with pool.lend(0) as new:
        assert [wire.closed for wire in wires] == [True, True, False]
        assert new is wires[-1]


def test_what_the_block_closed_is_not_lent_again(pool: Pool[Wire], wires: list[Wire]) -> None:
    with pool.lend(0) as first:
        first.close()
    with pool.lend(0) as second:
        assert wires == [first, second]


def test_those_that_nobody_used_for_long_are_closed(
    pool: Pool[Wire], wires: list[Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pool.lend(0), pool.lend(0):
        pass
    monkeypatch.setattr("pager.log.pool.IDLE_SECONDS", -1.0)
    with pool.lend(0) as used:
        assert not used.closed
    assert [wire.closed for wire in wires] == [True, True]


def test_a_closed_pool_keeps_none(pool: Pool[Wire], wires: list[Wire]) -> None:
    with pool.lend(0), pool.lend(0):
        pass
    with pool.lend(0) as lent:
        pool.close()
        assert [wire.closed for wire in wires] == [lent is not wire for wire in wires]
    assert lent.closed
