"""The memory of an agent: a core that is always in the prompt, recent turns, an archive on disk.

Usable alone, without a model. Nothing heavy is loaded before it is needed.

    >>> from pager import Memory
    >>> with Memory.open(directory) as memory:
    ...     seat = memory.archive("prefers window seats", key="seat", tags=["travel"])
    ...     memory.search_archive("which seat?")[0].page_id == seat.id
    True
"""

from __future__ import annotations

from pager.chroma_embedder import ChromaEmbedder
from pager.clock import Clock, SystemClock
from pager.embedder import Embedder, EmbedderUnavailable
from pager.epochs import Setup
from pager.errors import CallsOpen, InUse, NewerFile, NotFound, PagerError, Refused, StorageError, WindowTooSmall
from pager.inbox import leave, waiting
from pager.index import IndexUnavailable, VectorIndex
from pager.limits import Limits
from pager.memory import Memory
from pager.prefetch import Prefetch
from pager.reading import Reading
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
    Stay,
    Usage,
)

__all__ = [
    "Block", "BlockSpec", "Call", "CallsOpen", "ChromaEmbedder", "Clock", "Embedder", "EmbedderUnavailable", "Fact",
    "Hit", "InUse", "IndexUnavailable", "Limits", "Memory", "Movement", "NewerFile", "NotFound", "PageText",
    "PagerError", "Prefetch", "Problem", "Reading", "Refused", "Request", "Setup", "Stay", "StorageError",
    "SystemClock", "Usage", "VectorIndex", "WindowTooSmall", "leave", "waiting",
]  # fmt: skip
