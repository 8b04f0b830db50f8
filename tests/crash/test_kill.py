"""SIGKILL at every commit and at random moments: nothing acknowledged is lost, nothing is half done (law 8)."""

from __future__ import annotations

import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.crash.children import Nursery
from tests.crash.load import SECRET, open_memory
from tests.crash.witness import Witness, judge_after_death

LIVES, CHAINS = 10, 20  # 200 kills, on twenty memories
LONGEST_LIFE_S = 0.12
COMMAND_ID = re.compile(r"(\d{20})-\d+-(\d{6})")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


def rows(directory: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything in the database, as the next process will find it. Empty where there is no table yet."""
    with closing(sqlite3.connect(directory / "pager.db")) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: [tuple(map(_without_pid, row)) for row in db.execute(f"SELECT * FROM {name}")] for name in names}


def _without_pid(value: object) -> object:
    return COMMAND_ID.sub(r"\1-pid-\2", value) if isinstance(value, str) else value


def commits(nursery: Nursery, script: str, directory: Path) -> int:
    life = nursery.run(f"tests.crash.load:{script}", directory, 0, "before")
    assert life.signal == 0
    assert life.said[-1][0] == "done"
    return life.said[-1][1]


def test_killed_before_and_after_every_commit(nursery: Nursery, tmp_path: Path) -> None:
    count = commits(nursery, "scripted", tmp_path / "whole")
    assert count > 80
    committed: dict[str, list[tuple[object, ...]]] = {}
    for number in range(1, count + 1):
        for when in ("before", "after"):
            directory = tmp_path / f"{number}-{when}"
            life = nursery.run("tests.crash.load:scripted", directory, number, when)
            assert life.signal == signal.SIGKILL
            found = rows(directory)
            if when == "before":
                assert found == committed, f"commit {number} had begun to show before it was made"
            committed = found
            witness = Witness()
            witness.hear(life.said)
            judge_after_death(directory, witness, life=3)


def test_killed_at_any_moment(nursery: Nursery, tmp_path: Path) -> None:
    random = Random(2)
    heard = 0
    for chain in range(CHAINS):
        directory, witness = tmp_path / str(chain), Witness()
        for life in range(LIVES):
            number = chain * LIVES + life + 1
            delay = random.uniform(0, LONGEST_LIFE_S)
            ended = nursery.run("tests.crash.load:live", directory, number, kill_after_s=delay)
            assert ended.signal == signal.SIGKILL
            witness.hear(ended.said)
            heard += len(ended.said)
            with open_memory(directory, life=number) as memory:
                witness.judge(memory)
        judge_after_death(directory, witness, life=(chain + 1) * LIVES + 1)
    assert heard > CHAINS * LIVES * 5, "they died before they did anything"


def test_a_purge_that_was_begun_is_finished(nursery: Nursery, tmp_path: Path) -> None:
    count = commits(nursery, "purging", tmp_path / "whole")
    for number in range(1, count + 1):
        for when in ("before", "after"):
            directory = tmp_path / f"{number}-{when}"
            life = nursery.run("tests.crash.load:purging", directory, number, when)
            assert life.signal == signal.SIGKILL
            witness = Witness()
            witness.hear(life.said)
            with open_memory(directory, life=2, embedder=None) as memory:
                purged = [fact for fact in memory.inspect.newest_facts() if fact.purged]
                assert memory.check() == []
            if ["purged"] in life.said:
                assert purged
            if purged:
                assert [
                    path for path in directory.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
                ] == []
