"""The memory of an agent: a core that is always in the prompt, recent turns, an archive on disk.

Usable alone, without a model. Nothing heavy is loaded before it is needed.

    >>> from pager import Memory
    >>> with Memory.open(directory) as memory:
    ...     seat = memory.archive("prefers window seats", key="seat", tags=["travel"])
    ...     memory.search_archive("which seat?")[0].page_id == seat.id
    True
"""

from __future__ import annotations

from pager.clock import Clock, SystemClock
from pager.errors import (
    InUseError,
    NewerFormatError,
    NotFoundError,
    OpenCallsError,
    PagerError,
    RejectedError,
    StorageError,
    WindowTooSmallError,
)
from pager.limits import Limits
from pager.memory import Memory
from pager.prompt.epochs import Setup
from pager.reader import MemoryReader
from pager.tiers.prefetch import Prefetch
from pager.types import (
    Block,
    BlockSpec,
    Call,
    Fact,
    Hit,
    Movement,
    PageText,
    Problem,
    Request,
    Residency,
    Usage,
)
from pager.upkeep.inbox import pending_commands, send_command
from pager.vectors.chroma_embedder import ChromaEmbedder
from pager.vectors.embedder import Embedder, EmbedderUnavailableError
from pager.vectors.index import IndexUnavailableError, VectorIndex

__all__ = [
    "Block",
    "BlockSpec",
    "Call",
    "ChromaEmbedder",
    "Clock",
    "Embedder",
    "EmbedderUnavailableError",
    "Fact",
    "Hit",
    "InUseError",
    "IndexUnavailableError",
    "Limits",
    "Memory",
    "MemoryReader",
    "Movement",
    "NewerFormatError",
    "NotFoundError",
    "OpenCallsError",
    "PageText",
    "PagerError",
    "Prefetch",
    "Problem",
    "RejectedError",
    "Request",
    "Residency",
    "Setup",
    "StorageError",
    "SystemClock",
    "Usage",
    "VectorIndex",
    "WindowTooSmallError",
    "pending_commands",
    "send_command",
]  # fmt: skip
