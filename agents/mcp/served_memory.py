"""The tools that `selfpager mcp` serves: an agent's memory for other programs.

They are the agent's own tools, and `core`, for which the agent needs none. A reader runs beside the agent and offers
those that only read; a `Memory` needs the agent's directory for itself and offers all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from agents.tools.functions import Tool
from agents.tools.memory_tools import MemoryTools, ReadingTools
from pager.clock import Clock
from pager.errors import RejectedError
from pager.limits import Limits
from pager.memory import Memory
from pager.reader import MemoryReader
from pager.types import Block, Hit, PageText

CORE_FIELDS = ("name", "description", "value", "used_tokens", "limit_tokens", "read_only")
ACTOR = "mcp"  # not the agent, which is told of what is written here


def writing_tools(memory: Memory, clock: Clock) -> list[Tool]:
    """Return everything that the agent itself can do with its memory."""
    return [_core_tool(memory.core), *MemoryTools(memory, clock, actor=ACTOR).tools()]


def reading_tools(reader: MemoryReader, clock: Clock) -> list[Tool]:
    """Return the tools that change nothing, not even the ledger."""
    return [_core_tool(reader.core), *ReadingTools(_SilentMemory(reader), clock, actor=ACTOR).tools()]


def _core_tool(blocks: Callable[[], list[Block]]) -> Tool:
    def core() -> str:
        """Read the core blocks: what the agent always has in view."""
        shown = [{name: getattr(block, name) for name in CORE_FIELDS} for block in blocks()]
        return json.dumps(shown, ensure_ascii=False, indent=1)

    return Tool.of(core)


@dataclass(frozen=True, slots=True)
class _SilentMemory:
    """A `ReadableMemory` over a reader: nobody is written down as the actor, and nothing can be pinned."""

    reader: MemoryReader

    @property
    def limits(self) -> Limits:
        return self.reader.history.limits_at() or Limits.for_window()

    def search_archive(
        self, query: str, *, limit: int, as_of: str | None, tags: list[str] | None, after: str | None,
        before: str | None, actor: str,
    ) -> list[Hit]:  # fmt: skip
        return self.reader.search_archive(query, limit=limit, as_of=as_of, tags=tags, after=after, before=before)

    def search_recall(self, query: str, *, limit: int, after: str | None, before: str | None, actor: str) -> list[Hit]:
        return self.reader.search_recall(query, limit=limit, after=after, before=before)

    def page_in(self, page_id: str, *, pin: bool, offset: int, actor: str) -> PageText:
        if pin:
            raise RejectedError("this memory is read-only here, so nothing can be pinned. Read the page without pin.")
        return self.reader.read_page(page_id, offset)
