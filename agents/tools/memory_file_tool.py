"""The provider's own memory tool as one of the agent's: its definition is the provider's, `pager.memory_tool.files` carries
its commands out."""

from __future__ import annotations

from agents.tools.functions import Json, Tool
from pager.memory import Memory
from pager.memory_tool.files import DEFINITION, MemoryFiles

NAMES = (DEFINITION["name"],)


class MemoryFileTool:
    """Made before the memory, whose prompt begins with its definition; `bind` joins the two."""

    _files: MemoryFiles

    def bind(self, memory: Memory) -> None:
        self._files = MemoryFiles(memory)

    def tools(self) -> list[Tool]:
        (name,) = NAMES
        return [Tool(name, "", {}, self._run, memory=True, idempotent=True, of_provider=DEFINITION)]

    def _run(self, command: Json) -> str:
        return self._files.run(command)


class NoMemoryTools:
    """An agent that cannot change its memory."""

    def bind(self, memory: Memory) -> None:
        """There is nothing to join."""

    def tools(self) -> list[Tool]:
        return []
