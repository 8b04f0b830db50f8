"""The three tiers of a memory, and what moves between them.

Promises that a move is one transaction and is in the ledger.

`core` holds the blocks that are always in the prompt, `recall` the steps, `archive` the facts, `skills` the
instructions that are pages; `pages` reads any of them by id and pins it, `prefetch` puts facts and steps into the
prompt unasked, `joint` asks both, `trust` takes back what came from a source. `Tiers` joins them for one agent. The
facades and the rooms `prompt`, `inspect` and `upkeep` may call this room.
"""

from dataclasses import dataclass
from inspect import getattr_static
from pathlib import Path
from typing import Any, Literal

from pager.clock import Clock
from pager.store import Store
from pager.tiers.archive import Archive
from pager.tiers.core import Core
from pager.tiers.pages import Pages
from pager.tiers.recall import Recall
from pager.tiers.trust import Trust
from pager.tokens.counter import Window
from pager.vectors.chroma.places import Directory, Server
from pager.vectors.embedder import Embedder
from pager.vectors.embedding import Embedding
from pager.vectors.facts import FactVectors
from pager.vectors.index import ChromaServer
from pager.vectors.indexing import Indexing
from pager.vectors.said import SaidVectors

EmbedderChoice = Embedder | Literal["default"] | None


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers of one agent."""

    core: Core
    archive: Archive
    recall: Recall
    pages: Pages
    trust: Trust
    index: Directory  # of the archive's vectors

    @classmethod
    def open(
        cls, store: Store, clock: Clock, window: Window, embedder: EmbedderChoice, *, directory: Path,
        server: ChromaServer | None,
    ) -> "Tiers":  # fmt: skip
        """Join the tiers. The vector index is in a directory, or on a server. Loads no weights and no Chroma."""
        pages = Pages(store, clock, window)
        index = Directory(store, directory) if server is None else Server(store, directory, server)
        facts = _fact_vectors(store, clock, embedder, index)
        said = SaidVectors(store, facts.embedding) if facts else None
        archive = Archive(store, clock, pages, facts)
        core = Core(store, clock, window.limits.core_tokens, archive)
        trust = Trust(store, clock, archive, core, pages)
        return cls(core, archive, Recall(store, clock, said, archive), pages, trust, index)

    def invalidate(self) -> None:
        """Read again at the next use whatever is cached: an interrupt may have left it half done."""
        self.recall.invalidate()
        if self.archive.vectors:
            self.archive.vectors.reset()

    def close(self) -> None:
        """Close the vector index."""
        if self.archive.vectors:
            self.archive.vectors.indexing.close()


def default_embedder() -> Embedder:
    """Return all-MiniLM-L6-v2."""
    from pager.vectors.minilm import MiniLM

    return MiniLM()


def is_embedder(value: Any) -> bool:
    """Return True for an object with the attributes of an Embedder; a dimension may be slow to read, so it is not."""
    names = ("fingerprint", "dimension", "embed")
    return not isinstance(value, type) and all(getattr_static(value, name, None) is not None for name in names)


def _fact_vectors(store: Store, clock: Clock, choice: EmbedderChoice, index: Directory) -> FactVectors | None:
    if choice is None:
        return None
    embedding = Embedding(store, default_embedder() if choice == "default" else choice, clock)
    return FactVectors(store, embedding, Indexing(store, clock, embedding, index))
