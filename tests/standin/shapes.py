"""The shapes of what may be sent: the SDK's own types, which pydantic checks with no other fields and no conversions.

Everything here looks at one piece alone; what must agree between the pieces of a request is in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import anthropic.types as sdk
from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsBase
from anthropic.types.web_search_result_block_param import WebSearchResultBlockParam
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict, is_typeddict

from tests.standin.errors import Rejected

Check = Callable[[str, Any], None]
PLAIN = (str, bool, int, float)
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

# Fields that the API looks at more closely than the SDK's types do, and what is looked at elsewhere or nowhere.
_ToolName, _CallId, _ServerCallId = (
    Annotated[str, Field(pattern=pattern)]
    for pattern in (r"^[a-zA-Z0-9_-]{1,128}$", r"^[a-zA-Z0-9_-]+$", r"^srvtoolu_[a-zA-Z0-9_]+$")
)
CLOSER: dict[tuple[str, str], Any] = {
    ("MessageCreateParamsBase", "max_tokens"): Required[Annotated[int, Field(ge=1)]],
    ("MessageCreateParamsBase", "messages"): Required[list[Any]],
    ("MessageCreateParamsBase", "system"): str | list[Any],
    ("MessageCountTokensParams", "messages"): Required[list[Any]],
    ("MessageCountTokensParams", "system"): str | list[Any],
    ("ThinkingConfigEnabledParam", "budget_tokens"): Required[Annotated[int, Field(ge=1_024)]],
    ("ToolParam", "name"): Required[_ToolName],
    ("ToolParam", "type"): Literal["custom"],
    ("ToolUseBlockParam", "name"): Required[_ToolName],
    ("ToolUseBlockParam", "id"): Required[_CallId],
    ("ToolResultBlockParam", "tool_use_id"): Required[_CallId],
    ("ServerToolUseBlockParam", "id"): Required[_ServerCallId],
    ("Base64ImageSourceParam", "data"): Required[str],  # the SDK also takes files, which it sends as text
    ("Base64PDFSourceParam", "data"): Required[str],
}
NOT_HERE = ("workspace_id", "tools", "cache_control")  # of a request: a header; in `params`; ours marks blocks


def strict(hint: Any) -> Any:
    """Return a hint of the SDK as pydantic takes it: arrays are lists, and objects are told apart by their type."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Required, NotRequired):
        return origin[strict(args[0])]
    if is_typeddict(hint):
        return _shape(hint)
    if origin is Union:
        others = (strict(each) for each in args if not is_typeddict(each))
        objects: Any = tuple(strict(each) for each in args if is_typeddict(each))
        if len(objects) > 1:
            objects = (Annotated[Union[objects], Field(discriminator="type")],)  # noqa: UP007
        return Union[(*others, *objects)]
    if origin in (list, Iterable, Sequence):
        return list[strict(args[0])]
    return hint if origin is Literal or hint in (*PLAIN, type(None)) else dict if origin is dict else Any


@cache
def _shape(kind: Any) -> Any:
    """Return the same object, with the fields that are looked at more closely, and no others."""
    hints = get_type_hints(kind, include_extras=True)
    answers = get_args(hints["type"]) if "tool_use_id" in hints else ()
    fields = {name: CLOSER.get((kind.__name__, name)) or strict(hint) for name, hint in hints.items()}
    if answers and get_args(answers[0])[0] in SERVER_RESULTS:  # made by the server, sent back as it came
        fields |= {"tool_use_id": Required[_ServerCallId], "content": Required[Any]}
    made: Any = TypedDict(kind.__name__, fields, total=False)  # type: ignore[misc]
    made.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    return made


def check_of(hint: Any) -> Check:
    adapter = TypeAdapter[Any](hint)

    def check(at: str, value: Any) -> None:
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            worst = max(error.errors(), key=lambda each: len(each["loc"]))  # of several readings what came furthest
            place = ".".join(filter(None, (at, *(str(part) for part in worst["loc"] if "[" not in str(part)))))
            raise Rejected(f"{place}: {worst['msg']}") from None

    return check


def request(kind: Any, **more: Any) -> Check:
    hints = {name: hint for name, hint in get_type_hints(kind, include_extras=True).items() if name not in NOT_HERE}
    made: Any = TypedDict(kind.__name__, hints | more, total=False)  # type: ignore[misc]
    return check_of(_shape(made))


CREATE = request(MessageCreateParamsBase, stream=bool)
COUNT = request(MessageCountTokensParams)
TOOL = check_of(strict(sdk.ToolUnionParam))
IN_MESSAGE = check_of(strict(sdk.ContentBlockParam))
IN_SYSTEM = check_of(strict(sdk.TextBlockParam))
SEARCHED = check_of(strict(WebSearchResultBlockParam))
MESSAGE = check_of(_shape(TypedDict("Message", {"role": Required[str], "content": Required[str | list[Any]]})))
