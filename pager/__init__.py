"""The memory of an agent: a core that is always in the prompt, recent turns, an archive on disk.

Usable alone, without an agent and without a model. Nothing heavy is loaded before it is needed.

    >>> from pager import Memory
    >>> with Memory.open(directory) as memory:
    ...     seat = memory.archive("prefers window seats", key="seat", tags=["travel"])
    ...     memory.search_archive("which seat?")[0].page_id == seat.id
    True

Start with `Memory` (one writer), `MemoryReader` (any number of readers) and `Home` (where agents live). Every type that
their signatures name is exported here. The rooms below them are described in ARCHITECTURE.md.
"""

from pager.checklist import Checklist
from pager.clock import Clock, Moment, SystemClock
from pager.conversation.conversation import Content
from pager.errors import (
    InUseError,
    NeedsApprovalError,
    NewerFormatError,
    NotFoundError,
    OpenCallsError,
    PagerError,
    RejectedError,
    StorageError,
    WindowTooSmallError,
)
from pager.home import CommandOutcome, CommandState, Home
from pager.inspect import History, Inspection
from pager.limits import Limits
from pager.markup import one_line, shortened
from pager.memory import INTERRUPTED, Memory
from pager.mounts import Mount
from pager.prompt.state import CountTokens
from pager.prompt.summary import Summarize, SummaryRequest
from pager.reader import MemoryReader
from pager.safety.sources import Source
from pager.store.files import AgentFiles
from pager.store.rows import Epoch, FactSize, Pin
from pager.tiers import EmbedderChoice
from pager.tiers.prefetch import Prefetch
from pager.tokens import total as count_tokens
from pager.tokens.counter import Counter, Estimate
from pager.types import (
    Block,
    BlockSpec,
    Call,
    Counts,
    Fact,
    FactCounts,
    FactUse,
    Hit,
    Json,
    Movement,
    PageText,
    Problem,
    Record,
    Request,
    Residency,
    SessionUse,
    Skill,
    SkillSpec,
    SourceForgotten,
    UntrustedWrites,
    Usage,
    Withdrawn,
)
from pager.upkeep.inbox import pending_commands, send_command
from pager.upkeep.place import Place
from pager.vectors.chroma_embedder import ChromaEmbedder, EmbedderConfigError
from pager.vectors.embedder import Embedder, EmbedderUnavailableError
from pager.vectors.index import ChromaServer, IndexUnavailableError, Stop

__all__ = [
    "INTERRUPTED", "AgentFiles", "Block", "BlockSpec", "Call", "Checklist", "ChromaEmbedder", "ChromaServer", "Clock",
    "CommandOutcome", "CommandState", "Content", "CountTokens", "Counter", "Counts", "Embedder", "EmbedderChoice",
    "EmbedderConfigError", "EmbedderUnavailableError", "Epoch", "Estimate", "Fact", "FactCounts", "FactSize",
    "FactUse", "History", "Hit", "Home", "InUseError", "IndexUnavailableError", "Inspection", "Json", "Limits",
    "Memory", "MemoryReader", "Moment", "Mount", "Movement", "NeedsApprovalError", "NewerFormatError", "NotFoundError",
    "OpenCallsError", "PageText", "PagerError", "Pin", "Place", "Prefetch", "Problem", "Record", "RejectedError",
    "Request", "Residency", "SessionUse", "Skill", "SkillSpec", "Source", "SourceForgotten", "Stop", "StorageError",
    "Summarize", "SummaryRequest", "SystemClock", "UntrustedWrites", "Usage", "WindowTooSmallError", "Withdrawn",
    "count_tokens", "one_line", "pending_commands", "send_command", "shortened",
]  # fmt: skip
