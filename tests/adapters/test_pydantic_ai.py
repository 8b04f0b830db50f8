"""The memory store of PydanticAI's harness over facts, which does what the harness's own store in memory does."""

import asyncio
import importlib
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from pager import Memory
from tests.support import HandClock, Words

harness: Any = pytest.importorskip("pydantic_ai_harness.memory")
PagerMemoryStore: Any = importlib.import_module("pager.adapters.pydantic_ai").PagerMemoryStore

PATHS = ["a/MEMORY.md", "a/notes.md", "a/deep/notes.md", "ab/notes.md", "b"]


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as opened:
        yield opened


async def outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except (harness.MemoryConflictError, harness.MemoryOperationConflictError, ValueError) as error:
        return type(error)


async def live(ours: Any, theirs: Any, chance: random.Random) -> None:
    versions: dict[str, list[Any]] = {path: [(None, None)] for path in PATHS}
    for number in range(100):
        path, text = chance.choice(PATHS), chance.choice(["", " \n", f"text {number}", f"text {number}"])
        operation = harness.MemoryOperation(f"o{chance.randrange(40)}", chance.choice("xy")) if number % 3 else None
        metadata = {"metadata": chance.choice([None, {}, {"by": "dána"}])}
        call, pair = chance.choice(["write", "write_with_metadata", "delete", "read"]), list[Any]()
        for store, version in zip((ours, theirs), chance.choice(versions[path][-2:]), strict=True):
            options: dict[str, Any] = {"expected_version": version, "operation": operation}
            if call == "read":
                pair.append(await outcome(store.read(path, max_chars=4)))
            elif call == "delete":
                pair.append(await outcome(store.delete(path, **options)))
            else:
                more = metadata if call.endswith("metadata") else {}
                pair.append(await outcome(getattr(store, call)(path, text, **options, **more)))
        if isinstance(pair[0], harness.MemoryMutation):
            assert (pair[0].replayed, pair[0].existed) == (pair[1].replayed, pair[1].existed)
            if not pair[0].replayed:
                before = [each for each in versions[path] if each[0] != pair[0].version]  # the same text once more
                versions[path] = [*before, (pair[0].version, pair[1].version)]
        elif isinstance(pair[0], harness.MemoryFile):
            for name in ("content", "operation_id", "truncated", "metadata"):
                assert getattr(pair[0], name) == getattr(pair[1], name)
        else:
            assert pair[0] == pair[1]
    for prefix in ("", "a/", "a", "a/n", "b"):
        assert await ours.list_paths(prefix, limit=3) == await theirs.list_paths(prefix, limit=3)


@pytest.mark.parametrize("seed", range(3))
def test_it_does_what_the_harness_s_own_store_does(memory: Memory, seed: int) -> None:
    store = PagerMemoryStore(memory)
    assert isinstance(store, harness.MetadataMemoryStore)
    assert isinstance(store, harness.SearchableMemoryStore)
    asyncio.run(live(store, harness.InMemoryStore(), random.Random(seed)))
    assert memory.check() == []


def test_search_finds_files_right_below_a_prefix_within_its_bounds(memory: Memory) -> None:
    store = PagerMemoryStore(memory)
    for path in ("a/seat.md", "a/cat.md", "a/deep/seat.md", "ab/seat.md"):
        asyncio.run(store.write(path, f"about the {path} " + "window seat " * 100, expected_version=None))
    bounds = {"max_files": 10, "max_file_chars": 1000}
    found = asyncio.run(store.search("a/", "window seat", limit=5, max_chars=100, **bounds))
    assert {match.path for match in found.matches} <= {"a/seat.md", "a/cat.md"}
    assert sum(len(match.snippet) + len(match.path) - 2 for match in found.matches) <= 100
    assert (found.scanned, found.truncated) == (2, True)
    assert len(asyncio.run(store.search("a/", "seat", limit=1, max_chars=5000, **bounds)).matches) == 1
    assert asyncio.run(store.search("a/", " ", limit=1, max_chars=100, **bounds)).matches == []
