"""The shape of a whole request, outside its messages: top-level fields, tools and their schemas, thinking."""

from __future__ import annotations

import re
from typing import Any

from tests.standin.errors import Rejected
from tests.standin.shapes import (
    CACHE_CONTROL,
    MARK,
    TOOL_NAME,
    Check,
    Shape,
    Union,
    at_least,
    content,
    flag,
    one_of,
    or_null,
    text,
    texts,
    thing,
    things,
)

THINKING = Union(
    {
        "enabled": Shape(
            {"type": text, "budget_tokens": at_least(1_024)},
            {"display": or_null(one_of("summarized", "omitted"))},
        ),
        "adaptive": Shape({"type": text}, {"display": or_null(one_of("summarized", "omitted"))}),
        "between_tools": Shape({"type": text}),
        "disabled": Shape({"type": text}),
    }
)
TOOL_CHOICE = Union(
    {
        "auto": Shape({"type": text}, {"disable_parallel_tool_use": flag}),
        "any": Shape({"type": text}, {"disable_parallel_tool_use": flag}),
        "tool": Shape({"type": text, "name": text}, {"disable_parallel_tool_use": flag}),
        "none": Shape({"type": text}),
    }
)
_EFFORT = or_null(one_of("low", "medium", "high", "xhigh", "max"))
BOTH: dict[str, Check] = {  # what creating a message and counting its tokens may both be given
    "cache_control": or_null(CACHE_CONTROL),
    "output_config": Shape({}, {"effort": _EFFORT, "format": or_null(thing)}),
    "speed": or_null(one_of("standard", "fast")),
    "system": content,
    "thinking": THINKING,
    "tool_choice": TOOL_CHOICE,
    "tools": things,
}
COUNT = Shape({"model": text, "messages": things}, {**BOTH, "user_profile_id": text})
CREATE = Shape(
    {**COUNT.needs, "max_tokens": at_least(1)},
    {
        **COUNT.may,
        "container": or_null(content),
        "diagnostics": or_null(thing),
        "inference_geo": or_null(text),
        "metadata": Shape({}, {"user_id": or_null(text)}),
        "service_tier": one_of("auto", "standard_only"),
        "stop_sequences": texts,
        "stream": flag,
    },
)
CUSTOM_TOOL = Shape(
    {"name": TOOL_NAME, "input_schema": thing},
    {
        **MARK,
        "allowed_callers": texts,
        "defer_loading": flag,
        "description": text,
        "eager_input_streaming": or_null(flag),
        "input_examples": things,
        "strict": flag,
        "type": or_null(one_of("custom")),
    },
)
MEMORY_TOOL_TYPE = "memory_20250818"
MEMORY_TOOL = Shape(
    {"name": one_of("memory"), "type": one_of(MEMORY_TOOL_TYPE)},
    {**MARK, "allowed_callers": texts, "defer_loading": flag, "input_examples": things, "strict": flag},
)
# Other tools that the provider defines: a prefix of their type -> their name.
PROVIDER_TOOLS = {
    "bash_2": "bash",
    "text_editor_20250124": "str_replace_editor",
    "text_editor_2": "str_replace_based_edit_tool",
    "code_execution_2": "code_execution",
    "web_search_2": "web_search",
    "web_fetch_2": "web_fetch",
    "tool_search_tool_regex": "tool_search_tool_regex",
    "tool_search_tool_bm25": "tool_search_tool_bm25",
}
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_PROPERTY = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")
_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_OF_NAMED = ("properties", "$defs", "definitions", "patternProperties")


def check_params(params: Any, *, creates: bool) -> None:
    """Everything but the messages and the system blocks."""
    if not isinstance(params, dict):
        raise Rejected("Input should be a valid dictionary")
    try:
        (CREATE if creates else COUNT)("", params)
    except Rejected as error:  # the place of a top-level field has no dot before it
        raise Rejected(error.message.lstrip(".")) from None
    if not params["model"]:
        raise Rejected("model: String should have at least 1 character")
    for index, sequence in enumerate(params.get("stop_sequences") or ()):
        if not sequence.strip():
            raise Rejected(f"stop_sequences.{index}: each stop sequence must contain non-whitespace")
    _check_tools(params.get("tools") or [])
    _check_choice(params)


def _check_choice(params: dict[str, Any]) -> None:
    thinking, choice = params.get("thinking"), params.get("tool_choice")
    if thinking and thinking["type"] == "enabled" and thinking["budget_tokens"] >= params.get("max_tokens", 1e9):
        raise Rejected("`max_tokens` must be greater than `thinking.budget_tokens`")
    if not choice:
        return
    tools = params.get("tools")
    if not tools:
        raise Rejected("tool_choice: may only be specified while providing tools")
    if choice["type"] == "tool" and choice["name"] not in {tool.get("name") for tool in tools}:
        raise Rejected(f"Tool '{choice['name']}' not found in provided tools")
    if choice["type"] in {"any", "tool"} and thinking and thinking["type"] != "disabled":
        raise Rejected("Thinking may not be enabled when tool_choice forces tool use.")


def _check_tools(tools: list[Any]) -> None:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        thing(f"tools.{index}", tool)
        kind = tool.get("type") or "custom"
        if kind == "custom":
            CUSTOM_TOOL(f"tools.{index}.custom", tool)
            check_schema(f"tools.{index}.custom.input_schema", tool["input_schema"])
        elif kind == MEMORY_TOOL_TYPE:
            MEMORY_TOOL(f"tools.{index}.{kind}", tool)
        else:
            _check_provider_tool(f"tools.{index}", tool, kind)
        if tool["name"] in seen:
            raise Rejected("tools: Tool names must be unique.")
        seen.add(tool["name"])


def _check_provider_tool(at: str, tool: dict[str, Any], kind: object) -> None:
    names = [name for prefix, name in PROVIDER_TOOLS.items() if isinstance(kind, str) and kind.startswith(prefix)]
    if not names:
        raise Rejected(f"{at}: Input tag {kind!r} found using 'type' does not match any of the expected tags")
    if tool.get("name") != names[0]:
        raise Rejected(f"{at}.{kind}.name: Input should be {names[0]!r}")
    for name in ("input_schema", "description"):
        if name in tool:
            raise Rejected(f"{at}.{kind}.{name}: Extra inputs are not permitted")
    or_null(CACHE_CONTROL)(f"{at}.{kind}.cache_control", tool.get("cache_control"))


def check_schema(at: str, schema: dict[str, Any]) -> None:
    """What the API says about a tool's schema, as far as it can be known without a validator of JSON schemas."""
    if "type" not in schema:
        raise Rejected(f"{at}.type: Field required")
    if schema["type"] != "object":
        raise Rejected(f"{at}.type: Input should be 'object'")
    if any(name in schema for name in ("oneOf", "allOf", "anyOf")):
        raise Rejected(f"{at}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    for name in schema.get("properties") or {}:
        if not _PROPERTY.fullmatch(name):
            raise Rejected(f"{at}.properties: Property keys should match pattern '{_PROPERTY.pattern}'")
    if not _is_schema(schema):
        raise Rejected(f"{at}: JSON schema is invalid. It must match JSON Schema draft 2020-12")


def _is_schema(schema: object) -> bool:
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    required = schema.get("required", [])
    nested = [schema[name] for name in ("items", "not", "additionalProperties") if name in schema]
    for name in _OF_SCHEMAS:
        several = schema.get(name, [True])
        if not isinstance(several, list) or not several:
            return False
        nested += several
    for name in _OF_NAMED:
        named = schema.get(name, {})
        if not isinstance(named, dict):
            return False
        nested += named.values()
    return (
        all(isinstance(kind, str) and kind in _TYPES for kind in kinds)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
        and len(set(required)) == len(required)
        and isinstance(schema.get("enum", []), list)
        and all(_is_schema(each) for each in nested)
    )
