"""What must agree in a request outside of its messages: top-level fields, tools and their schemas, thinking."""

from __future__ import annotations

import marshal
import re
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from tests.standin.errors import Rejected
from tests.standin.facts import frozen, remembered
from tests.standin.shapes import COUNT, CREATE, TOOL

PROPERTY = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")


def check_params(params: Any, *, creates: bool) -> None:
    if not isinstance(params, dict):
        raise Rejected("Input should be a valid dictionary")
    tools = params.get("tools")
    (CREATE if creates else COUNT)("", {name: value for name, value in params.items() if name != "tools"})
    if not params["model"]:
        raise Rejected("model: String should have at least 1 character")
    for index, sequence in enumerate(params.get("stop_sequences") or ()):
        if not sequence.strip():
            raise Rejected(f"stop_sequences.{index}: each stop sequence must contain non-whitespace")
    if tools is not None:
        _check_tools(frozen(tools))
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


@remembered
def _check_tools(raw: bytes) -> None:
    tools = marshal.loads(raw)
    if not isinstance(tools, list):
        raise Rejected("tools: Input should be a valid array")
    for index, tool in enumerate(tools):
        TOOL(f"tools.{index}", {"type": "custom", **tool} if isinstance(tool, dict) else tool)
        if "input_schema" in tool:
            _check_schema(f"tools.{index}.custom.input_schema", tool["input_schema"])
    names = [tool.get("name") for tool in tools]
    if len(set(names)) < len(names):
        raise Rejected("tools: Tool names must be unique.")


def _check_schema(at: str, schema: dict[str, Any]) -> None:
    if "type" not in schema:
        raise Rejected(f"{at}.type: Field required")
    if schema["type"] != "object":
        raise Rejected(f"{at}.type: Input should be 'object'")
    if any(name in schema for name in ("oneOf", "allOf", "anyOf")):
        raise Rejected(f"{at}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    for name in schema.get("properties") or {}:
        if not PROPERTY.fullmatch(name):
            raise Rejected(f"{at}.properties: Property keys should match pattern '{PROPERTY.pattern}'")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        raise Rejected(f"{at}: JSON schema is invalid. It must match JSON Schema draft 2020-12") from None
