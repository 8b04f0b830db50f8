"""Transcripts of the Claude Agent SDK as messages from elsewhere. `make judges` runs the SDK's own contracts too."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pager import Memory
from pager.adapters.claude_agent import PagerSessionStore
from tests.support import HandClock, Words

HELPER = {"project_key": "a/b", "session_id": "s1", "subpath": "subagents/agent-1"}
ENTRIES: list[Any] = [
    {"type": "user", "uuid": "u1", "timestamp": "2026-05-01T10:00:00.000Z", "message": {"content": "find the giraffe"}},
    {"type": "assistant", "uuid": "u2", "message": {"content": [
        {"type": "thinking", "thinking": "an okapi?"}, {"type": "text", "text": "It is in the barn."},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "zebra.txt"}},
    ]}},
    {"type": "user", "uuid": "u3", "message": {"content": [{"type": "tool_result", "content": "a pelican"}]}},
    {"type": "mode", "mode": "plan"},
]  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as opened:
        yield opened


def test_entries_come_back_as_they_were_and_what_was_said_is_found(memory: Memory) -> None:
    store = PagerSessionStore(memory)
    asyncio.run(store.append(HELPER, ENTRIES))
    assert asyncio.run(store.load(HELPER)) == ENTRIES
    assert [hit.page_id for hit in memory.search_recall("giraffe")][:1] == ["s1"]
    assert memory.search_recall("giraffe")[0].at.isoformat() == "2026-05-01T10:00:00+00:00"
    assert [hit.page_id for hit in memory.search_recall("barn")][:1] == ["s2"]
    assert {hit.page_id for hit in memory.search_recall("okapi zebra pelican plan")} <= {"s1", "s2"}  # by neighbours


def test_an_entry_with_a_known_id_is_stored_once_whoever_stored_it(memory: Memory) -> None:
    store, other = PagerSessionStore(memory), PagerSessionStore(memory)
    asyncio.run(store.append(HELPER, [*ENTRIES, ENTRIES[0]]))
    asyncio.run(other.append(HELPER, [{"type": "user", "uuid": "u9"}]))
    asyncio.run(store.append(HELPER, [{"type": "user", "uuid": "u9"}, ENTRIES[1], ENTRIES[3]]))
    assert asyncio.run(store.load(HELPER)) == [*ENTRIES, {"type": "user", "uuid": "u9"}, ENTRIES[3]]


def test_a_batch_is_stored_whole_or_not_at_all(memory: Memory) -> None:
    store = PagerSessionStore(memory)
    with pytest.raises(TypeError):
        asyncio.run(store.append(HELPER, [ENTRIES[0], "no entry"]))
    assert asyncio.run(store.load(HELPER)) is None
    asyncio.run(store.append(HELPER, ENTRIES))
    assert asyncio.run(store.load(HELPER)) == ENTRIES


def test_a_deleted_session_is_listed_and_found_no_more(memory: Memory) -> None:
    store = PagerSessionStore(memory)
    asyncio.run(store.append(HELPER, ENTRIES))
    assert asyncio.run(store.list_subkeys(HELPER)) == ["subagents/agent-1"]
    asyncio.run(store.delete({"project_key": "a", "session_id": "b"}))  # a slash in a name parts no project
    assert asyncio.run(store.load(HELPER)) == ENTRIES
    asyncio.run(store.delete({"project_key": "a/b", "session_id": "s1"}))
    assert asyncio.run(store.load(HELPER)) is None
    assert asyncio.run(store.list_subkeys(HELPER)) == []
    assert memory.search_recall("giraffe") == []
    assert memory.check() == []


def test_the_sdk_finds_its_contracts_fulfilled(tmp_path: Path) -> None:
    testing = pytest.importorskip("claude_agent_sdk.testing")
    opened: list[Memory] = []

    def make_store() -> PagerSessionStore:
        opened.append(Memory.open(tmp_path / str(len(opened)), embedder=None))
        return PagerSessionStore(opened[-1])

    asyncio.run(testing.run_session_store_conformance(make_store))
    for memory in opened:
        memory.close()
