"""One writing process per agent, and the name of its owner."""

import json
import os
import subprocess
from pathlib import Path

import psutil
import pytest

from pager.clock import SystemClock
from pager.errors import InUseError
from pager.upkeep.lock import AgentLock, current_owner


@pytest.mark.slow
def test_the_owner_is_named_as_long_as_it_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert current_owner(path) is None
    lock = AgentLock(path)
    lock.write_owner(SystemClock())
    owner = current_owner(path)
    assert owner
    assert owner["pid"] == os.getpid()
    assert current_owner(path) == owner, "the question changes nothing"
    with pytest.raises(InUseError):
        AgentLock(path)
    lock.release()
    assert current_owner(path) is None, "the process lives, but has released it"
    AgentLock(path).release()


def test_a_lock_that_is_held_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    brief = AgentLock(path)
    waited: list[float] = []
    AgentLock(path, wait=lambda seconds: (waited.append(seconds), brief.release())).release()
    assert len(waited) == 1


def test_a_lock_that_is_kept_is_waited_for_less_than_a_second(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = AgentLock(path)
    waited: list[float] = []
    with pytest.raises(InUseError):
        AgentLock(path, wait=waited.append)
    assert 0.3 < sum(waited) < 1
    lock.release()


def test_an_interrupt_while_waiting_leaves_no_open_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = AgentLock(path)
    before = times_open(path)

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        AgentLock(path, wait=interrupted)
    assert times_open(path) == before == 1
    lock.release()


def times_open(path: Path) -> int:
    """How often this process has the file open: of others it opens and closes some for earlier tests, too."""
    return [each.path for each in psutil.Process().open_files()].count(str(path.resolve()))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"pid": "x"}', '{"pid": null}', "{}", '{"pid": 0}', '{"pid": -1}', None]
)
def test_a_file_without_an_owner_that_lives_locks_nothing(tmp_path: Path, text: str | None) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    path = tmp_path / "lock"
    path.write_text(json.dumps({"pid": ended.pid}) if text is None else text)
    assert current_owner(path) is None
