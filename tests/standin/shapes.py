"""The shapes of what may be sent: which fields, of which kind, and no others.

Written as tables, which `tests/test_standin.py` compares with the SDK's own types. Everything here looks at one
piece alone; what must agree between the pieces of a request is in `rules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.standin.errors import Rejected

Check = Callable[[str, Any], None]


def text(at: str, value: object) -> None:
    if not isinstance(value, str):
        raise Rejected(f"{at}: Input should be a valid string")


def flag(at: str, value: object) -> None:
    if not isinstance(value, bool):
        raise Rejected(f"{at}: Input should be a valid boolean")


def thing(at: str, value: object) -> None:
    if not isinstance(value, dict):
        raise Rejected(f"{at}: Input should be an object")


def things(at: str, value: object) -> None:
    if not isinstance(value, list):
        raise Rejected(f"{at}: Input should be a valid array")


def texts(at: str, value: Any) -> None:
    things(at, value)
    for index, each in enumerate(value):
        text(f"{at}.{index}", each)


def content(at: str, value: object) -> None:
    if not isinstance(value, (str, list)):
        raise Rejected(f"{at}: Input should be a valid string or a valid array")


def at_least(least: int) -> Check:
    def check(at: str, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Rejected(f"{at}: Input should be a valid integer")
        if value < least:
            raise Rejected(f"{at}: must be greater than or equal to {least}")

    return check


def one_of(*allowed: str) -> Check:
    def check(at: str, value: object) -> None:
        if value not in allowed:
            raise Rejected(f"{at}: Input should be {' or '.join(map(repr, allowed))}")

    return check


def matching(pattern: str) -> Check:
    compiled = re.compile(pattern)

    def check(at: str, value: Any) -> None:
        text(at, value)
        if not compiled.fullmatch(value):
            raise Rejected(f"{at}: String should match pattern '{pattern}'")

    return check


def or_null(check: Check) -> Check:
    def either(at: str, value: object) -> None:
        if value is not None:
            check(at, value)

    return either


@dataclass(frozen=True)
class Shape:
    """An object with these fields. `needs` and `may` give each field's check."""

    needs: Mapping[str, Check]
    may: Mapping[str, Check] = field(default_factory=dict)

    def __call__(self, at: str, value: Any) -> None:
        thing(at, value)
        for name in self.needs:
            if name not in value:
                raise Rejected(f"{at}.{name}: Field required")
        for name, each in value.items():
            check = self.needs.get(name) or self.may.get(name)
            if check is None:
                raise Rejected(f"{at}.{name}: Extra inputs are not permitted")
            check(f"{at}.{name}", each)


@dataclass(frozen=True)
class Union:
    """Objects told apart by their `type`."""

    shapes: Mapping[str, Shape]

    def __call__(self, at: str, value: Any) -> None:
        thing(at, value)
        if "type" not in value:
            raise Rejected(f"{at}.type: Field required")
        shape = self.shapes.get(value["type"]) if isinstance(value["type"], str) else None
        if shape is None:
            expected = ", ".join(repr(name) for name in self.shapes)
            raise Rejected(
                f"{at}: Input tag {value['type']!r} found using 'type' does not match any of the expected tags:"
                f" {expected}"
            )
        shape(f"{at}.{value['type']}", value)


CACHE_CONTROL = Shape({"type": one_of("ephemeral")}, {"ttl": one_of("5m", "1h")})
MARK: dict[str, Check] = {"cache_control": or_null(CACHE_CONTROL)}
CALL_ID = matching(r"^[a-zA-Z0-9_-]+$")
SERVER_CALL_ID = matching(r"^srvtoolu_[a-zA-Z0-9_]+$")
TOOL_NAME = matching(r"^[a-zA-Z0-9_-]{1,128}$")
CALLER = Union(
    {
        "direct": Shape({"type": text}),
        "code_execution_20250825": Shape({"type": text, "tool_id": text}),
        "code_execution_20260120": Shape({"type": text, "tool_id": text}),
    }
)
IMAGE_SOURCE = Union(
    {
        "base64": Shape(
            {
                "type": text,
                "data": text,
                "media_type": one_of("image/jpeg", "image/png", "image/gif", "image/webp"),
            }
        ),
        "url": Shape({"type": text, "url": text}),
        "file": Shape({"type": text, "file_id": text}),
    }
)
DOCUMENT_SOURCE = Union(
    {
        "base64": Shape({"type": text, "data": text, "media_type": one_of("application/pdf")}),
        "text": Shape({"type": text, "data": text, "media_type": one_of("text/plain")}),
        "content": Shape({"type": text, "content": content}),
        "url": Shape({"type": text, "url": text}),
        "file": Shape({"type": text, "file_id": text}),
    }
)
CITATIONS = Shape({}, {"enabled": flag})
SERVER_TOOLS = {  # the name in a server_tool_use -> the type of the block that answers it
    "web_search": "web_search_tool_result",
    "web_fetch": "web_fetch_tool_result",
    "code_execution": "code_execution_tool_result",
    "bash_code_execution": "bash_code_execution_tool_result",
    "text_editor_code_execution": "text_editor_code_execution_tool_result",
    "tool_search_tool_regex": "tool_search_tool_result",
    "tool_search_tool_bm25": "tool_search_tool_result",
}
SERVER_RESULTS = frozenset(SERVER_TOOLS.values())


def _answer(*, caller: bool) -> Shape:
    """The block in which a server tool's result comes."""
    may = {**MARK, "caller": CALLER} if caller else MARK
    return Shape({"type": text, "tool_use_id": SERVER_CALL_ID, "content": _any}, may)


def _any(at: str, value: object) -> None:
    """Opaque: made by the server, sent back as it came."""


BLOCKS: dict[str, Shape] = {
    "text": Shape({"type": text, "text": text}, {**MARK, "citations": or_null(things)}),
    "image": Shape({"type": text, "source": IMAGE_SOURCE}, {**MARK, "transformations": or_null(thing)}),
    "document": Shape(
        {"type": text, "source": DOCUMENT_SOURCE},
        {**MARK, "citations": or_null(CITATIONS), "context": or_null(text), "title": or_null(text)},
    ),
    "search_result": Shape(
        {"type": text, "content": things, "source": text, "title": text}, {**MARK, "citations": CITATIONS}
    ),
    "thinking": Shape({"type": text, "thinking": text, "signature": text}),
    "redacted_thinking": Shape({"type": text, "data": text}),
    "tool_use": Shape(
        {"type": text, "id": CALL_ID, "name": TOOL_NAME, "input": thing},
        {**MARK, "caller": CALLER, "toolset_name": or_null(text)},
    ),
    "tool_result": Shape(
        {"type": text, "tool_use_id": CALL_ID},
        {**MARK, "content": content, "is_error": flag, "toolset_name": or_null(text)},
    ),
    "server_tool_use": Shape(
        {"type": text, "id": SERVER_CALL_ID, "name": one_of(*SERVER_TOOLS), "input": thing},
        {**MARK, "caller": CALLER},
    ),
    "web_search_tool_result": _answer(caller=True),
    "web_fetch_tool_result": _answer(caller=True),
    "code_execution_tool_result": _answer(caller=False),
    "bash_code_execution_tool_result": _answer(caller=False),
    "text_editor_code_execution_tool_result": _answer(caller=False),
    "tool_search_tool_result": _answer(caller=False),
    "container_upload": Shape({"type": text, "file_id": text}, MARK),
}
IN_RESULT = Union(
    {
        **{name: BLOCKS[name] for name in ("text", "image", "search_result", "document")},
        "tool_reference": Shape({"type": text, "tool_name": text}, MARK),
    }
)
IN_MESSAGE = Union(BLOCKS)
ONLY_ASSISTANT = frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use"}) | SERVER_RESULTS
ONLY_USER = frozenset({"tool_result", "image", "document", "search_result", "container_upload"})
