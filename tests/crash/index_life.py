"""The life of an index in a process of its own, which ends by kill -9 where the test wants it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pager.vectors.chroma import build
from pager.vectors.chroma import index as chroma_index
from pager.vectors.chroma.client import Collection
from pager.vectors.chroma.index import ChromaIndex, LiveGeneration
from tests.contract.vector_sources import MemorySource, unit_vectors
from tests.crash.children import die, say

# What moves the files. Dying before each of these is dying between any two of them.
STEPS: list[tuple[Any, str]] = [
    (Collection, "__init__"),
    (Collection, "close"),
    (chroma_index, "write"),
    (Path, "rename"),
    (Path, "replace"),
    (chroma_index.shutil, "copyfile"),
    (chroma_index.shutil, "rmtree"),
]


def live_until(root: Path, count: int, deadly_step: int) -> None:
    """Opens an index of so many vectors, builds it with one more, clears it, and dies at that step, if it comes."""
    _die_at(deadly_step)
    source = MemorySource.of(count)
    index = ChromaIndex(root, source)
    first = index.open()
    source.grow(1)
    second = index.build()
    first.discard()
    second.close()
    index.clear()


def take_over(root: Path, count: int) -> None:
    """Opens what a dead process left and brings it up to date; answers what the opening had to do."""
    say(bring_up(root, MemorySource.of(count)))


def bring_up(root: Path, source: MemorySource) -> str:
    """Return why it had to be built; nothing if it was there."""
    index = ChromaIndex(root, source)
    live = index.open()
    reason = live.built_because
    if live.through < source.last_id():
        old, live = live, index.build()
        old.discard()
    assert_complete(live, source)
    live.close()
    return reason


def assert_complete(live: LiveGeneration, source: MemorySource) -> None:
    """Every vector of the source and no other, each with its true similarity, best first."""
    vector = unit_vectors(1, source.dimension, seed=99)[0]
    found = live.collection.query(vector, len(source.vectors) + 100)
    wanted = dict(source.nearest(vector, len(source.vectors)))
    assert dict(found).keys() == wanted.keys()
    assert all(abs(score - wanted[each]) < 1e-5 for each, score in found)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def _die_at(deadly_step: int) -> None:
    steps = 0

    def deadly(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **keywords: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == deadly_step:
                die()
            return original(*args, **keywords)

        return wrapper

    build.FEW = 1_000
    for owner, name in STEPS:
        setattr(owner, name, deadly(getattr(owner, name)))
