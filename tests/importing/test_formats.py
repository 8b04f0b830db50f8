"""The formats of others: messages of OpenAI and Anthropic, the Responses API, and exports of ChatGPT and claude.ai."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.importing.formats import conversations_in
from pager import RejectedError

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
RARE_OPENAI = [
    {"role": "assistant", "content": None, "refusal": "I cannot."},
    {"role": "assistant", "content": None, "audio": {"id": "a", "data": "UklGR", "transcript": "Good morning."}},
    {"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "sql", "input": "select 1"}}]},
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklGR", "format": "wav"}},
                                 {"type": "file", "file": {"filename": "tax.pdf", "file_data": "JVBE"}}]},
]  # fmt: skip
RARE_ANTHROPIC = [
    {"role": "user", "content": [
        {"type": "document", "title": "Rules", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "No hats."}]}},
        {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "inside"}]}]},
    {"role": "assistant", "content": [
        {"type": "text", "text": "I search."},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "hats"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [
            {"type": "web_search_result", "title": "Hats", "url": "https://h", "encrypted_content": "Eo0"}]},
        {"type": "something_new", "id": "n", "deep": [{"words": "kept anyway"}]},
        {"type": "text", "text": "Found."}]},
]  # fmt: skip
CALL = "assistant", 'fetch_order {"number": 17}'
SEARCH = 'web_search_call {"type": "search", "query": "hats"}'
READ = {  # the messages of each: who, what, and when if that is there
    "openai": (OPENAI, [
        ("developer", "Be brief."), ("user", "Where is order 17?\n(image_url)"), CALL, ("tool", "two hats"),
        ("assistant", "On its way.", "2026-05-05T14:30:00+00:00"),
    ]),
    "anthropic": (ANTHROPIC, [
        ("system", "Be brief."), ("user", "Where is order 17?"), ("assistant", f"I look.\n{CALL[1]}"),
        ("tool", "two hats"), ("user", "And?"), ("assistant", "On its way.", "2026-05-05T14:30Z"),
    ]),
    "responses": (RESPONSES, [
        ("system", "Be brief."), ("user", "Where is it?\n(input_image)"), CALL, ("tool", "two hats"),
        ("assistant", "shell ls -l"), ("tool", "a.txt"), ("assistant", SEARCH), ("assistant", "On its way.\nNo more."),
    ]),
    "a text": ({"input": "Hello"}, [("user", "Hello")]),
    "an answer": ({"created_at": 1777991400, "output": RESPONSES["output"]}, [
        ("assistant", "On its way.\nNo more.", "2026-05-05T14:30:00+00:00")
    ]),
    "refusals, sound, files and custom calls": (RARE_OPENAI, [
        ("assistant", "I cannot."), ("assistant", "Good morning."), ("assistant", "sql select 1"),
        ("user", "(input_audio)\n(file)\ntax.pdf"),
    ]),
    "server tools and documents": (RARE_ANTHROPIC, [
        ("user", "(document)\nRules\nx\n(document)\nNo hats.\n(search_result)\nT\ns\ninside"),
        ("assistant", 'I search.\nweb_search {"query": "hats"}'), ("tool", "Hats\nhttps://h"),
        ("assistant", "(something_new)\nkept anyway\nFound."),
    ]),
}  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), READ.values(), ids=READ)
def test_messages_are_read(value: Any, expected: list[tuple[str, ...]]) -> None:
    (found,) = conversations_in(value, "c.json")
    read = [record for _, record in found.records]
    assert [tuple(record[key] for key in ("role", "text", "at") if key in record) for record in read] == expected
    assert [record["name"] for record in read if "name" in record] == (["Dana"] if value is OPENAI else [])


def node(name: str, parent: str | None, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    message = {"author": {"role": role}, "content": {"content_type": "text", "parts": [*parts]}, **more}
    return {name: {"id": name, "parent": parent, "children": [], "message": message}}


CHATGPT: list[dict[str, Any]] = [
    {
        "title": "Hats", "create_time": 1777991000.5, "id": "c-1", "current_node": "d",
        "mapping": {
            "root": {"id": "root", "parent": None, "message": None, "children": ["s"]},
            **node("s", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
            **node("a", "s", "user", "Where is it?", {"content_type": "image_asset_pointer", "asset_pointer": "x"},
                   create_time=1777991400, metadata={"attachments": [{"id": "file-1", "name": "order.pdf"}]}),
            **node("b", "a", "assistant", "an answer that was asked for again"),
            **node("c", "a", "assistant", "search('hats')", recipient="browser"),
            **node("d", "c", "assistant", "On its way.", create_time=1777991500.25),
        },
    },
    {"title": "Empty", "id": "c-2", "mapping": {}, "current_node": None},
]  # fmt: skip


def test_an_export_of_chatgpt_gives_the_branch_that_is_shown() -> None:
    hats, empty = conversations_in(CHATGPT, "conversations.json")
    assert (hats.name, empty.name, list(empty.records)) == ("c-1", "c-2", [])
    assert list(hats.records) == [
        ("conversations.json: conversation 0: message a",
         {"role": "user", "text": "Where is it?\n(image_asset_pointer)\n(document)\norder.pdf",
          "at": "2026-05-05T14:30:00+00:00"}),
        ("conversations.json: conversation 0: message c",
         {"role": "assistant", "text": "browser:\nsearch('hats')", "at": "2026-05-05T14:30:00+00:00"}),
        ("conversations.json: conversation 0: message d",
         {"role": "assistant", "text": "On its way.", "at": "2026-05-05T14:31:40.250000+00:00"}),
    ]  # fmt: skip


def test_an_export_of_claude() -> None:
    talk = {
        "uuid": "u-1", "name": "Hats", "created_at": "2026-05-05T14:00:00Z",
        "chat_messages": [
            {"sender": "human", "text": "Where?", "content": [{"type": "text", "text": "Where?"}],
             "attachments": [{"file_name": "order.txt", "extracted_content": "two hats"}]},
            {"sender": "assistant", "text": "On its way.", "content": [], "created_at": "2026-05-05T14:01:00Z"},
            {"sender": "human", "text": "", "content": [], "files": [{"file_uuid": "u-2", "file_name": "hat.png"}]},
        ],
    }  # fmt: skip
    (found,) = conversations_in([talk], "conversations.json")
    assert found.name == "u-1"
    assert [record for _, record in found.records] == [
        {"role": "user", "text": "Where?\n(document)\norder.txt\ntwo hats", "at": "2026-05-05T14:00:00Z"},
        {"role": "assistant", "text": "On its way.", "at": "2026-05-05T14:01:00Z"},
        {"role": "user", "text": "(document)\nhat.png", "at": "2026-05-05T14:01:00Z"},
    ]


NAMES = st.sampled_from(
    [
        "role", "content", "text", "type", "messages", "mapping", "message", "author", "parts", "parent",
        "sender", "chat_messages", "input", "tool_calls", "function", "at", "output", "create_time",
        "current_node", "attachments", "system", "audio", "user", "name",
    ]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5))


@given(VALUES)
def test_whatever_a_file_holds_is_read_or_refused(value: Any) -> None:
    try:
        read = [record for found in conversations_in(value, "c.json") for _, record in found.records]
    except RejectedError as error:
        assert str(error).startswith("c.json")
    else:
        assert all(record.keys() >= {"role", "text"} for record in read)
