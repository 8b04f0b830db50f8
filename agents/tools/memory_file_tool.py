"""The provider's own memory tool as one of the agent's. The provider defines it; `pager.memory_tool` carries out its
commands."""

from __future__ import annotations

from agents.tools.functions import Tool
from pager import Memory
from pager.memory_tool.files import DEFINITION, MemoryFiles


def memory_file_tool(memory: Memory) -> Tool:
    """Return the tool over one memory. Its definition is `DEFINITION`."""
    return Tool(
        DEFINITION["name"], "", {}, MemoryFiles(memory).run, memory=True, idempotent=True, of_provider=DEFINITION
    )
