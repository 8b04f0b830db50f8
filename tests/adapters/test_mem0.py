"""mem0's calls over facts."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pager import Memory, NotFoundError, RejectedError
from pager.adapters.mem0 import PagerMem0
from pager.adapters.mem0_async import PagerAsyncMem0
from tests.support import HandClock, Words

DANA = {"user_id": "dana"}


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as opened:
        yield opened


def texts(found: dict[str, Any]) -> list[str]:
    return [item["memory"] for item in found["results"]]


def test_what_is_added_is_found_and_listed_by_whose_it_is(memory: Memory) -> None:
    m = PagerMem0(memory)
    m.add("prefers window seats", user_id="dana", metadata={"topic": "travel", "age": 3}, infer=False)
    m.add("prefers aisle seats", user_id="Dana", infer=False)
    talk = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "has a cat", "name": "dana"}]
    added = m.add(talk, user_id="dana", run_id="r1", infer=False)["results"]
    assert [(each["memory"], each["event"], each["role"], each["actor_id"]) for each in added] == [
        ("has a cat", "ADD", "user", "dana")
    ]
    assert texts(m.search("prefers window seats", filters=DANA, threshold=0.8)) == ["prefers window seats"]
    assert texts(m.search("which seats?", filters={**DANA, "age": {"gt": 3}}, threshold=-1)) == []
    assert texts(m.get_all(filters=DANA)) == ["has a cat", "prefers window seats"]
    assert texts(m.get_all(filters={"run_id": "r1"})) == ["has a cat"]
    [item] = m.get_all(filters={**DANA, "topic": "travel"})["results"]
    assert (item["user_id"], item["metadata"]) == ("dana", {"topic": "travel", "age": 3})


def test_a_memory_has_its_history(memory: Memory) -> None:
    m = PagerMem0(memory)
    number = m.add("lives in Lisbon", user_id="dana", infer=False)["results"][0]["id"]
    m.update(number, "lives in Porto")
    m.delete(number)
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in m.history(number)] == [
        ("ADD", None, "lives in Lisbon"), ("UPDATE", "lives in Lisbon", "lives in Porto"),
        ("DELETE", "lives in Porto", None),
    ]  # fmt: skip
    assert m.get_all(filters=DANA)["results"] == []
    with pytest.raises(NotFoundError, match="there is no memory"):
        m.update(number, "lives nowhere")


def test_the_async_calls_do_the_same_side_by_side(memory: Memory) -> None:
    async def life() -> Any:
        m = PagerAsyncMem0(memory)
        added = await asyncio.gather(*(m.add(f"has cat {n}", user_id="dana", infer=False) for n in range(20)))
        number = added[0]["results"][0]["id"]
        await m.update(number, "has a dog")
        await m.delete(number)
        with pytest.raises(RejectedError, match="give infer=False"):
            await m.add("x", user_id="dana")
        found = await m.search("has cat 7", filters=DANA, top_k=1)
        return await m.get_all(filters=DANA, top_k=50), await m.history(number), found

    everything, changes, found = asyncio.run(life())
    assert everything == PagerMem0(memory).get_all(filters=DANA, top_k=50)
    assert sorted(texts(everything)) == sorted(f"has cat {n}" for n in range(1, 20))
    assert [row["event"] for row in changes] == ["ADD", "UPDATE", "DELETE"]
    assert texts(found) == ["has cat 7"]


def test_what_it_cannot_do_is_refused_with_the_way_out(memory: Memory) -> None:
    m = PagerMem0(memory)
    with pytest.raises(RejectedError, match="give infer=False"):
        m.add("x", user_id="dana")
    with pytest.raises(ValueError, match="at least one of user_id, agent_id, run_id"):
        m.get_all(filters={"topic": "travel"})
    with pytest.raises(ValueError, match="OR in filters is not supported"):
        m.search("x", filters={**DANA, "OR": []})
