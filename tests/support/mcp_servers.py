"""MCP servers to be unpleasant with, as programs: `python -m tests.support.mcp_servers [PORT]`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import MCPServer

CHOICE: dict[str, Any] = {
    "type": "object",
    "oneOf": [{"properties": {"number": {"type": "integer"}}, "required": ["number"]}, {"$ref": "#/$defs/named"}],
    "$defs": {"named": {"properties": {"name": {"type": "string"}}, "required": ["name"], "type": "object"}},
}
ODATA: dict[str, Any] = {
    "type": "object",
    "properties": {"$top": {"type": "integer"}, "_top": {"type": "string"}, "@odata.id": {}},
    "required": ["$top"],
}
# A search of it takes time that doubles with each "a", and stops every thread meanwhile.
SLOW: dict[str, Any] = {"type": "object", "properties": {"asked": {"properties": {"name": {"pattern": "^(a+)+$"}}}}}
served = MCPServer("odd")


@served.tool(annotations=types.ToolAnnotations(read_only_hint=True))
def process() -> int:
    """The number of this process."""
    return os.getpid()


@served.tool()
def go(reason: str) -> str:
    """End this process in the middle of a call."""
    print(f"I go: {reason}", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(3)


@served.tool(annotations=types.ToolAnnotations(idempotent_hint=True))
def stumble(marker: str) -> str:
    """End this process at the first call only."""
    if not Path(marker).exists():
        Path(marker).touch()
        os._exit(3)
    return "done at the second call"


@served.tool()
async def sleep() -> str:
    """Never answer."""
    await asyncio.Event().wait()
    return ""


@served.tool()
def echo(text: str) -> str:
    """What was said."""
    return text


async def _listed(_: ServerRequestContext[Any], __: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(name="either", description="Find it.", input_schema=CHOICE, output_schema=SLOW),
            types.Tool(name="odata/list", description="List it.", input_schema=ODATA),
            types.Tool(name="", input_schema={"type": "object"}),
        ]
    )


async def _called(_: ServerRequestContext[Any], asked: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[], structured_content={"asked": asked.arguments})


def main(arguments: list[str]) -> None:
    if arguments == ["structured"]:
        import anyio
        from mcp.server.stdio import stdio_server

        async def run() -> None:
            server = Server[Any]("structured", on_list_tools=_listed, on_call_tool=_called)
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())

        anyio.run(run)
    else:
        served.run()


if __name__ == "__main__":
    main(sys.argv[1:])
