"""Our MCP client for the conformance suite, which names the server's address, the scenario and the calls to make."""

import json
import os
import sys
from contextlib import suppress
from typing import Any

from agents.config.tool_sections import ServerConfig
from agents.mcp.client import Connection, connected
from agents.tools.functions import ToolCallError

ARGUMENTS: dict[str, dict[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}
ECHO = "json_schema_echo"  # takes the schema of another tool as it was listed


def main() -> None:
    with connected(ServerConfig(url=sys.argv[-1]), seconds=20) as server:
        if os.environ.get("MCP_CONFORMANCE_SCENARIO") != "initialize":
            for name, arguments in calls(server):
                with suppress(ToolCallError):
                    print(name, server._call(name, arguments, repeatable=False, seconds=20))


def calls(server: Connection) -> list[tuple[str, dict[str, Any]]]:
    listed = {tool.name: tool for tool in server._tools}
    asked = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls")
    if asked:
        return [(each["name"], each["arguments"]) for each in asked]
    if ECHO in listed:
        return [(ECHO, {"schema": tool.input_schema}) for name, tool in listed.items() if name != ECHO]
    return [(name, ARGUMENTS.get(name, {})) for name in listed]


if __name__ == "__main__":
    main()
