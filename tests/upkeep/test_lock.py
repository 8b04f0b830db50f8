"""Who holds an agent now: asked without being in anybody's way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pager.clock import SystemClock
from pager.errors import InUseError
from pager.upkeep.lock import AgentLock, held_by


def test_who_holds_it_is_told_as_long_as_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert held_by(path) is None
    lock = AgentLock(path)
    lock.say(SystemClock())
    known = held_by(path)
    assert known
    assert known["pid"] == os.getpid()
    assert held_by(path) == known, "asking changes nothing"
    with pytest.raises(InUseError):
        AgentLock(path)
    lock.release()
    assert held_by(path) is None, "the process lives, and holds it no more"
    AgentLock(path).release()


def test_who_holds_it_for_an_instant_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    brief = AgentLock(path)
    waited: list[float] = []
    AgentLock(path, wait=lambda seconds: (waited.append(seconds), brief.release())).release()
    assert len(waited) == 1


def test_who_keeps_it_is_waited_for_less_than_a_second(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = AgentLock(path)
    waited: list[float] = []
    with pytest.raises(InUseError):
        AgentLock(path, wait=waited.append)
    assert 0.3 < sum(waited) < 1
    lock.release()


def test_whoever_waits_and_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = AgentLock(path)
    free = next_number(path)

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        AgentLock(path, wait=interrupted)
    assert next_number(path) == free
    lock.release()


def next_number(path: Path) -> int:
    """The number that the next file to be opened gets."""
    number = os.open(path, os.O_RDONLY)
    os.close(number)
    return number


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": null}', "{}", '{"pid": 0}', '{"pid": -1}'])
def test_a_file_that_says_nothing_holds_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lock"
    path.write_text(text)
    assert held_by(path) is None


def test_a_process_that_is_gone_is_not_even_asked_for(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    path = tmp_path / "lock"
    path.write_text(json.dumps({"pid": child}))
    assert held_by(path) is None
