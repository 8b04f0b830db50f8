"""A large generation of the index is written by a child process: whatever ends it, or its parent, costs nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pager.vectors.chroma import build as chroma_build
from pager.vectors.chroma.child_process import command
from pager.vectors.chroma.index import ChromaIndex
from pager.vectors.index import IndexUnavailableError, Stopped
from tests.contract.vector_sources import MemorySource, unit_vectors
from tests.crash.index_life import assert_complete

Child = subprocess.Popen[bytes]


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Child]]:
    started: list[Child] = []
    popen: Any = subprocess.Popen

    def start(*args: Any, **how: Any) -> Child:
        started.append(popen(*args, **how))
        assert os.getsid(started[-1].pid) == started[-1].pid, "a Ctrl-C at the terminal would end it"
        return started[-1]

    monkeypatch.setattr(chroma_build.subprocess, "Popen", start)
    yield started
    assert all(child.returncode is not None for child in started)


def index_of(root: Path, source: MemorySource, few: int = 10) -> ChromaIndex:
    return ChromaIndex(root, source, few=few, retry_after_s=0)


def test_it_writes_what_this_process_would_have_written(tmp_path: Path, children: list[Child]) -> None:
    source = MemorySource.of(40)
    index = index_of(tmp_path, source)
    assert index.open().outcome == "rebuilt"
    assert (len(children), children[0].returncode) == (1, 0)
    assert_complete(index, source)
    source.grow(30)
    index.extend(10)
    index.compact()
    assert (len(children), index.through(), index.pending_replay()) == (2, 70, 0)
    assert_complete(index, source)
    index.close()
    few = index_of(tmp_path / "few", MemorySource.of(10))
    few.open()
    assert len(children) == 2
    few.close()


def test_more_than_one_batch_of_ids_with_gaps_arrives_whole(
    tmp_path: Path, children: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chroma_build, "BATCH", 16)
    source = MemorySource()
    source.vectors = {3 * number + 2**33: row for number, row in enumerate(unit_vectors(100))}
    index = index_of(tmp_path, source)
    index.open()
    assert len(children) == 1
    assert_complete(index, source)
    index.close()


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_child_that_is_killed_leaves_nothing(
    tmp_path: Path, children: list[Child], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    source = MemorySource.of(100)
    index, sent = index_of(tmp_path, source), chroma_build._send
    count = 0

    def send(*args: Any) -> None:
        nonlocal count
        if count == after:
            children[-1].send_signal(signal.SIGKILL)
            children[-1].wait()
        count += 1
        sent(*args)

    with monkeypatch.context() as patched:
        patched.setattr(chroma_build, "BATCH", 40)
        patched.setattr(chroma_build, "_send", send)
        with pytest.raises(IndexUnavailableError, match="ended a child process with -9"):
            index.open()
    assert [entry.name for entry in tmp_path.iterdir()] == []
    index.open()
    assert_complete(index, source)
    index.close()


def test_what_the_child_says_of_its_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = [sys.executable, "-c", "import sys; sys.exit('no such luck')"]
    monkeypatch.setattr(chroma_build, "command", lambda *_: dying)
    with pytest.raises(IndexUnavailableError, match="ended a child process with 1: no such luck"):
        index_of(tmp_path, MemorySource.of(100)).open()


def test_whoever_stops_it_does_not_wait_for_it(
    tmp_path: Path, children: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chroma_build, "BATCH", 16)
    source = MemorySource.of(100)
    index = index_of(tmp_path, source)
    for asked in (1, 4, 8):  # before the child is fed, meanwhile, and while it ends
        left = iter(range(asked))
        with pytest.raises(Stopped):
            index.open(lambda left=left: next(left, None) is None)
        assert [entry.name for entry in tmp_path.iterdir()] == []
    index.open()
    assert_complete(index, source)
    index.close()


def test_a_child_without_a_parent_ends(tmp_path: Path) -> None:
    rows = unit_vectors(3)
    begun = np.asarray([3, 1, 2, 3], dtype="int64").tobytes() + rows.astype("float32").tobytes()
    for sent in (b"", begun[:20], begun[:-1], begun):
        # From another directory, without an environment: it runs wherever this package was imported from.
        done = subprocess.run(
            command("pager.vectors.chroma.build", tmp_path / str(len(sent)), 16),
            input=sent,
            capture_output=True,
            check=False,
            cwd="/",
            env={},
        )
        assert (done.returncode, done.stderr.strip()) == (1, b"its parent is gone")
