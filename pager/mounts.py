"""Shared memories within an agent's own: a team's facts and core blocks, which several agents read and write.

A shared memory is one like any other, in the same home. Its facts stay there: a search asks both, and names what is
shared by the memory's name, such as `handbook/f12`. Its core blocks stand in the prompt and follow their owner. What an
agent writes is sent to the shared memory as a command, and takes effect there.

    >>> handbook = Mount(Home(directory).place("handbook"), writable=True)
    >>> with Memory.open(directory, embedder=None, mounts=[handbook]) as memory:
    ...     _ = memory.write_shared("handbook", "archive", {"text": "Trains are paid by the firm."})
    ...     memory.search_archive("who pays for trains?")[0].page_id
    'handbook/f1'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pager.clock import Clock
from pager.errors import NotFoundError, PagerError
from pager.reader import MemoryReader
from pager.types import Block, Fact, Hit, PageText
from pager.upkeep.place import Place, without_tenant
from pager.vectors.embedder import EmbedderUnavailableError

if TYPE_CHECKING:
    from pager.vectors.embedder import Rows, TokenEmbedder, TokenVectors
    from pager.vectors.embedding import Embedding
    from pager.vectors.facts import FactVectors

BETWEEN = "/"  # the name of a shared memory, and the id of its page


@dataclass(frozen=True, slots=True)
class Mount:
    """A shared memory, and what of it an agent sees: its facts, and some of its core blocks."""

    place: Place
    core: tuple[str, ...] = ()
    archive: bool = True
    writable: bool = False

    @property
    def name(self) -> str:
        """Return its name among the memories of its tenant."""
        return without_tenant(self.place.agent)


class Mounts:
    """The shared memories of one agent, opened for reading while they are used."""

    def __init__(self, mounts: Sequence[Mount], vectors: FactVectors | None, clock: Clock) -> None:
        self._mounts = {mount.name: mount for mount in mounts}
        self._embedder = _Shared(vectors.embedding) if vectors else None
        self._clock = clock
        self._opened: dict[str, tuple[object, MemoryReader]] = {}
        self._without_meaning: set[str] = set()  # those whose vectors another embedder made
        self.failures: dict[str, str] = {}  # why a memory cannot be read, or shown, now
        self._told: dict[str, str] = {}  # those that are in the ledger

    def __iter__(self) -> Iterator[Mount]:
        return iter(self._mounts.values())

    def named(self, name: str) -> Mount:
        """Return a shared memory. Raises NotFoundError with the names of those that there are."""
        if name not in self._mounts:
            raise NotFoundError(f"no shared memory {name!r} is mounted; there are: {', '.join(self._mounts)}.")
        return self._mounts[name]

    def of_block(self, block: str) -> Mount | None:
        """Return the shared memory that a core block comes from."""
        return next((mount for mount in self if block in mount.core), None)

    def find(self, search: Callable[[MemoryReader], Sequence[Hit]]) -> list[Hit]:
        """Return what a search finds in the archives, by ids that begin with the memory's name."""
        found: list[Hit] = []
        for mount in self:
            if mount.archive:
                found += [_named(mount.name, hit) for hit in self._search(mount, search)]
        return found

    def _search(self, mount: Mount, search: Callable[[MemoryReader], Sequence[Hit]]) -> Sequence[Hit]:
        reader = self._reader(mount)
        try:
            return search(reader) if reader else ()
        except EmbedderUnavailableError:  # another one made its vectors: from now on it is asked for words alone
            self._without_meaning.add(mount.name)
            self._forget(mount)
            reader = self._reader(mount)
            return search(reader) if reader else ()

    def facts(self, message: str, limit: int) -> list[Hit]:
        """Return the best facts for a message, those of each memory best first."""
        return self.find(lambda reader: reader.search_archive(message, limit=limit))

    def count(self) -> int:
        """Return how many facts their archives hold."""
        readers = [self._reader(mount) for mount in self if mount.archive]
        return sum(reader.inspect.fact_counts().current for reader in readers if reader)

    def read(self, page_id: str, offset: int = 0) -> PageText:
        """Return a piece of a page, by an id that begins with a memory's name."""
        name, _, page = page_id.strip().partition(BETWEEN)
        mount = self.named(name)
        reader = self._reader(mount)
        if reader is None:
            raise NotFoundError(f"there is no page {page_id!r}: {self._why(name)}.")
        read = reader.read_page(page, offset)
        return replace(read, page_id=f"{name}{BETWEEN}{read.page_id}", media=())

    def blocks(self) -> list[Block]:
        """Return the core blocks as they read now, those of memories that cannot be read left out."""
        found: list[Block] = []
        for mount in self:
            if mount.core and (reader := self._reader(mount)):
                found += [_shown(mount, block) for block in reader.core() if block.name in mount.core]
        return found

    def fact(self, page_id: str) -> Fact:
        """Return a fact, by an id that begins with a memory's name."""
        name, _, page = page_id.strip().partition(BETWEEN)
        if reader := self._reader(self.named(name)):
            return replace(reader.fact(page), id=page_id)
        raise NotFoundError(f"there is no page {page_id!r}: {self._why(name)}.")

    def outcome(self, mount: Mount, command: str) -> str | None:
        """Return what came of a command; None while it waits."""
        reader = self._reader(mount)
        return reader.inspect.command(command) if reader else None

    def options(self, mount: Mount) -> dict[str, Any]:
        """Return with what a memory is opened for writing: its limits, and the embedder if it made its vectors."""
        self._search(mount, lambda reader: reader.search_archive("anything", limit=1))  # shows if the embedder fits
        reader, fits = self._reader(mount), mount.name not in self._without_meaning
        return {"embedder": self._embedder if fits else None, "limits": reader.limits if reader else None}

    def fresh_failures(self) -> dict[str, str]:
        """Return the failures that were not returned before."""
        fresh = {name: why for name, why in self.failures.items() if self._told.get(name) != why}
        self._told = dict(self.failures)
        return fresh

    def _why(self, name: str) -> str:
        return self.failures.get(name, "nothing was stored in it yet")

    def _reader(self, mount: Mount) -> MemoryReader | None:
        """Return an open reader that sees what is committed; None if there is nothing to read."""
        try:
            now = mount.place.identity() if mount.place.exists() else None
            if mount.name in self._opened and self._opened[mount.name][0] != now:
                self._forget(mount)
            if now is not None and mount.name not in self._opened:
                embedder = None if mount.name in self._without_meaning else self._embedder
                self._opened[mount.name] = now, MemoryReader.open(mount.place, embedder=embedder, clock=self._clock)
            self.failures.pop(mount.name, None)
        except (PagerError, OSError) as error:
            self.failures[mount.name] = str(error)
            return None
        return self._opened[mount.name][1] if now is not None else None

    def _forget(self, mount: Mount) -> None:
        _, reader = self._opened.pop(mount.name)
        reader.close()

    def close(self) -> None:
        """Close what is open."""
        for _, reader in self._opened.values():
            reader.close()
        self._opened.clear()


class _Shared:
    """The agent's own embedder: a message that was embedded for its own memory is not embedded again."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self.fingerprint = embedding.embedder.fingerprint
        if embedding.has_tokens:
            self.token_fingerprint = cast("TokenEmbedder", embedding.embedder).token_fingerprint
            self.embed_tokens = self._embed_tokens

    @property
    def dimension(self) -> int:
        return self._embedding.embedder.dimension

    def embed(self, texts: Sequence[str]) -> Rows:
        return self._embed_tokens(texts)[0]

    def _embed_tokens(self, texts: Sequence[str]) -> tuple[Rows, list[TokenVectors | None]]:
        import numpy as np

        meanings = [self._embedding.embed(texts[0])] if len(texts) == 1 else self._embedding.embed_all(texts)
        known = [meaning for meaning in meanings if meaning is not None]
        if len(known) < len(texts):
            raise EmbedderUnavailableError(self._embedding.failure or "the embedder waits after a failure.")
        return np.stack([meaning.vector for meaning in known]), [meaning.tokens for meaning in known]


def _shown(mount: Mount, block: Block) -> Block:
    """Return a block as it stands in the prompt of who mounts it."""
    whose = f"It is shared with others, in {mount.name}."
    description = f"{block.description} {whose}" if block.description else whose
    # A `file` says that the text comes from elsewhere: whoever has no mounts, such as a sleep, leaves it alone.
    return replace(block, file=f"shared memory {mount.name}", read_only=not mount.writable, description=description)


def _named(name: str, hit: Hit) -> Hit:
    before = hit.supersedes and f"{name}{BETWEEN}{hit.supersedes}"
    return replace(hit, page_id=f"{name}{BETWEEN}{hit.page_id}", supersedes=before)
