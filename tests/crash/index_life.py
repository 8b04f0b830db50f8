"""The life of an index in a process that ends by kill -9 where the test wants it, and what the next one finds."""

import json
import resource
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from chromadb import Collection

from pager.clock import SystemClock
from pager.store import Store
from pager.vectors.chroma import build, places
from pager.vectors.chroma.collection import Connection, LocalCollection
from tests.crash.children import die, heard, say
from tests.support.indexed import FACTS, Children, is_asked, lost, names_in, open_memory, text

# What moves the files. Dying before each of these is dying between any two of them.
STEPS: list[tuple[Any, str]] = [
    (Connection, "__init__"),
    (Connection, "close"),
    (Collection, "add"),
    (Collection, "modify"),
    (LocalCollection, "__init__"),
    (LocalCollection, "close"),
    (places, "_digest"),
    (places, "_remove"),
    (Path, "mkdir"),
    (Path, "write_text"),
    (Path, "replace"),
    (shutil, "rmtree"),
]


def build_here(order: str, stop: Callable[[], bool]) -> tuple[int, float]:
    """What the child does, in this process: whatever ends the child leaves the same files."""
    given = json.loads(order)
    with closing(Store(Path(given["database"]), SystemClock(), read_only=True)) as store:
        return build.build(store, given)


def live_until(directory: Path, deadly_step: int) -> None:
    """Build and publish a generation with one fact more, and die at that step, if it comes."""
    places.build_in_child, build.AT_ONCE = build_here, 200
    with open_memory(directory) as memory:
        memory.archive(text(FACTS + 1))
        die_at(deadly_step)
        memory.compact()


def die_at(deadly_step: int) -> None:
    steps = 0

    def deadly(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **keywords: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == deadly_step:
                die()
            return original(*args, **keywords)

        return wrapper

    for owner, name in STEPS:
        setattr(owner, name, deadly(getattr(owner, name)))


def take_over(directory: Path) -> None:
    """Find everything in what a dead process left, and mend it. Say which generation there was, and what is left."""
    places.build_in_child = build_here
    with open_memory(directory) as memory:
        found = memory._tiers.index.newest()
        assert lost(memory, range(1, FACTS + 2, 7)) == []
        memory.archive("one more")
        memory.compact()
        assert is_asked(memory)
        assert lost(memory, range(1, FACTS + 2, 7)) == []
        assert memory.check() == []
    say(found and found.name, names_in(directory / "chroma"))


def build_with_a_frozen_child(directory: Path) -> None:
    """Say which process builds, and wait for the end."""
    import pytest

    children = Children(pytest.MonkeyPatch(), is_frozen=True)
    with open_memory(directory) as memory:
        memory.archive(text(FACTS + 1))

        def stop() -> bool:
            if children.all:
                say(children.all[0].pid)
                heard()
            return False

        memory.embed_pending(stop=stop)
        memory._backlog.update_index(stop, whole=True)


def build_on_a_full_disk(directory: Path) -> None:
    """Build with more and more room for each file. Say how often it failed."""
    with open_memory(directory) as memory:
        indexing, failures = memory._backlog._indexing, 0
        assert indexing is not None
        for room in (0, 200_000, resource.RLIM_INFINITY):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            memory.compact()
            assert lost(memory) == []
            failures += not is_asked(memory)
            assert is_asked(memory) or names_in(directory / "chroma") <= {"state.new"}
            indexing._retry_at = 0.0
        say(failures, names_in(directory / "chroma"))
