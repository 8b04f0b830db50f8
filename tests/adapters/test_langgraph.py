"""LangGraph's store over facts. `make judges` runs LangGraph's own tests; these need LangGraph and are small."""

import asyncio
import importlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pager import Memory
from tests.support import HandClock, Words

pytest.importorskip("langgraph.store.base")
PagerStore: Any = importlib.import_module("pager.adapters.langgraph").PagerStore

ALICE = ("users", "alice")


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as opened:
        yield opened


def test_an_item_is_a_fact_with_its_history(memory: Memory) -> None:
    store = PagerStore(memory)
    store.put(ALICE, "seat", {"text": "prefers window seats"})
    created = store.get(ALICE, "seat").created_at
    store.put(ALICE, "seat", {"text": "prefers aisle seats"})
    item = store.get(ALICE, "seat")
    assert (item.value, item.created_at) == ({"text": "prefers aisle seats"}, created)
    assert [fact.text for fact in memory.history.fact_versions("langgraph.users.alice..seat")] == [
        '{"text": "prefers window seats"}', '{"text": "prefers aisle seats"}'
    ]  # fmt: skip
    store.delete(ALICE, "seat")
    assert store.get(ALICE, "seat") is None
    assert memory.check() == []


def test_search_finds_by_meaning_below_a_namespace_and_by_filters(memory: Memory) -> None:
    store = PagerStore(memory)
    for number in range(30):
        store.put(("users", f"user{number}"), "seat", {"text": f"window seat number {number}", "age": number})
    memory.archive("the window seat of nobody in particular")
    found = store.search(("users",), query="window seat number", filter={"age": {"$gte": 25}}, limit=3)
    assert len(found) == 3
    assert all(item.value["age"] >= 25 for item in found)
    assert [item.key for item in store.search(("users", "user7"), query="seat")] == ["seat"]
    assert len(store.search(("users",), limit=100)) == 30
    assert store.list_namespaces(prefix=("users", "*"), max_depth=1) == [("users",)]


def test_an_item_lives_from_its_last_reading(tmp_path: Path) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=None, clock=clock) as memory:
        store = PagerStore(memory, ttl={"default_ttl": 10})
        store.put(ALICE, "code", {"text": "4711"})
        clock.set(clock.now() + timedelta(minutes=9))
        assert store.get(ALICE, "code") is not None
        clock.set(clock.now() + timedelta(minutes=9))
        assert store.get(ALICE, "code", refresh_ttl=False) is not None
        assert memory.inspect.facts().total == 1  # a reading moves its end, and stores nothing
        clock.set(clock.now() + timedelta(minutes=2))
        assert store.get(ALICE, "code") is None
        assert store.search(ALICE) == store.search(ALICE, query="4711") == store.list_namespaces() == []
        assert memory.inspect.facts("current").total == 0
        assert memory.search_archive("4711") == []
        store.put(ALICE, "code", {"text": "4711"}, ttl=None)
        clock.set(clock.now() + timedelta(days=900))
        assert store.get(ALICE, "code").created_at > memory.fact("f1").valid_until  # it is another one
        assert memory.check() == []


def test_what_a_query_does_not_refresh_is_over_when_it_was(tmp_path: Path) -> None:
    clock = HandClock()
    with Memory.open(tmp_path, embedder=Words(), clock=clock) as memory:
        store = PagerStore(memory)
        for key in ("a", "b"):
            store.put(ALICE, key, {"text": f"seat {key}"}, ttl=10)
        clock.set(clock.now() + timedelta(minutes=9))
        assert len(store.search(ALICE, query="seat", refresh_ttl=False)) == 2
        assert [item.key for item in store.search(ALICE, filter={"text": "seat a"}, refresh_ttl=True)] == ["a"]
        clock.set(clock.now() + timedelta(minutes=2))
        assert [item.key for item in store.search(ALICE, query="seat")] == ["a"]


@pytest.mark.parametrize("key", ["it's", 'a"b'])
def test_a_filter_that_looks_like_sql_is_refused_by_name(memory: Memory, key: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid filter key: .* holds a quote"):
        PagerStore(memory).search(ALICE, filter={key: 1})


def test_async_calls_do_the_same(memory: Memory) -> None:
    async def both() -> Any:
        store = PagerStore(memory)
        await store.aput(ALICE, "seat", {"text": "window"})
        return await store.aget(ALICE, "seat"), await store.asearch(ALICE, query="window")

    item, [hit] = asyncio.run(both())
    assert item.value == hit.value == {"text": "window"}
