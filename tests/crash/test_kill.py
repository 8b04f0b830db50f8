"""SIGKILL at every kind of commit and at random moments: nothing acknowledged is lost, nothing is half done (law 8)."""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.crash.children import Life, run
from tests.crash.commit_points import EVERY, Commit, digest, one_of_each
from tests.crash.load import SECRET, live, open_memory, purging, scripted, withdrawing
from tests.crash.witness import Witness, judge_after_death

LIVES, CHAINS = 10, 20  # 200 kills, on twenty memories
MOST_LINES, LONGEST_DELAY_S = 60, 0.004  # a life acknowledges so many calls, and dies somewhere in the next

Script = Callable[[Path, int, str], None]


def commits(script: Script, directory: Path) -> list[Commit]:
    life = run(script, directory, 0, "before")
    assert (life.signal, life.said[-1][0]) == (0, "done")
    return life.said[-1][1]


def deaths(script: Script, tmp_path: Path, numbers: Iterable[int]) -> Iterator[tuple[int, str, Path, list[list[Any]]]]:
    """Kill a life before and after each of these commits: number, when, its directory, what it had acknowledged."""
    for number, when in product(numbers, ("before", "after")):
        directory = tmp_path / f"{number}-{when}"
        life = run(script, directory, number, when)
        assert life.signal == signal.SIGKILL
        yield number, when, directory, life.said


@EVERY
def test_killed_before_and_after_commits(tmp_path: Path, every: bool) -> None:
    whole = commits(scripted, tmp_path / "whole")
    found = [commit.before for commit in whole] + [digest(tmp_path / "whole")]
    numbers = one_of_each([commit.kind for commit in whole], every=every)
    assert len(whole) > 80
    assert len(list(numbers)) > 25, "the life has lost some kinds of transactions"
    for number, when, directory, said in deaths(scripted, tmp_path, numbers):
        assert digest(directory) == found[number - (when == "before")], f"{when} commit {number}, {whole[number - 1]}"
        witness = Witness()
        witness.hear(said)
        judge_after_death(directory, witness, life=3)


@EVERY
def test_a_purge_that_was_begun_is_finished(tmp_path: Path, every: bool) -> None:
    whole = commits(purging, tmp_path / "whole")
    numbers = one_of_each([commit.kind for commit in whole], every=every)
    for _, _, directory, said in deaths(purging, tmp_path, numbers):
        with open_memory(directory, life=2, embedder=None) as memory:
            purged = [fact for fact in memory.inspect.newest_facts() if fact.purged]
            assert memory.check() == []
        assert purged or ["purged"] not in said
        files = [path for path in directory.rglob("*") if path.is_file()]
        assert not purged or not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_a_turn_is_withdrawn_whole_or_not_at_all(tmp_path: Path) -> None:
    whole = commits(withdrawing, tmp_path / "whole")
    assert len(whole) == 1
    for _, when, directory, said in deaths(withdrawing, tmp_path, [1]):
        with open_memory(directory, life=2, embedder=None) as memory:
            assert memory.check() == []
            withdrawn = memory.ledger(events=["withdraw"])
            current = [use.fact.text for use in memory.inspect.facts("current").rows]
            core = "".join(block.value for block in memory.core())
            assert (when == "after") == bool(withdrawn) == (not memory.turn_is_open) == (not core)
            assert ("aisle" in current) != bool(withdrawn)
            assert ["withdrawn"] not in said


@pytest.mark.long
def test_killed_at_any_moment(tmp_path: Path) -> None:
    random = Random(2)
    for chain in range(CHAINS):
        directory, witness = tmp_path / str(chain), Witness()
        for life in range(LIVES):
            number = chain * LIVES + life + 1
            child = Life(live, directory, number)
            for _ in range(random.randrange(MOST_LINES)):
                child.next()
            time.sleep(random.uniform(0, LONGEST_DELAY_S))
            child.kill()
            assert child.signal == signal.SIGKILL
            witness.hear(child.said)
            with open_memory(directory, life=number) as memory:
                witness.judge(memory)
        judge_after_death(directory, witness, life=(chain + 1) * LIVES + 1)
