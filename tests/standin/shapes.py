"""The shapes of what may be sent, read from the SDK's own types: which fields, of which kind, and no others.

Everything here looks at one piece alone; what must agree between the pieces of a request is in `rules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import anthropic.types as sdk
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsBase
from typing_extensions import is_typeddict

from tests.standin.errors import Rejected

Check = Callable[[str, Any], None]
KINDS: dict[Any, tuple[type, str]] = {
    str: (str, "a valid string"),
    bool: (bool, "a valid boolean"),
    int: (int, "a valid integer"),
    float: (float, "a valid number"),
    dict: (dict, "an object"),
    list: (list, "a valid array"),
}
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
ONLY_ASSISTANT = frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use"}) | SERVER_RESULTS
ONLY_USER = frozenset({"tool_result", "image", "document", "search_result", "container_upload"})


def of_kind(hint: Any) -> Check:
    kind, name = KINDS[hint]

    def check(at: str, value: object) -> None:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise Rejected(f"{at}: Input should be {name}")

    return check


def anything(at: str, value: object) -> None:
    """Opaque: made by the server, sent back as it came; or looked at elsewhere."""


def at_least(least: int) -> Check:
    def check(at: str, value: Any) -> None:
        of_kind(int)(at, value)
        if value < least:
            raise Rejected(f"{at}: must be greater than or equal to {least}")

    return check


def one_of(*allowed: Any) -> Check:
    def check(at: str, value: object) -> None:
        if value not in allowed:
            raise Rejected(f"{at}: Input should be {' or '.join(map(repr, allowed))}")

    return check


def matching(pattern: str) -> Check:
    def check(at: str, value: Any) -> None:
        of_kind(str)(at, value)
        if not re.fullmatch(pattern, value):
            raise Rejected(f"{at}: String should match pattern '{pattern}'")

    return check


def each(check_item: Check) -> Check:
    def check(at: str, value: Any) -> None:
        of_kind(list)(at, value)
        for index, item in enumerate(value):
            check_item(f"{at}.{index}", item)

    return check


@dataclass(frozen=True)
class Shape:
    """An object with these fields: the check of each, and those that it needs."""

    fields: Mapping[str, Check]
    needs: frozenset[str]

    def __call__(self, at: str, value: Any) -> None:
        of_kind(dict)(at, value)
        at = f"{at}." if at else ""
        for name in self.fields:
            if name in self.needs and name not in value:
                raise Rejected(f"{at}{name}: Field required")
        for name, field in value.items():
            if name not in self.fields:
                raise Rejected(f"{at}{name}: Extra inputs are not permitted")
            self.fields[name](f"{at}{name}", field)


@dataclass(frozen=True)
class Tagged:
    """Objects told apart by their `type`. A tool without one is `custom`."""

    shapes: Mapping[str, Check]

    def __call__(self, at: str, value: Any) -> None:
        of_kind(dict)(at, value)
        tag = value.get("type") or ("custom" if "custom" in self.shapes else None)
        if tag is None:
            raise Rejected(f"{at}.type: Field required")
        if not isinstance(tag, str) or tag not in self.shapes:
            expected = ", ".join(map(repr, self.shapes))
            raise Rejected(
                f"{at}: Input tag {tag!r} found using 'type' does not match any of the expected tags: {expected}"
            )
        self.shapes[tag](f"{at}.{tag}", value)


def shape(kind: Any) -> Shape:
    fields: dict[str, Check] = {}
    hints = get_type_hints(kind, include_extras=True)
    hints.pop("workspace_id", None)  # sent as a header
    if "messages" in hints:
        del hints["cache_control"]  # of a whole request: ours marks blocks
    answers = get_args(hints["type"])[0] if "type" in hints and "tool_use_id" in hints else None
    for name, hint in hints.items():
        if answers and get_args(answers)[0] in SERVER_RESULTS and name in ("tool_use_id", "content"):
            fields[name] = _SERVER_CALL_ID if name == "tool_use_id" else anything
        else:
            fields[name] = CLOSER.get((kind.__name__, name)) or check_of(hint)
    return Shape(fields, frozenset(name for name, hint in hints.items() if get_origin(hint) is Required))


@cache
def check_of(hint: Any) -> Check:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Required, NotRequired):
        return check_of(args[0])
    if origin is Literal:
        return one_of(*args)
    if origin is Union:
        return _either(args)
    if is_typeddict(hint):
        return shape(hint)
    if origin is None:
        return of_kind(hint) if hint in KINDS else anything
    return of_kind(dict) if origin is dict else each(check_of(args[0]))


def _either(hints: tuple[Any, ...]) -> Check:
    """Tagged objects, an object, an array or a plain value, as the value itself says; null where that is allowed."""
    typed = [hint for hint in hints if is_typeddict(hint)]
    checks = [check_of(hint) for hint in hints if hint not in typed and hint is not NoneType]
    if len(typed) == 1:
        checks.append(check_of(typed[0]))
    elif typed:
        checks.append(Tagged({_tag(hint): check_of(hint) for hint in typed}))

    def check(at: str, value: object) -> None:
        if value is None and NoneType in hints:
            return None
        errors: list[Rejected] = []
        for each_check in checks:
            try:
                return each_check(at, value)
            except Rejected as error:
                errors.append(error)
        raise max(errors, key=lambda error: error.message.partition(": ")[0].count("."))  # what came furthest

    return check


def _tag(kind: Any) -> str:
    hint = get_type_hints(kind).get("type")
    literal = next((each for each in (hint, *get_args(hint)) if get_origin(each) is Literal), None)
    return get_args(literal)[0] if literal else kind.__name__


# Fields that the API looks at more closely than the SDK's types do, and what is looked at elsewhere or nowhere.
_TOOL_NAME, _CALL_ID = matching(r"^[a-zA-Z0-9_-]{1,128}$"), matching(r"^[a-zA-Z0-9_-]+$")
_content = check_of(Union[str, list])  # noqa: UP007  as the SDK writes it
_SERVER_CALL_ID = matching(r"^srvtoolu_[a-zA-Z0-9_]+$")
CLOSER: dict[tuple[str, str], Check] = {
    ("MessageCreateParamsBase", "max_tokens"): at_least(1),
    ("MessageCreateParamsBase", "messages"): of_kind(list),
    ("MessageCreateParamsBase", "system"): _content,
    ("MessageCountTokensParams", "messages"): of_kind(list),
    ("MessageCountTokensParams", "system"): _content,
    ("ThinkingConfigEnabledParam", "budget_tokens"): at_least(1_024),
    ("ToolParam", "name"): _TOOL_NAME,
    ("ToolUseBlockParam", "name"): _TOOL_NAME,
    ("ToolUseBlockParam", "id"): _CALL_ID,
    ("ToolResultBlockParam", "tool_use_id"): _CALL_ID,
    ("ServerToolUseBlockParam", "id"): _SERVER_CALL_ID,
    ("Base64ImageSourceParam", "data"): of_kind(str),  # the SDK also takes files, which it sends as text
    ("Base64PDFSourceParam", "data"): of_kind(str),
}
CREATE = Shape({**shape(MessageCreateParamsBase).fields, "stream": of_kind(bool)}, shape(MessageCreateParamsBase).needs)
COUNT = shape(MessageCountTokensParams)
IN_MESSAGE = check_of(sdk.ContentBlockParam)
IN_SYSTEM = Tagged({"text": check_of(sdk.TextBlockParam)})
MESSAGE = Shape({"role": of_kind(str), "content": _content}, frozenset({"role", "content"}))
