"""The exports that people have of ChatGPT and claude.ai become turns: the branch that was shown, with its times."""

from __future__ import annotations

from typing import Any

from agents.importing.conversations import conversations


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
    hats, empty = conversations(CHATGPT, "conversations.json")
    assert (hats.name, empty.name, list(empty.turns)) == ("c-1", "c-2", [])
    assert list(hats.turns) == [
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
    (found,) = conversations([talk], "conversations.json")
    assert found.name == "u-1"
    assert [turn for _, turn in found.turns] == [
        {"role": "user", "text": "Where?\n(document)\norder.txt\ntwo hats", "at": "2026-05-05T14:00:00Z"},
        {"role": "assistant", "text": "On its way.", "at": "2026-05-05T14:01:00Z"},
        {"role": "user", "text": "(document)\nhat.png", "at": "2026-05-05T14:01:00Z"},
    ]
