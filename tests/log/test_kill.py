"""kill -9 of a worker at its commits: nothing acknowledged is lost, nothing is half done, and the next one goes on."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import pytest

from pager import Home, InUseError, Memory
from tests.crash.children import Life, run
from tests.crash.witness import Witness, judge_after_death

FEW = 37  # every so many commits in a short run


@pytest.mark.parametrize("step", [FEW, pytest.param(1, marks=pytest.mark.long)], ids=["a few", "every commit"])
def test_killed_at_commits(address: str, tmp_path: Path, step: int) -> None:
    from tests.log.jobs import NEVER, killed_at_commit
    from tests.support.postgres import end_leases, logged

    whole = run(killed_at_commit, address, tmp_path / "whole", NEVER, "unsent")
    assert whole.said[-1][0] == "commits"
    commits = whole.said[-1][1]
    assert commits > 60
    for number in range(1, commits + 1, step):
        directory = tmp_path / str(number)
        life = run(killed_at_commit, address, directory, number, "unsent" if number % 2 else "stored")
        assert life.signal == signal.SIGKILL
        witness = Witness()
        witness.hear(life.said)
        end_leases(address)
        with logged(address):
            judge_after_death(directory, witness, life=3)


def opened_in_the_end(home: Home) -> Memory:
    for _ in range(120):  # each waits for half a second
        with suppress(InUseError):
            return home.open("x", embedder=None)
    raise AssertionError("a lease does not end")


def test_another_goes_on_when_the_lease_has_ended(home: Home, quick_address: str) -> None:
    from tests.log.jobs import hold

    life = Life(hold, quick_address, "x")
    life.until("fact")
    life.kill()
    with opened_in_the_end(home) as memory:
        assert [use.fact.text for use in memory.inspect.facts("current").rows] == ["of the first"]
        memory.archive("of the second")
        assert memory.check() == []
