"""The OpenAI Agents SDK's session as a window over messages from elsewhere. It needs nothing of the SDK."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pager import Memory
from pager.adapters.openai_agents import PagerSession
from tests.support import HandClock, Words


@dataclass
class ModelInput:
    """As the SDK's ModelInputData."""

    input: list[Any]
    instructions: str | None = None


@dataclass
class CallModel:
    """As the SDK's CallModelData."""

    model_data: ModelInput
    agent: None = field(default=None)


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as opened:
        yield opened


def turn(number: int) -> list[Any]:
    return [
        {"role": "user", "content": f"question {number}"},
        {"type": "function_call", "call_id": f"c{number}", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{number}", "output": "word " * 50},
        {"role": "assistant", "content": [{"type": "output_text", "text": f"answer {number}"}]},
    ]


def test_the_window_holds_the_newest_whole_turns_and_at_least_one(memory: Memory) -> None:
    session = PagerSession("dana", memory, limit_tokens=400)
    for number in range(100):
        asyncio.run(session.add_items(turn(number)))
    items = asyncio.run(session.get_items())
    assert items == [*turn(98), *turn(99)]
    assert asyncio.run(session.get_items(3)) == turn(99)[1:]
    assert asyncio.run(session.get_items(0)) == []
    assert asyncio.run(PagerSession("dana", memory, limit_tokens=1).get_items()) == turn(99)
    assert len(asyncio.run(PagerSession("dana", memory).get_items())) == 400
    assert asyncio.run(PagerSession("eve", memory).get_items()) == []


def test_what_has_left_the_window_comes_back_in_front_of_the_message_that_needs_it(memory: Memory) -> None:
    session = PagerSession("dana", memory, limit_tokens=200)
    asyncio.run(session.add_items([{"role": "user", "content": "my giraffe is called Melman"}]))
    for number in range(5):
        asyncio.run(session.add_items(turn(number)))
    asked = {"role": "user", "content": "how is my giraffe called?"}
    data = ModelInput([*asyncio.run(session.get_items()), asked])
    asyncio.run(session.add_items([asked]))
    changed = asyncio.run(session.recall(CallModel(data)))
    assert changed.input[:-2] == data.input[:-1]
    assert changed.input[-1] == asked
    assert changed.input[-2]["content"].startswith("<recalled>")
    assert "s1 user: my giraffe is called Melman" in changed.input[-2]["content"]
    assert asyncio.run(session.recall(CallModel(ModelInput([])))).input == []
    [search] = memory.ledger(events=["search"])
    assert search.actor == "openai-agents"
    assert "s1" in [found[0] for found in search.detail["found"]]


def test_popped_and_cleared_items_are_gone_from_the_window_and_from_searches(memory: Memory) -> None:
    session, other = PagerSession("dana", memory), PagerSession("dana/eve", memory)
    asyncio.run(session.add_items(turn(1)))
    asyncio.run(other.add_items(turn(2)))
    assert asyncio.run(session.pop_item()) == turn(1)[3]
    assert asyncio.run(session.get_items()) == turn(1)[:3]
    assert "s4" not in {hit.page_id for hit in memory.search_recall("answer")}
    asyncio.run(session.clear_session())
    assert asyncio.run(session.get_items()) == []
    assert asyncio.run(session.pop_item()) is None
    assert asyncio.run(other.get_items()) == turn(2)
    assert memory.check() == []


def test_a_cancelled_call_has_ended_when_the_cancellation_is_seen(memory: Memory) -> None:
    session = PagerSession("dana", memory)

    async def cancel_while_storing() -> None:
        with memory._call_lock.lock:  # the call waits for it in its thread
            storing = asyncio.create_task(session.add_items(turn(1)))
            await asyncio.sleep(0)
            storing.cancel()
            await asyncio.sleep(0)
            assert not storing.done()
        with pytest.raises(asyncio.CancelledError):
            await storing
        assert len(memory.inspect.records("openai-agents/dana")) == 4

    asyncio.run(cancel_while_storing())
