"""The states of an agent in Postgres: folding its log into chunks, restoring it as it is or was, and what is dropped.

A base is a state of pager.db all of which is in chunks: a row of `bases` names the version of each. A fold adds one,
with new versions of the chunks that have changed. Any state from then on is a base and the commits that follow it:
past.py says which of them are kept.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pager.errors import AgentLostError, NoAgentError, RejectedError
from pager.log import past
from pager.log.claim import Claim
from pager.log.keys import Keys
from pager.log.pages import CHUNK_BYTES, chunk_of, damaged, pack_chunk, unpack, unpack_changes
from pager.log.postgres import Server, Transaction
from pager.log.seal import PLAIN, Box, place
from pager.safety import foreign_files
from pager.store.schema import VERSION

CHUNKS_AT_ONCE = 64  # read: some megabytes
PageBefore = Callable[[int, int], bytes]  # of a page and its size: its content

_CHUNK = """
    INSERT INTO selfpager.chunks VALUES (%s, %s, %s, %b)
    ON CONFLICT (agent, number, seq) DO UPDATE SET data = excluded.data"""
_OURS = "SELECT 1 FROM selfpager.agents WHERE id = %s AND claim = %s FOR NO KEY UPDATE"  # nobody claims it meanwhile
_FOLDED = "UPDATE selfpager.agents SET folded = %s WHERE id = %s AND claim = %s AND folded < %s RETURNING id"
_BASE = """
    INSERT INTO selfpager.bases VALUES (%s, %s, coalesce((SELECT at FROM selfpager.commits
        WHERE agent = %s AND seq = %s AND part = 0), clock_timestamp()), %s, %b)"""
# Also in place of one that somebody began to create and left. If they do go on, their fence is an old one.
_CREATED = """
    INSERT INTO selfpager.agents AS old (name, format, seq, folded) VALUES (%s, %s, 1, 1)
    ON CONFLICT (name) DO UPDATE SET format = excluded.format, seq = 1, folded = 1,
        fence = old.fence + 1, claim = NULL, owner = NULL
    WHERE old.seq = 0 AND (old.owner IS NULL OR old.lease_until < clock_timestamp())
    RETURNING id"""
_COMMAND = "INSERT INTO selfpager.commands VALUES (%s, %s, %b)"
_NEWEST = """
    SELECT a.seq, b.seq, b.size_bytes, b.versions FROM selfpager.agents a
    JOIN selfpager.bases b ON b.agent = a.id AND b.seq = a.folded WHERE a.id = %s"""
_EARLIER = """
    SELECT seq, size_bytes, versions FROM selfpager.bases WHERE agent = %s AND seq <= %s ORDER BY seq DESC LIMIT 1"""
_CHUNKS = """
    SELECT c.number, c.data FROM unnest(%s::integer[], %s::bigint[]) AS wanted (number, seq)
    JOIN selfpager.chunks c ON c.agent = %s AND c.number = wanted.number AND c.seq = wanted.seq ORDER BY 1"""


@dataclass(slots=True)
class Restored:
    """What was restored: the numbers of the agent, and what the log of its file is made of."""

    seq: int
    folded: int
    size_bytes: int
    log_bytes: int = 0  # of the commits that are not folded
    chunk_bytes: dict[int, int] = field(default_factory=dict[int, int])
    changed_chunks: set[int] = field(default_factory=set[int])  # by these commits
    versions: list[int] = field(default_factory=list[int])  # of each chunk the commit that it was folded at
    box: Box = PLAIN

    def folded_versions(self) -> list[int]:
        """Return the versions of all chunks after these changes were folded."""
        count = -(-self.size_bytes // CHUNK_BYTES)
        padded = [*self.versions[:count], *[0] * (count - len(self.versions))]
        return [self.seq if number in self.changed_chunks else seq for number, seq in enumerate(padded)]


class Content(NamedTuple):
    """An agent that is created: its database, and the commands that wait."""

    name: str
    database: Path
    commands: Mapping[str, str]


class States:
    """The states of the agents in one Postgres."""

    def __init__(self, server: Server, keys: Keys) -> None:
        self._server = server
        self._keys = keys

    def begin(self, claim: Claim) -> Restored:
        """Return the state of an agent without content. It gets its key.

        Raises AgentLostError if another owns the agent: to replace the key of that one would destroy what it wrote.
        """
        with self._server.transaction() as transaction:
            if not transaction.rows(_OURS, (claim.agent, claim.id)):
                raise AgentLostError("another process has claimed the agent meanwhile: open the agent again.")
            return Restored(0, 0, 0, box=self._keys.make(transaction, claim.agent))

    def fold(self, claim: Claim, held: Restored, chunks: Iterator[tuple[int, bytes]]) -> None:
        """Add a base, after commit `held.seq`, with new versions of these chunks.

        Raises AgentLostError if another owns the agent: then nothing was added.
        """
        with self._server.transaction() as transaction:
            _write_chunks(transaction, claim.agent, held, chunks)
            # The row of the agent comes last: its commits wait for it.
            if not transaction.rows(_FOLDED, (held.seq, claim.agent, claim.id, held.seq)):
                raise AgentLostError("another worker owns the agent; nothing was folded.")
            _write_base(transaction, claim.agent, held)

    def restore(self, agent: int, file: Path, at: datetime | None = None) -> Restored:
        """Write pager.db, as it was after the last commit or at a moment, into a new file."""
        with self._server.snapshot() as reading, open(file, "x+b", opener=foreign_files.private) as target:
            box = self._keys.box(reading, agent)
            if at is None:
                found = reading.rows(_NEWEST, (agent,))
            else:
                until = past.last_commit(reading, agent, box, at)
                found = [(until, *row) for row in reading.rows(_EARLIER, (agent, until))]
            if at is not None and (not found or not found[0][0]):
                raise past.too_early(reading, agent)
            if not found:
                raise NoAgentError("the agent was removed a moment ago.")
            last, seq, size_bytes, versions = found[0]
            restored = Restored(seq, seq, size_bytes, box=box)
            if seq:
                restored.versions = _unpack_versions(box.open(versions, place("base", agent, seq, size_bytes)))
            _restore_base(reading, agent, restored, target)
            _restore_commits(reading, agent, restored, last, target)
            target.truncate(restored.size_bytes)
            return restored

    def changes_since(
        self, agent: int, held: Restored, last: int, before: PageBefore
    ) -> tuple[Restored, dict[int, bytes]] | None:
        """Return the state after commit `last`, and the pages that differ from a state before it, which `before` reads.

        Returns None if commits in between are packed, or not stored any more.
        """
        newer = replace(held, changed_chunks=set())
        commits = past.unpacked(self._server.ask, agent, held.box, held.seq, last)
        pages = _read_commits(commits, newer, before)
        return (newer, pages) if newer.seq == last else None

    def upload(self, contents: Iterable[Content]) -> None:
        """Create agents, each after its owner, all or none. Raises RejectedError if one of these names is taken."""
        with self._server.transaction() as transaction:
            for name, file, commands in contents:
                created = transaction.rows(_CREATED, (name, VERSION))
                if not created:
                    taken = f"there is an agent {name} in {self._server.public} already"
                    raise RejectedError(f"{taken}; choose another name.")
                agent = created[0][0]
                box = self._keys.make(transaction, agent)
                transaction.rows("DELETE FROM selfpager.bases WHERE agent = %s", (agent,))
                _write_file(transaction, agent, Restored(1, 1, file.stat().st_size, box=box), file)
                sealed = [
                    (id_, box.seal(text.encode(), place("command", agent, id_))) for id_, text in commands.items()
                ]
                transaction.run_many(_COMMAND, [(agent, *command) for command in sealed])

    def seal_anew(self, transaction: Transaction, claim: Claim, held: Restored, file: Path) -> None:
        """Replace all rows of an agent by a base of this file, with the key that it has in this transaction."""
        held.box = self._keys.box(transaction, claim.agent)
        for table in ("commits", "packs", "chunks", "bases"):
            transaction.rows(f"DELETE FROM selfpager.{table} WHERE agent = %s", (claim.agent,))
        sql = "UPDATE selfpager.agents SET folded = seq WHERE id = %s AND claim = %s AND seq = %s RETURNING id"
        if not transaction.rows(sql, (claim.agent, claim.id, held.seq)):
            raise AgentLostError("another worker owns the agent; nothing was changed.")
        _write_file(transaction, claim.agent, held, file)


def _write_file(transaction: Transaction, agent: int, held: Restored, file: Path) -> None:
    """Store a database file as a base."""
    held.changed_chunks.update(range(-(-held.size_bytes // CHUNK_BYTES)))
    with file.open("rb") as source:
        pieces = enumerate(iter(partial(source.read, CHUNK_BYTES), b""))
        _write_chunks(transaction, agent, held, ((number, pack_chunk(piece)) for number, piece in pieces))
    _write_base(transaction, agent, held)


def _write_chunks(transaction: Transaction, agent: int, held: Restored, chunks: Iterator[tuple[int, bytes]]) -> None:
    while batch := list(islice(chunks, CHUNKS_AT_ONCE)):
        sealed = [(number, held.box.seal(data, place("chunk", agent, number, held.seq))) for number, data in batch]
        transaction.run_many(_CHUNK, [(agent, number, held.seq, data) for number, data in sealed])


def _write_base(transaction: Transaction, agent: int, held: Restored) -> None:
    packed = _pack_versions(held.folded_versions())
    versions = held.box.seal(packed, place("base", agent, held.seq, held.size_bytes))
    transaction.rows(_BASE, (agent, held.seq, agent, held.seq, held.size_bytes, versions))


def _pack_versions(versions: list[int]) -> bytes:
    return zlib.compress(struct.pack(f"<{len(versions)}Q", *versions))


def _unpack_versions(data: bytes) -> list[int]:
    raw = unpack(data)
    return list(struct.unpack(f"<{len(raw) // 8}Q", raw))


def _restore_base(reading: Transaction, agent: int, restored: Restored, target: BinaryIO) -> None:
    for begin in range(0, len(restored.versions), CHUNKS_AT_ONCE):
        versions = restored.versions[begin : begin + CHUNKS_AT_ONCE]
        numbers = list(range(begin, begin + len(versions)))
        found = reading.rows(_CHUNKS, (numbers, versions, agent))
        if len(found) != len(versions):
            raise damaged(f"a chunk from {begin} to {numbers[-1]} is missing")
        for (number, data), seq in zip(found, versions, strict=True):
            restored.chunk_bytes[number] = len(data)
            target.seek(number * CHUNK_BYTES)
            target.write(unpack(restored.box.open(data, place("chunk", agent, number, seq))))


def _restore_commits(reading: Transaction, agent: int, restored: Restored, last: int, target: BinaryIO) -> None:
    """Put the commits up to the last one on top of a base."""

    def before(page: int, page_bytes: int) -> bytes:
        target.seek((page - 1) * page_bytes)
        return target.read(page_bytes)

    commits = past.commits(reading, agent, restored.box, restored.seq, last)
    pages = _read_commits(commits, restored, before)
    if restored.seq != last:
        raise damaged(f"commit {restored.seq + 1} is missing")
    for page, data in pages.items():
        restored.changed_chunks.add(chunk_of(page, len(data)))
        target.seek((page - 1) * len(data))
        target.write(data)


def _read_commits(commits: Iterable[past.Commit], held: Restored, before: PageBefore) -> dict[int, bytes]:
    """Return the pages as they are after these commits, which follow `held`, up to the first that is missing.

    `held` is the state after them.
    """
    pages = dict[int, bytes]()

    def newest(page: int, page_bytes: int) -> bytes:
        return pages.get(page) or before(page, page_bytes)

    for seq, size_bytes, content in commits:
        if seq > held.seq + 1:
            break
        held.seq = seq
        held.log_bytes += size_bytes
        changed, size_pages = unpack_changes(content, newest)
        pages |= changed
        held.size_bytes = size_pages * len(next(iter(changed.values())))
    return pages
