"""Our MCP server for the conformance suite: the tools of a memory, and those that the suite calls. The suite sends no
token, so nobody is asked for one; everything else is as `selfpager mcp --http` serves it."""

import sys
import tempfile
from http import HTTPStatus
from typing import Any

from agents.httpd import ForbiddenError, Scope, check_caller
from agents.mcp import server
from agents.tools.functions import Tool, ToolCallError
from pager import Memory, SystemClock

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "$defs": {"address": {
        "$anchor": "addressDef", "type": "object",
        "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
    }},
    "properties": {
        "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"}, "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": False,
}  # fmt: skip


def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


def test_error_handling() -> str:
    """Fail."""
    raise ToolCallError("This tool intentionally returns an error for testing")


def test_image_content() -> list[Any]:
    """Return an image."""
    return [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}]


def without_token(_: Any, scope: Scope) -> tuple[HTTPStatus, str] | None:
    try:
        check_caller(scope)
    except ForbiddenError as error:
        return HTTPStatus.FORBIDDEN, str(error)
    return None


def main() -> None:
    setattr(server._Guarded, "_refused", without_token)  # noqa: B010
    functions = [test_simple_text, test_error_handling, test_image_content]
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        tools = [*server.memory_tools(memory, SystemClock()), *map(Tool.of, functions)]
        tools.append(Tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", SCHEMA, str))
        server.serve_http("judged", tools, 0, "no-client-sends-this", lambda url: print(url, flush=True))


if __name__ == "__main__":
    sys.exit(main())
