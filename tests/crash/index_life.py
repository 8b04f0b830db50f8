"""The life of an index in a process of its own, which ends by kill -9 where the test wants it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pager.vectors.chroma import probe as chroma_probe
from pager.vectors.chroma.client import Collection
from pager.vectors.chroma.files import IndexDirectory
from pager.vectors.chroma.index import ChromaIndex
from pager.vectors.index import IndexUnavailableError, OpenReport
from tests.contract.vector_sources import MemorySource, unit_vectors
from tests.crash.children import die, say

# What moves the files. Dying before and after each of these is dying between any two of them.
STEPS: list[tuple[type, str]] = [
    (Collection, "create"),
    (Collection, "upsert"),
    (Collection, "never_flush"),
    (Collection, "close"),
    (IndexDirectory, "commit"),
    (IndexDirectory, "clear"),
    (IndexDirectory, "sync"),
    (IndexDirectory, "sweep"),
]


def live_until(root: Path, deadly_step: int) -> None:
    """Builds, extends, compacts, extends, rebuilds and closes, and dies at that step, if it comes."""
    _die_at(deadly_step)
    everything, source = MemorySource.of(160), MemorySource()

    def commit(*ids: int) -> None:
        source.vectors |= {each: everything.vectors[each] for each in ids}

    commit(*range(1, 41))
    index = ChromaIndex(root, source, batch=30)
    index.open()
    commit(*range(41, 60), *range(61, 101))
    index.extend()
    commit(60)
    index.upsert([60], np.stack([source.vectors[60]]))
    index.compact()
    commit(*range(101, 161))
    index.extend()
    index.close()
    index.open()
    index.clear()
    index.open()
    index.close()


def live_on(root: Path) -> None:
    """Extends and compacts for ever; tells before every act how many vectors its source has."""
    everything, source = MemorySource.of(5_000).vectors, MemorySource()
    index = ChromaIndex(root, source, batch=5)
    index.open()
    for count in range(20, 5_000, 20):
        source.vectors = {each: everything[each] for each in range(1, count + 1)}
        say(count)
        index.extend()
        if count % 100 == 0:
            say(count)
            index.compact()


def take_over(root: Path, count: int) -> None:
    """Opens what a dead process left and brings it up to date; answers what the opening had to do."""
    chroma_probe.probe = forked_probe
    everything, source = MemorySource.of(max(count, 160)).vectors, MemorySource()
    source.vectors = {each: everything[each] for each in range(1, count + 1)}
    say(bring_up(root, source))


def bring_up(root: Path, source: MemorySource) -> OpenReport:
    index = ChromaIndex(root, source)
    report = index.open()
    index.extend()
    assert index.through() == source.last_id()
    assert_complete(index, source)
    index.close()
    return report


def assert_complete(index: ChromaIndex, source: MemorySource) -> None:
    """Every vector of the source and no other, each with its true similarity."""
    vector = unit_vectors(1, source.dimension, seed=99)[0]
    found = dict(index.query(vector, len(source.vectors) + 100))
    wanted = dict(source.nearest(vector, len(source.vectors)))
    assert found.keys() == wanted.keys()
    assert all(abs(found[each] - wanted[each]) < 1e-5 for each in wanted)


def _die_at(deadly_step: int) -> None:
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == deadly_step:
            die()

    def deadly(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **keywords: Any) -> Any:
            step()
            result = original(*args, **keywords)
            step()
            return result

        return wrapper

    for owner, name in STEPS:
        found = owner.__dict__[name]
        if isinstance(found, classmethod):
            setattr(owner, name, classmethod(deadly(found.__func__)))
        else:
            setattr(owner, name, deadly(found))


def forked_probe(directory: Path, dimension: int, *, timeout_s: float = 60) -> int:
    """The probe without the second that a new Python takes. (Nothing of Chroma runs here yet: forking is safe.)"""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            collection = Collection.open(directory)
            collection.query(unit_vectors(1, dimension)[0], max(1, collection.count()))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise IndexUnavailableError(f"reading it ended a child process with {status}")
    return 0
