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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pager.clock import Clock
from pager.errors import InUseError, NotFoundError, OlderFormatError, RejectedError, StorageError, UnavailableError
from pager.reader import MemoryReader
from pager.store import Store
from pager.store.rows import Step
from pager.tiers import Tiers
from pager.types import Block, BlockSpec, Fact, Hit, PageText, is_shared
from pager.upkeep import inbox
from pager.upkeep.place import Place, without_tenant
from pager.vectors.embedder import EmbedderUnavailableError

if TYPE_CHECKING:
    from pager.vectors.embedder import Rows, TokenEmbedder, TokenVectors
    from pager.vectors.embedding import Embedding

BETWEEN = "/"  # the name of a shared memory, and the id of its page
Edit = Literal["archive", "forget", "core_append", "core_replace"]
WHOSE = "It is shared with others, in "  # in the description of a block
OF_FACTS: tuple[Edit, ...] = ("archive", "forget")
Answer = TypeVar("Answer")


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
    """The shared memories of one agent, opened for reading when they are asked."""

    def __init__(
        self, mounts: Sequence[Mount], own: Place, store: Store, tiers: Tiers, clock: Clock,
        open_memory: Callable[..., Any],
    ) -> None:  # fmt: skip
        self._mounts = {mount.name: mount for mount in mounts}
        self._own = own
        self._store = store
        self._core = tiers.core
        self._embedder = _Shared(tiers.archive.vectors.embedding) if tiers.archive.vectors else None
        self._clock = clock
        self._open_memory = open_memory
        self._opened: dict[str, tuple[object, MemoryReader]] = {}
        self._without_meaning: set[str] = set()  # those whose vectors another embedder made
        self._failures: dict[str, str] = {}  # why a memory cannot be read, or shown, now
        self._told: dict[str, str] = {}  # those that are in the ledger

    def __iter__(self) -> Iterator[Mount]:
        return iter(self._mounts.values())

    @property
    def core(self) -> list[str]:
        """Return the names of their core blocks."""
        return [name for mount in self for name in mount.core]

    def _named(self, name: str) -> Mount:
        if name not in self._mounts:
            raise NotFoundError(f"no shared memory {name!r} is mounted; there are: {', '.join(self._mounts)}.")
        return self._mounts[name]

    def create(self, own_blocks: Collection[str]) -> None:
        """Create the shared memories, and their core blocks, that this agent may write and that are missing. Raise
        RejectedError for a core block that it has."""
        for mount in self:
            if mount.place.name == self._own.name:
                raise RejectedError(f"{mount.name} is this agent's own memory; mount another one.")
            if twice := set(mount.core).intersection(own_blocks):
                names = ", ".join(sorted(twice))
                raise RejectedError(f"the core block {names} of {mount.name} has the name of one of the agent's own.")
            if mount.writable:
                self._create(mount)

    def _create(self, mount: Mount) -> None:
        """Create a shared memory, or what is missing in it."""
        blocks = self._ask(mount, MemoryReader.core)
        has_all = {block.name for block in blocks or ()}.issuperset(mount.core)
        if mount.name in self._failures or (blocks is not None and has_all):
            return
        try:
            with self._open_unit(mount) as unit:
                unit.add_blocks({name: BlockSpec() for name in mount.core})
        except InUseError:
            pass  # another agent makes it at this moment
        except (StorageError, OSError):
            if blocks is None:
                raise

    # reading

    def facts(self, message: str, limit: int) -> list[Hit]:
        """Return the best facts for a message, those of each memory best first."""
        return self._find(lambda reader: reader.search_archive(message, limit=limit))

    def count(self) -> int:
        """Return how many facts their archives hold, as of the last search."""
        asked = [mount for mount in self if mount.archive and mount.name in self._opened]
        return sum(self._ask(mount, lambda reader: reader.inspect.fact_counts().current) or 0 for mount in asked)

    def add_hits(
        self, own: Sequence[Hit], query: str, limit: int, actor: str, options: Mapping[str, Any]
    ) -> list[Hit]:  # fmt: skip
        """Return the best of one's own hits and of the facts here. The ledger notes these."""
        found = self._find(lambda reader: reader.search_archive(query, limit=limit, **options))
        hits = sorted([*own, *found], key=lambda hit: -hit.score)[:limit]
        if found:
            kept = [hit for hit in hits if is_shared(hit.page_id)]
            self._store.ledger.write_search("shared memories", query, kept, actor)
        return hits

    def _find(self, search: Callable[[MemoryReader], Sequence[Hit]]) -> list[Hit]:
        asked = [mount for mount in self if mount.archive]
        return [_named(mount.name, hit) for mount in asked for hit in self._search(mount, search)]

    def _search(self, mount: Mount, search: Callable[[MemoryReader], Sequence[Hit]]) -> Sequence[Hit]:
        try:
            return self._ask(mount, search) or ()
        except EmbedderUnavailableError:  # another one made its vectors: from now on it is asked for words alone
            self._without_meaning.add(mount.name)
            self._forget(mount)
            return self._ask(mount, search) or ()

    def read(self, page_id: str, offset: int = 0) -> PageText:
        """Return a piece of a fact, by an id that begins with a memory's name."""
        read = self._require(page_id, lambda reader, fact: reader.read_page(fact, offset))
        return replace(read, page_id=f"{page_id.strip().partition(BETWEEN)[0]}{BETWEEN}{read.page_id}", media=())

    def fact(self, page_id: str) -> Fact:
        """Return a fact, by an id that begins with a memory's name."""
        return replace(self._require(page_id, lambda reader, fact: reader.fact(fact)), id=page_id.strip())

    def _require(self, page_id: str, question: Callable[[MemoryReader, str], Answer]) -> Answer:
        name, _, page = page_id.strip().partition(BETWEEN)
        mount = self._named(name)
        if not mount.archive:
            raise NotFoundError(f"the facts of {name} are not shared with this agent.")
        if page[:1] != "f":  # what was said to an agent is its own
            raise NotFoundError(f"there is no page {page_id!r}: of {name} only facts are shared, such as {name}/f1.")
        answer = self._ask(mount, lambda reader: question(reader, page))
        if answer is None:
            why = self._failures.get(name, "nothing was stored in it yet")
            raise NotFoundError(f"there is no page {page_id!r}: {why.rstrip('.')}.")
        return answer

    def follow(self) -> None:
        """Let the core blocks read as they do there now. The ledger says which memories cannot be read, and why."""
        found: dict[str, Block | None] = {}
        for mount in self:
            blocks = self._ask(mount, MemoryReader.core) if mount.core else None
            if mount.core and mount.name not in self._failures:
                there = {block.name: _shown(mount, block) for block in blocks or ()}
                found |= {name: there.get(name) for name in mount.core}
        failures = {**self._failures, **self._core.follow(found)}
        for name, why in failures.items():
            if self._told.get(name) != why:
                self._store.ledger.write("error", reason=f"shared memory {name}: {why}")
        self._told = failures

    def _ask(self, mount: Mount, question: Callable[[MemoryReader], Answer]) -> Answer | None:
        """Return what a memory answers as it is now; None if it cannot be read, or nothing is there."""
        answer: Answer | None = None
        try:
            answer = question(self._reader(mount))
        except (NotFoundError, FileNotFoundError):
            if mount.place.exists():
                raise
            self._forget(mount)
        except (StorageError, OSError, InUseError) as error:
            self._failures[mount.name] = _reason(mount, error)
            return None
        self._failures.pop(mount.name, None)
        return answer

    def _reader(self, mount: Mount) -> MemoryReader:
        now = mount.place.identity()
        if mount.name in self._opened and self._opened[mount.name][0] != now:
            self._forget(mount)
        if mount.name not in self._opened:
            embedder = None if mount.name in self._without_meaning else self._embedder
            read = partial(MemoryReader.open, mount.place, embedder=embedder, clock=self._clock)
            try:
                self._opened[mount.name] = now, read()
            except OlderFormatError:  # who writes it brings it up to this format
                self._open_memory(mount.place, embedder=None, clock=self._clock).close()
                self._opened[mount.name] = now, read()
        return self._opened[mount.name][1]

    def _forget(self, mount: Mount) -> None:
        if mount.name in self._opened:
            self._opened.pop(mount.name)[1].close()

    # writing

    def of_block(self, block: str) -> str | None:
        """Return the name of the shared memory that a core block comes from."""
        return next((mount.name for mount in self if block in mount.core), None)

    def write(
        self, name: str, kind: Edit, arguments: Mapping[str, Any], via: Collection[str], step: Step | None
    ) -> str:
        """Send a command to a shared memory, which takes effect at once if nobody has it open. Return what came of it.

        `via` names the untrusted sources of what is written, and `step` is that of the call that writes it, if one
        does: the same call takes effect once, also if it is run again after a kill.
        """
        mount = self._named(name)
        if not mount.writable or (kind in OF_FACTS and not mount.archive):
            raise RejectedError(f"{name} can only be read here. Keep it in the own memory.")
        origin = {"source": f"agent:{without_tenant(self._own.works_for)}", "via": list(via)}
        try:
            outcome = self._send(mount, kind, {**arguments, **origin}, self._command_of(step, kind, arguments))
        except (StorageError, OSError) as error:  # one's own memory is as it was: the turn goes on
            raise RejectedError(f"{name} cannot be written now: {_reason(mount, error)}") from error
        if outcome and outcome.startswith("refused: "):
            raise RejectedError(f"{name}: {outcome.removeprefix('refused: ')}")
        self.follow()
        waits = f"Sent to {name}: it is stored when the process that has it open looks."
        return f"Stored in {name}." if outcome else waits

    def _command_of(self, step: Step | None, kind: Edit, arguments: Mapping[str, Any]) -> str:
        """Return the id of a command that the first open call of a step sends; "" if none does."""
        if step is None or not step.open_calls:
            return ""
        sent = repr([self._own.name, step.open_calls[0], kind, sorted(arguments.items())])
        return f"{step.at:020d}-{sha256(sent.encode()).hexdigest()[:24]}"

    def _send(self, mount: Mount, kind: Edit, arguments: Mapping[str, Any], command: str) -> str | None:
        """Send a command to a shared memory, and return what came of it; None if who has it open is to look."""
        if not mount.place.exists():  # it was removed
            self._create(mount)
        command = inbox.send(mount.place.commands, kind, arguments, self._clock, command)
        try:
            self._carry_out(mount)
        except InUseError:
            mount.place.set_due(self._clock)  # its process takes it, also if it is idle
        except (StorageError, OSError):
            if outcome := self._ask(mount, lambda reader: _outcome(reader, command)):
                return outcome
            mount.place.commands.drop(command)  # or it would be carried out when the memory can be opened again
            raise
        return self._ask(mount, lambda reader: _outcome(reader, command))

    def _carry_out(self, mount: Mount) -> None:
        """Carry out the edits that wait, also those of agents that could not open it because it is open here."""
        done = set[str]()
        while waiting := set(inbox.pending_edits(mount.place.commands)) - done:
            with self._open_unit(mount) as unit:
                unit.process_inbox(messages=False)
            done |= waiting

    def _open_unit(self, mount: Mount) -> Any:
        """Open a shared memory for writing, with its own limits, and with the embedder if that made its vectors."""
        self._search(mount, lambda reader: reader.search_archive("anything", limit=1))  # shows if the embedder fits
        embedder = None if mount.name in self._without_meaning else self._embedder
        limits = self._ask(mount, lambda reader: reader.limits)
        return self._open_memory(mount.place, clock=self._clock, embedder=embedder, limits=limits)

    def close(self) -> None:
        """Close what is open."""
        for _, reader in self._opened.values():
            reader.close()
        self._opened.clear()


def _reason(mount: Mount, error: Exception) -> str:
    """Return why a shared memory cannot be used, for who does not know where it is."""
    text = error.reason if isinstance(error, UnavailableError) else str(error)
    return text.replace(mount.place.name, mount.name)


def _outcome(reader: MemoryReader, command: str) -> str | None:
    reader.follow()
    return reader.inspect.command(command)


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
    own = block.description.partition(WHOSE)[0].strip()  # without what this says of a block that is shared there, too
    description = f"{own} {WHOSE}{mount.name}.".strip()
    # A `file` says that the text comes from elsewhere: whoever has no mounts, such as a sleep, leaves it alone.
    return replace(block, file=f"shared memory {mount.name}", read_only=not mount.writable, description=description)


def _named(name: str, hit: Hit) -> Hit:
    before = hit.supersedes and f"{name}{BETWEEN}{hit.supersedes}"
    return replace(hit, page_id=f"{name}{BETWEEN}{hit.page_id}", supersedes=before)
