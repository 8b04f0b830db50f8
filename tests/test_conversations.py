"""Conversations from elsewhere: OpenAI's and Anthropic's messages become the same turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents import history
from agents.conversations import turns
from pager import Memory, Refused
from tests.support import HandClock

OPENAI = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "name": "Dana", "content": [
        {"type": "text", "text": "Where is order 17?"}, {"type": "image_url"}]},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "fetch_order", "arguments": '{"number": 17}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "two hats"},
    {"role": "assistant", "content": "On its way.", "created_at": 1777991400},
]  # fmt: skip
ANTHROPIC: dict[str, Any] = {
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "Where is order 17?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "fetch_order", "input": {"number": 17}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "two hats"}]},
            {"type": "text", "text": "And?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "On its way."}], "timestamp": "2026-05-05T14:30Z"},
        {"role": "assistant", "content": []},
    ],
}  # fmt: skip


def test_openais_messages() -> None:
    assert list(turns(OPENAI)) == [
        {"role": "developer", "text": "Be brief."},
        {"role": "user", "name": "Dana", "text": "Where is order 17?\n(image_url)"},
        {"role": "assistant", "text": 'fetch_order {"number": 17}'},
        {"role": "tool", "text": "two hats"},
        {"role": "assistant", "at": "2026-05-05T14:30:00+00:00", "text": "On its way."},
    ]


def test_anthropics_messages() -> None:
    assert list(turns(ANTHROPIC)) == [
        {"role": "system", "text": "Be brief."},
        {"role": "user", "text": "Where is order 17?"},
        {"role": "assistant", "text": 'I look.\nfetch_order {"number": 17}'},
        {"role": "tool", "text": "two hats"},
        {"role": "user", "text": "And?"},
        {"role": "assistant", "at": "2026-05-05T14:30Z", "text": "On its way."},
    ]


def written(value: Any, *, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent)


@pytest.mark.parametrize(
    ("text", "sessions"),
    [
        (written(ANTHROPIC, indent=2), ["c.json"]),
        (written(ANTHROPIC["messages"]), ["c.json"]),
        ("\n".join(map(written, OPENAI)), ["c.json"]),
        (f"{written(ANTHROPIC)}\n\n{written({'messages': OPENAI})}", ["c.json:1", "c.json:3"]),
    ],
)
def test_a_file_of_any_of_these_forms_is_taken_once(tmp_path: Path, text: str, sessions: list[str]) -> None:
    file = tmp_path / "c.json"
    file.write_text(text, encoding="utf-8")
    with Memory.open(tmp_path / "m", embedder=None, clock=HandClock()) as memory:
        taken = history.take(memory, file)
        assert history.take(memory, file) == 0
        rows = [memory._store.conversation.step(number) for number in range(1, taken + 1)]
        assert list(dict.fromkeys(row["session"] for row in rows if row)) == sessions
        assert memory.search_recall("order 17")
        assert memory.search_recall("way", after="2026-05-05", before="2026-05-05")[0].who == "assistant"


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([{"role": "user", "content": "x"}, {"content": "y"}], "message 1 is {'content': 'y'}"),
        ([{"role": "user", "content": 7}], "message 0: its content is 7"),
        ([{"role": "user", "content": [7]}], "message 0: a part of its content is 7"),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], "message 0: a tool call is {'id': 'c'}"),
    ],
)
def test_what_cannot_be_read_is_told_and_nothing_is_taken(tmp_path: Path, messages: Any, told: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(written({"messages": messages}), encoding="utf-8")
    with Memory.open(tmp_path / "m", embedder=None) as memory:
        with pytest.raises(Refused) as refused:
            history.take(memory, file)
        assert str(refused.value).startswith(f"{file}: {told}")
        assert memory.days() == {}
