"""Ctrl-C anywhere in the log: what was acknowledged can be restored, also before the next fold, and after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any

import pytest

from pager import Home
from pager.log import log as log_module
from pager.log.log import Log
from tests.log.test_outages import facts
from tests.log.test_restore import file_of, finish_folding, fold, log_of, restore


class Interrupt:
    """Raises KeyboardInterrupt before the line of that number that this thread runs in the log."""

    def __init__(self, line: int) -> None:
        self._left = line

    @property
    def has_come(self) -> bool:
        return self._left == 0

    def __enter__(self) -> None:
        sys.settrace(self._call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, _event: str, _: Any) -> Any:
        return self._line if frame.f_code.co_filename == log_module.__file__ else None

    def _line(self, _frame: FrameType, event: str, _: Any) -> Any:
        self._left -= event == "line"
        if self.has_come:
            sys.settrace(None)
            raise KeyboardInterrupt
        return self._line


def test_an_interrupt_before_any_line_of_a_commit_and_of_what_follows_it(
    home: Home, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "LOG_PAGES", 1)  # each commit is followed by a checkpoint and a fold
    monkeypatch.setattr(log_module, "FOLD_BYTES", 1)
    for line in count(1):
        with home.open(f"x{line}", embedder=None) as memory:
            memory.archive("before")
            finish_folding(memory)
            interrupt = Interrupt(line)
            with suppress(KeyboardInterrupt), interrupt:
                memory.archive("interrupted")
            for word in ("one", "two"):
                memory.archive(word * 2000)  # of pages that were not in the log before
                assert len(restore(address, tmp_path / "copy", f"x{line}")) > 0
            finish_folding(memory)
            assert restore(address, tmp_path / "copy", f"x{line}") == file_of(memory)
            assert [text[:6] for text in facts(memory)] == ["before", "interrupted"[:6], "oneone", "twotwo"]
        if not interrupt.has_come:
            assert line > 80
            return


def test_an_agent_whose_fold_could_not_be_started_is_closed_and_folded_later(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with home.open("x", embedder=None) as memory:
        log_of(memory)._restored.log_bytes = 1 << 30
        with monkeypatch.context() as exhausted:
            exhausted.setattr(Thread, "start", refuse)
            with pytest.raises(RuntimeError):
                memory.archive("one")
    with home.open("x", embedder=None) as memory:
        assert facts(memory) == ["one"]
        fold(memory)
        assert memory.check() == []


def test_an_interrupt_while_it_is_closed_lets_no_fold_read_what_is_newer(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, settle, chunks, waits = Event(), Log.settle, Log._chunks, list[int]()

    def stand_still(*args: Any) -> Iterator[tuple[int, bytes]]:
        goes_on.wait()
        return chunks(*args)

    def interrupted(log: Log) -> None:
        waits.append(1)
        if len(waits) == 1:
            raise KeyboardInterrupt
        goes_on.set()
        settle(log)

    memory = home.open("x", embedder=None)
    memory.archive("one")
    finish_folding(memory)
    monkeypatch.setattr(Log, "_chunks", stand_still)
    log_of(memory)._restored.log_bytes = 1 << 30
    memory.archive("two")
    for word in ("three", "four", "five"):
        memory.archive(word)
    monkeypatch.setattr(Log, "settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.close()
    monkeypatch.undo()
    with home.open("x", embedder=None) as memory:
        assert facts(memory) == ["one", "two", "three", "four", "five"]
        assert memory.check() == []
        fold(memory)
