"""A large generation of the index is written by a child process: whatever ends it, or its parent, costs nothing."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pager.vectors.chroma import build as chroma_build
from pager.vectors.chroma.index import ChromaIndex
from pager.vectors.index import BuildCancelledError, IndexUnavailableError
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
    monkeypatch.setattr(chroma_build, "FEW", 10)
    yield started
    assert all(child.returncode is not None for child in started)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_child_that_is_killed_leaves_nothing(
    tmp_path: Path, children: list[Child], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    index, dump, count = ChromaIndex(tmp_path, source := MemorySource.of(40)), pickle.dump, 0

    def send(*args: Any) -> None:
        nonlocal count
        if count == after:
            children[-1].send_signal(signal.SIGKILL)
            children[-1].wait()
        count += 1
        dump(*args)

    with monkeypatch.context() as patched:
        patched.setattr(chroma_build.pickle, "dump", send)
        with pytest.raises(IndexUnavailableError, match="ended a child process with -9"):
            index.open()
    assert list(tmp_path.iterdir()) == []
    live = index.open()
    assert_complete(live, source)
    live.close()


def test_what_the_child_says_of_its_end_is_told(
    tmp_path: Path, children: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = [sys.executable, "-c", "import sys; sys.exit('no such luck')"]
    monkeypatch.setattr(chroma_build, "command", lambda *_: dying)
    with pytest.raises(IndexUnavailableError, match="ended a child process with 1: no such luck"):
        ChromaIndex(tmp_path, MemorySource.of(100)).open()
    assert len(children) == 1


def test_whoever_stops_it_does_not_wait_for_it(tmp_path: Path, children: list[Child]) -> None:
    index = ChromaIndex(tmp_path, MemorySource.of(100))
    for asked in (1, 4, 9):  # before the child is fed, meanwhile, and while it ends
        left = iter(range(asked))
        with pytest.raises(BuildCancelledError):
            index.open(lambda left=left: next(left, None) is None)
        assert list(tmp_path.iterdir()) == []
    assert len(children) == 3


def test_a_child_without_a_parent_ends(tmp_path: Path) -> None:
    begun = pickle.dumps(([1, 2, 3], unit_vectors(3)))
    for sent in (b"", begun[:20], begun[:-1], begun):
        # From another directory, without an environment: it runs wherever this package was imported from.
        done = subprocess.run(
            chroma_build.command(tmp_path / str(len(sent))),
            input=sent,
            capture_output=True,
            check=False,
            cwd="/",
            env={},
        )
        assert (done.returncode, done.stderr.strip()) == (1, b"its parent is gone")
