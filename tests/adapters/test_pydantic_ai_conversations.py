"""PydanticAI's conversations as messages from elsewhere: random lives beside PydanticAI's own store in memory."""

import asyncio
import importlib
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from pager import Memory
from tests.support import HandClock, Words

theirs: Any = pytest.importorskip("pydantic_ai.conversation_store")
messages: Any = importlib.import_module("pydantic_ai.messages")
Conversation: Any = importlib.import_module("pydantic_ai.conversation").Conversation
PagerConversationStore: Any = importlib.import_module("pager.adapters.pydantic_ai_conversations").PagerConversationStore

NAMES = ["dana", "a/b", "ünï ", "x"]


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path, embedder=Words(), clock=HandClock()) as opened:
        yield opened


def asked(text: str) -> Any:
    return messages.ModelRequest(parts=[messages.UserPromptPart(content=text)])


def answered(text: str) -> Any:
    call = messages.ToolCallPart(tool_name="look", args={"at": "the zebra"}, tool_call_id="c1")
    return messages.ModelResponse(parts=[messages.TextPart(content=text), call])


async def outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except theirs.UserError as error:
        return type(error)


def shown(result: Any) -> Any:
    """Return what of an outcome both stores have to share: ids and revisions are made by chance."""
    if isinstance(result, list):
        return [shown(each) for each in result]
    if isinstance(result, theirs.ConversationRecord):
        return result.conversation_id, result.scope, result.forked_from, len(result.branches), result.usage
    if isinstance(result, theirs.ConversationEntry):
        return result.message
    return result.messages if isinstance(result, Conversation) else result


async def live(ours: Any, other: Any, chance: random.Random) -> None:
    loaded: dict[str, list[Any]] = {}
    for number in range(60):
        name, scope = chance.choice(NAMES), chance.choice([None, None, "s"])
        what = chance.choice(["save", "save", "save", "load", "fork", "branch", "delete", "list", "rewrite"])
        at, new, size = chance.choice([None, 0, 1, 3]), chance.choice(NAMES), chance.choice([None, 0, 2])
        pair, said = list[Any](), [asked(f"question {number}"), answered(f"answer {number}")]
        for place, store in enumerate((ours, other)):
            mine = loaded.get(name, [None, None])[place] or Conversation(conversation_id=name)
            if what == "save":
                mine.messages = [*mine.messages, *said]
                pair.append(await outcome(store.save(mine, scope=scope)))
            elif what == "rewrite":
                mine.messages = [*mine.messages[:2], *said]
                pair.append(await outcome(store.save(mine)))
            elif what == "load":
                pair.append(await outcome(store.load(name, limit=size, scope=scope)))
            elif what == "fork":
                pair.append(await outcome(store.fork(name, at=at, new_conversation_id=new)))
            elif what == "branch":
                pair.append(await outcome(store.branch(name, at=at or 0, expected_revision=mine.revision)))
            elif what == "delete":
                pair.append(await outcome(store.delete(name, scope=scope)))
            else:
                pair.append(await outcome(store.list_conversations(scope=scope, limit=size)))
        assert shown(pair[0]) == shown(pair[1]), (number, what)
        if isinstance(pair[0], Conversation):
            loaded[pair[0].conversation_id] = pair
    for name in NAMES:
        assert shown(await outcome(ours.load(name))) == shown(await outcome(other.load(name)))


@pytest.mark.parametrize("seed", range(4))
def test_it_does_what_pydantic_ai_s_own_store_does(memory: Memory, seed: int) -> None:
    asyncio.run(live(PagerConversationStore(memory), theirs.InMemoryConversationStore(), random.Random(seed)))
    assert memory.check() == []


def test_what_was_said_is_found_until_nothing_reaches_it_any_more(memory: Memory) -> None:
    async def life() -> None:
        store = PagerConversationStore(memory)
        conversation = Conversation(conversation_id="dana", messages=[asked("my giraffe is Melman"), answered("Noted")])
        await store.save(conversation)
        await store.fork("dana", at=1, new_conversation_id="fork")
        assert [hit.text for hit in memory.search_recall("giraffe")][:1] == ["my giraffe is Melman"]
        assert "zebra" not in str(memory.search_recall("zebra"))
        await store.delete("dana")
        assert [hit.text for hit in memory.search_recall("giraffe noted")] == ["my giraffe is Melman"]
        assert len((await store.load("fork")).messages) == 1
        assert [each.conversation_id for each in await store.list_conversations()] == ["fork"]
        await store.delete("fork")
        assert memory.search_recall("giraffe") == []
        assert await store.list_conversations() == []

    asyncio.run(life())
    assert memory.check() == []


def test_content_that_is_no_text_comes_back_as_it_was(memory: Memory) -> None:
    paper = messages.BinaryContent(data=b"\x00\xff", media_type="application/pdf")
    parts = [messages.SystemPromptPart(content="be kind"), messages.UserPromptPart(content=["see the okapi", paper])]
    conversation = Conversation(conversation_id="x", messages=[messages.ModelRequest(parts=parts)])
    store = PagerConversationStore(memory)
    asyncio.run(store.save(conversation))
    assert asyncio.run(store.load("x")).messages == conversation.messages
    assert [hit.text for hit in memory.search_recall("okapi")] == ["see the okapi"]


def test_a_purged_message_is_missing_and_all_others_stay(memory: Memory) -> None:
    store = PagerConversationStore(memory)
    said = [asked("one"), answered("two"), asked("three")]
    asyncio.run(store.save(Conversation(conversation_id="x", messages=said)))
    [hit] = [hit for hit in memory.search_recall("two") if hit.text == "two"]
    memory.purge(hit.page_id)
    assert asyncio.run(store.load("x")).messages == [said[0], said[2]]
    asyncio.run(store.delete("x"))
    assert asyncio.run(store.list_conversations()) == []
    assert memory.check() == []
