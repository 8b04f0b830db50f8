"""An agent's memory as tools for others: what `selfpager mcp` serves. Reading goes beside the running agent; writing
needs the agent's directory for itself.

The tools are those of the agent, and `core`, which an agent needs no tool for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from agents.tools.functions import Tool
from agents.tools.memory_tools import MemoryTools
from pager import markup
from pager.clock import Clock
from pager.errors import RejectedError
from pager.limits import Limits
from pager.memory import Memory
from pager.reader import MemoryReader
from pager.types import Hit, PageText

READS = ("search_archive", "search_recall", "page_in")
ACTOR = "mcp"  # not the agent: what is written here is told to it
PIECE_CHARS = 20_000


def tools(memory: MemoryReader, clock: Clock) -> list[Tool]:
    """What can be done with this memory: everything, or of a reader what changes nothing."""
    if isinstance(memory, Memory):
        return [_core(memory), *MemoryTools(memory, clock, actor=ACTOR).tools()]
    shared = MemoryTools(cast(Memory, _Reader(memory)), clock, actor=ACTOR)
    return [_core(memory), *(tool for tool in shared.tools() if tool.name in READS)]


def _core(memory: MemoryReader) -> Tool:
    def core() -> str:
        """Read the core blocks: what the agent always has in view."""
        return markup.core(memory.core())

    return Tool.of(core)


@dataclass(frozen=True, slots=True)
class _Reader:
    """A reader where the tools expect a memory: the same answers, and no row in any ledger."""

    reading: MemoryReader

    @property
    def limits(self) -> Limits:
        return self.reading.history.limits_at() or Limits.for_window()

    def search_archive(self, query: str, *, actor: str, **options: Any) -> list[Hit]:
        return self.reading.search_archive(query, **options)

    def search_recall(self, query: str, *, actor: str, limit: int, after: str | None, before: str | None) -> list[Hit]:
        return self.reading.search_recall(query, limit=limit, after=after, before=before)

    def page_in(self, page_id: str, *, pin: bool, offset: int, actor: str) -> PageText:
        if pin:
            raise RejectedError("this memory is only read here: nothing can be pinned. Read the page without pin.")
        text = self.reading.page(page_id)
        if not 0 <= offset <= len(text):
            raise RejectedError(f"offset {offset} is outside of {page_id}, which has {len(text)} characters from 0.")
        end = min(len(text), offset + PIECE_CHARS)
        return PageText(page_id, text[offset:end], offset, end if end < len(text) else None, len(text))
