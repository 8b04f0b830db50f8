"""Conversations from elsewhere: OpenAI's and Anthropic's messages become the same turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.importing import importer as history
from agents.importing.conversations import conversations
from pager import Memory, RejectedError
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


def turns(value: Any) -> list[dict[str, Any]]:
    (found,) = conversations(value, "c.json")
    return [turn for _, turn in found.turns]


def test_openais_messages() -> None:
    assert turns(OPENAI) == [
        {"role": "developer", "text": "Be brief."},
        {"role": "user", "name": "Dana", "text": "Where is order 17?\n(image_url)"},
        {"role": "assistant", "text": 'fetch_order {"number": 17}'},
        {"role": "tool", "text": "two hats"},
        {"role": "assistant", "at": "2026-05-05T14:30:00+00:00", "text": "On its way."},
    ]


def test_anthropics_messages() -> None:
    assert turns(ANTHROPIC) == [
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


RESPONSES: dict[str, Any] = {
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Where is it?"}, {"type": "input_image"}]},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c", "name": "fetch_order", "arguments": '{"number": 17}'},
        {"type": "function_call_output", "call_id": "c", "output": "two hats"},
        {"type": "custom_tool_call", "call_id": "d", "name": "shell", "input": "ls -l"},
        {"type": "custom_tool_call_output", "call_id": "d", "output": [{"type": "output_text", "text": "a.txt"}]},
        {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "hats"}},
    ],
    "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "On its way."},
                                                             {"type": "refusal", "refusal": "No more."}]},
    ],
}  # fmt: skip


def test_the_responses_api() -> None:
    assert turns(RESPONSES) == [
        {"role": "system", "text": "Be brief."},
        {"role": "user", "text": "Where is it?\n(input_image)"},
        {"role": "assistant", "text": 'fetch_order {"number": 17}'},
        {"role": "tool", "text": "two hats"},
        {"role": "assistant", "text": "shell ls -l"},
        {"role": "tool", "text": "a.txt"},
        {"role": "assistant", "text": 'web_search_call {"type": "search", "query": "hats"}'},
        {"role": "assistant", "text": "On its way.\nNo more."},
    ]
    assert turns({"input": "Hello"}) == [{"role": "user", "text": "Hello"}]
    answered = {"created_at": 1777991400, "output": RESPONSES["output"]}
    assert turns(answered) == [
        {"role": "assistant", "text": "On its way.\nNo more.", "at": "2026-05-05T14:30:00+00:00"}
    ]


def test_a_message_of_the_assistants_api() -> None:
    said = {"role": "user", "created_at": 1777991400, "content": [{"type": "text", "text": {"value": "Where is it?"}}]}
    assert turns([said]) == [{"role": "user", "text": "Where is it?", "at": "2026-05-05T14:30:00+00:00"}]


def test_a_chat_completion() -> None:
    said = {"role": "assistant", "content": "On its way."}
    completion = {"object": "chat.completion", "created": 1777991400, "choices": [{"index": 0, "message": said}]}
    assert turns(completion) == [{"role": "assistant", "text": "On its way.", "at": "2026-05-05T14:30:00+00:00"}]
    with pytest.raises(RejectedError, match="message 0 is None"):
        turns({"choices": [{"text": "of the old completions"}]})


def test_old_calls_refusals_sound_and_custom_calls_of_openai() -> None:
    assert turns([
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "look", "content": "seen"},
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        {"role": "assistant", "content": None, "audio": {"id": "a", "data": "UklGR", "transcript": "Good morning."}},
        {"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "sql", "input": "select 1"}}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklGR", "format": "wav"}},
                                     {"type": "file", "file": {"filename": "tax.pdf", "file_data": "JVBE"}}]},
    ]) == [
        {"role": "assistant", "text": 'look {"a": 1}'},
        {"role": "function", "name": "look", "text": "seen"},
        {"role": "assistant", "text": "I cannot."},
        {"role": "assistant", "text": "Good morning."},
        {"role": "assistant", "text": "sql select 1"},
        {"role": "user", "text": "(input_audio)\n(file)\ntax.pdf"},
    ]  # fmt: skip


def test_server_tools_and_documents_of_anthropic() -> None:
    found = [{"type": "web_search_result", "title": "Hats", "url": "https://h", "encrypted_content": "Eo0"}]
    assert turns([
        {"role": "user", "content": [
            {"type": "document", "title": "Rules", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "No hats."}]}},
            {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "inside"}]}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I search."},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "hats"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": found},
            {"type": "something_new", "id": "n", "deep": [{"words": "kept anyway"}]},
            {"type": "text", "text": "Found."}]},
    ]) == [
        {"role": "user", "text": "(document)\nRules\nx\n(document)\nNo hats.\n(search_result)\nT\ns\ninside"},
        {"role": "assistant", "text": 'I search.\nweb_search {"query": "hats"}'},
        {"role": "tool", "text": "Hats\nhttps://h"},
        {"role": "assistant", "text": "(something_new)\nkept anyway\nFound."},
    ]  # fmt: skip


@pytest.mark.parametrize("at", [1777991400, 1777991400.0, 1777991400_000, 1777991400_000_000, 1777991400_000_000_000])
def test_a_time_is_read_in_whatever_unit(at: float) -> None:
    (turn,) = turns([{"role": "user", "content": "x", "timestamp": at}])
    assert turn["at"] == "2026-05-05T14:30:00+00:00"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "role",
                        "content",
                        "text",
                        "type",
                        "messages",
                        "mapping",
                        "message",
                        "author",
                        "parts",
                        "parent",
                        "sender",
                        "chat_messages",
                        "input",
                        "tool_calls",
                        "function",
                        "at",
                        "output",
                        "create_time",
                        "current_node",
                        "attachments",
                        "system",
                        "audio",
                        "user",
                        "name",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
    )
)
def test_whatever_a_file_holds_is_read_or_refused(value: Any) -> None:
    try:
        read = [turn for found in conversations(value, "c.json") for _, turn in found.turns]
    except RejectedError as error:
        assert str(error).startswith("c.json")
    else:
        assert all(isinstance(turn["role"], str) for turn in read)


def test_a_conversation_is_known_by_what_it_says(tmp_path: Path) -> None:
    first, moved = tmp_path / "a.json", tmp_path / "b.json"
    talk = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    with Memory.open(tmp_path / "m", embedder=None, clock=HandClock()) as memory:
        first.write_text(written(talk), encoding="utf-8")
        moved.write_text(written({"messages": [*talk, {"role": "user", "content": "three"}]}), encoding="utf-8")
        assert [history.take(memory, file) for file in (first, moved, first, moved)] == [2, 1, 0, 0]
        sessions = [memory._store.conversation.step(number) for number in (1, 2, 3)]
        assert [row["session"] for row in sessions if row] == ["a.json"] * 3
        moved.write_text(written([{"role": "user", "content": "ONE"}, *talk[1:]]), encoding="utf-8")
        assert history.take(memory, moved) == 2


def test_what_was_taken_is_left_alone_as_it_was_earlier_and_what_goes_on_otherwise_stands_by_itself(
    tmp_path: Path,
) -> None:
    file = tmp_path / "c.json"
    talks = [
        [{"role": "user", "content": text} for text in words.split()] for words in ("a b", "a b c d", "a b e", "a")
    ]

    def take(*talks: Any) -> int:
        file.write_text(written([{"id": number, "messages": talk} for number, talk in enumerate(talks)]), "utf-8")
        return history.take(memory, file)

    with Memory.open(tmp_path / "m", embedder=None, clock=HandClock()) as memory:
        assert [take(talks[1]), take(talks[0]), take(talks[3])] == [4, 0, 0]
        assert [take(talks[2]), take(*talks), take(*reversed(talks))] == [3, 0, 0]
    with Memory.open(tmp_path / "other", embedder=None, clock=HandClock()) as memory:
        assert [take(*talks), take(*talks)] == [2 + 2 + 3, 0]
        rows = [memory._store.conversation.step(number) for number in range(1, 8)]
        assert [row["session"] for row in rows if row] == ["c.json:0"] * 4 + ["c.json:2"] * 3


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([{"role": "user", "content": "x"}, {"content": "y"}], "message 1 is {'content': 'y'}"),
        ([{"role": "user", "content": 7}], "message 0: its content is 7"),
        ([{"role": "user", "content": [7]}], "message 0: its content is 7"),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], "message 0: a tool call is {'id': 'c'}"),
        ([{"role": "assistant", "tool_calls": {"id": "c"}}], "message 0: its tool_calls are {'id': 'c'}"),
        ([{"role": "user", "content": "x", "at": float("nan")}], "message 0: its time is nan"),
        ([{"role": "user", "content": "x", "at": True}], "message 0: its time is True"),
        ([{"role": "user", "content": "x", "at": "soon"}], "message 0: 'soon' is not a moment"),
        ([{"role": 7, "content": "x"}], "message 0: its role is 7"),
    ],
)
def test_what_cannot_be_read_is_told_and_nothing_is_taken(tmp_path: Path, messages: Any, told: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(written({"messages": messages}), encoding="utf-8")
    with Memory.open(tmp_path / "m", embedder=None) as memory:
        with pytest.raises(RejectedError) as refused:
            history.take(memory, file)
        assert str(refused.value).startswith(f"{file}: {told}")
        assert memory.history.days() == {}
