"""Bad input is refused before anything is written, with a text that names it; and the agent goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pager import Refused
from tests.standin import call
from tests.support import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


def written(talk: Talk) -> tuple[int, int]:
    return len(talk.memory.ledger()), talk.memory._store.conversation.last_step()


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


NEVER: list[Any] = [
    None,
    5,
    {"type": "text", "text": "x"},
    b"x",
    ["x"],
    [None],
    [{}],
    [{"type": None}],
    [{"type": ["text"]}],
    [{"type": "text"}],
    [{"type": "text", "text": None}],
    [{"type": "text", "text": 5}],
    [{"type": "video", "source": {}}],
    [{"type": "thinking", "thinking": "x", "signature": "y"}],
    [{"type": "tool_use", "id": "a", "name": "b", "input": {}}],
    [{"type": "tool_result", "tool_use_id": "a", "content": "b"}],
    [{"type": "image"}],
    [{"type": "image", "source": "cat.png"}],
    [{"type": "image", "source": {"type": "text", "data": "x"}}],
    [{"type": "image", "source": {"type": ["url"]}}],
    [{"type": "image", "source": {"type": "base64", "media_type": "image/png"}}],
    [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b"x"}}],
    [{"type": "document", "source": {"type": "url"}}],
    [{"type": "document", "source": {"type": "content", "content": [{"type": "document"}]}}],
    [{"type": "document", "source": {"type": "url", "url": "https://example.org"}, "title": 5}],
    [{"type": "search_result", "source": "x", "title": "y", "content": "z"}],
    [{"type": "text", "text": "x", "score": float("nan")}],
    [{"type": "text", "text": "x", "score": float("inf")}],
    [{"type": "text", "text": "x", "bytes": b"x"}],
    [{"type": "text", "text": "x", "set": {1}}],
    [{"type": "text", "text": "x", "more": {5: "x"}}],
    [{"type": "text", "text": "x", "number": 10**5000}],
    [{"type": "text", "text": "x", "deep": deep(2000)}],
]


@pytest.mark.parametrize("content", NEVER, ids=range(len(NEVER)))
def test_what_the_provider_never_accepts_is_not_written(talk: Talk, content: Any) -> None:
    talk.ask("hello", call("weather", {"city": "Porto"}))
    waits = talk.memory.open_calls[0].id
    before = written(talk)
    with pytest.raises(Refused, match=r"give|may be|keys are|flatter"):
        talk.memory.append_result(waits, content)
    assert written(talk) == before
    talk.answer()
    talk.reply("sunny")
    before = written(talk)
    with pytest.raises(Refused, match=r"give|may be|keys are|flatter"):
        talk.memory.append_user(content)
    assert written(talk) == before
    talk.ask("and then?", "go on")
    assert not talk.memory.check()


def test_what_it_does_accept_is_written(talk: Talk) -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    found = {"type": "search_result", "source": "a", "title": "b", "content": [{"type": "text", "text": "c"}]}
    inner = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "d"}]}}
    plain = {"type": "document", "title": None, "source": {"type": "text", "media_type": "text/plain", "data": "e"}}
    talk.memory.append_user(({"type": "text", "text": "look"}, picture, found, inner, plain))
    talk.reply(call("weather", {"city": "Porto"}))
    waits = talk.memory.open_calls[0].id
    talk.memory.append_result(waits, [{"type": "text", "text": "see"}, picture, found, plain])
    talk.reply("seen")


REPLIES: list[Any] = [
    [{"type": "tool_use", "id": "a", "input": {}}],
    [{"type": "tool_use", "id": "a", "name": None, "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "", "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "two words", "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "a" * 129, "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "weather\n", "input": {}}],
    [{"type": "tool_use", "id": "a", "name": "weather"}],
    [{"type": "tool_use", "id": "a", "name": "weather", "input": "{}"}],
    [{"type": "tool_use", "id": "a", "name": "weather", "input": {"x": float("nan")}}],
    [{"type": "text", "text": None}],
    [{"type": "thinking", "thinking": 5}],
    [{"type": "tool_result", "tool_use_id": "a"}],
    [{"type": "image", "source": {"type": "url", "url": "x"}}],
    [{"text": "no type"}],
    ["text"],
    5,
    {"type": "text"},
]


@pytest.mark.parametrize("content", REPLIES, ids=range(len(REPLIES)))
def test_a_malformed_reply_has_to_be_asked_for_again(talk: Talk, content: Any) -> None:
    talk.memory.append_user("hello")
    talk.memory.request()
    before = written(talk)
    with pytest.raises(Refused, match="reply is malformed and nothing of it was kept; ask the model again: "):
        talk.memory.append_assistant({"content": content, "stop_reason": "tool_use"})
    assert written(talk) == before
    talk.reply("hello")
    talk.ask("and then?", "go on")


def test_a_reply_with_a_block_of_a_new_kind_is_kept(talk: Talk) -> None:
    talk.memory.append_user("hello")
    talk.memory.request()
    news = {"type": "quantum_tool_result", "result": [1, 2.5, None, True]}
    step = talk.memory.append_assistant({"content": [news, {"type": "text", "text": "so"}], "stop_reason": "end_turn"})
    assert talk.memory.blocks_of(step)[0] == news
