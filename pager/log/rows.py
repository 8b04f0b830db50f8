"""Every statement on the tables in Postgres (tables.py). `owner`, `fence` and `seq` are the whole protocol.

An agent is a row of `agents`. Who claims it raises its fence, and gives the claim an id of its own: after a failover a
fence may be given out twice. Each commit names both, and the number that follows the last one, and has no effect if
one of them is another.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pager.errors import AgentLostError, NotFoundError, RejectedError
from pager.log.pages import CHUNK_BYTES, chunk_of, damaged, pack_chunk, unpack_changes, unpack_chunk
from pager.log.postgres import Row, Server, Statement, Transaction
from pager.safety import foreign_files
from pager.store.schema import VERSION
from pager.types import Json

CHUNKS_AT_ONCE, COMMITS_AT_ONCE = 64, 256  # read: some megabytes

# A claim, a renewal and a release need not be on the disk before the next commit, which brings it there. If Postgres
# loses one in a crash, the id of the claim is gone with it, and its owner commits nothing.
_QUICK = "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))"
_CLAIM = f"""
    {_QUICK}
    UPDATE selfpager.agents SET fence = fence + 1, claim = %s, owner = %s,
        lease_until = clock_timestamp() + make_interval(secs => %s) FROM quick
    WHERE name = %s AND format <= %s AND (owner IS NULL OR lease_until < clock_timestamp() OR claim = %s)
    RETURNING id, fence, claim, EXISTS (SELECT FROM selfpager.commands c WHERE c.agent = agents.id)"""
# This line is the commit: it has a row, or nothing happened.
_COMMIT = """
    WITH owned AS (
        UPDATE selfpager.agents SET seq = seq + 1, format = %s,
            lease_until = clock_timestamp() + make_interval(secs => %s)
        WHERE id = %s AND (fence, claim) = (%s, %s) AND seq = %s
        RETURNING id, seq),
    written AS (INSERT INTO selfpager.commits SELECT id, seq, 0, %b FROM owned)
    SELECT EXISTS (SELECT FROM selfpager.commands c WHERE c.agent = owned.id) FROM owned"""
_MORE = "INSERT INTO selfpager.commits VALUES (%s, %s, %s, %b)"
_FOLDED = """
    UPDATE selfpager.agents SET folded = %s, size_bytes = %s
    WHERE id = %s AND claim = %s AND folded < %s RETURNING id"""
_CHUNKS_FROM = f"""
    SELECT number, data FROM selfpager.chunks WHERE agent = %s AND number > %s ORDER BY number LIMIT {CHUNKS_AT_ONCE}"""
# Whole commits, each with all of its parts.
_COMMITS_FROM = f"""
    SELECT seq, data FROM selfpager.commits WHERE agent = %s AND seq > %s
    ORDER BY seq FETCH FIRST {COMMITS_AT_ONCE} ROWS WITH TIES"""
# Also in place of one that somebody began to create and left. If they do go on, their fence is an old one.
_CREATED = """
    INSERT INTO selfpager.agents AS old (name, format, size_bytes, seq, folded) VALUES (%s, %s, %s, 1, 1)
    ON CONFLICT (name) DO UPDATE SET format = excluded.format, size_bytes = excluded.size_bytes, seq = 1, folded = 1,
        fence = old.fence + 1, claim = NULL, owner = NULL
    WHERE old.seq = 0 AND (old.owner IS NULL OR old.lease_until < clock_timestamp())
    RETURNING id"""
_COMMAND = "INSERT INTO selfpager.commands VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_CHUNK = """
    INSERT INTO selfpager.chunks VALUES (%s, %s, %b)
    ON CONFLICT (agent, number) DO UPDATE SET data = excluded.data"""


@dataclass(frozen=True, slots=True)
class Claim:
    """An agent that this process owns."""

    agent: int
    fence: int
    id: uuid.UUID
    has_commands: bool


@dataclass(frozen=True, slots=True)
class State:
    """An agent in Postgres at one moment."""

    agent: int
    seq: int
    format: int
    owner: Json | None
    lease_seconds: float  # until others may claim it


class Content(NamedTuple):
    """An agent to be created: its name, its database, and its pending commands."""

    name: str
    database: Path
    commands: Mapping[str, str]


class Rows:
    """The agents in one Postgres."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def names(self) -> list[str]:
        """Return the names of all agents that are not helpers, sorted."""
        found = self.server.ask("SELECT name FROM selfpager.agents WHERE seq > 0 AND strpos(name, '/') = 0 ORDER BY 1")
        return [row[0] for row in found]

    def names_below(self, name: str) -> list[str]:
        """Return the names of an agent's helpers, sorted, without theirs."""
        sql = """SELECT name FROM selfpager.agents WHERE seq > 0 AND starts_with(name, %s)
                 AND strpos(substr(name, %s), '/') = 0 ORDER BY 1"""
        return [row[0] for row in self.server.ask(sql, (f"{name}/", len(name) + 2))]

    def state(self, name: str) -> State | None:
        """Return an agent as it is now; None if there is none."""
        sql = """SELECT id, seq, format, CASE WHEN lease_until > clock_timestamp() THEN owner END,
                 coalesce(extract(epoch FROM lease_until - clock_timestamp())::float, 0)
                 FROM selfpager.agents WHERE name = %s"""
        found = self.server.ask(sql, (name,))
        if not found:
            return None
        agent, seq, format_, owner, seconds = found[0]
        return State(agent, seq, format_, json.loads(owner) if owner else None, seconds)

    # ownership

    def create(self, name: str) -> None:
        """Create an agent without content, unless there is one."""
        self.server.ask("INSERT INTO selfpager.agents (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))

    def claim(self, name: str, owner: Mapping[str, Any]) -> Claim | None:
        """Return the claim to an agent; None if there is none, if another owns it, or if its format is newer."""
        mine, lease = uuid.uuid4(), self.server.lease_seconds
        found = self.server.ask(_CLAIM, (mine, json.dumps(owner), lease, name, VERSION, mine))
        return Claim(*found[0]) if found else None

    def renew(self, claims: Sequence[Claim]) -> dict[int, tuple[uuid.UUID, bool]]:
        """Renew leases. Return agent -> claim and whether commands wait, of those that are still ours."""
        sql = f"""{_QUICK}
                 UPDATE selfpager.agents a SET lease_until = clock_timestamp() + make_interval(secs => %s)
                 FROM unnest(%s::bigint[], %s::uuid[]) AS mine (id, claim), quick
                 WHERE a.id = mine.id AND a.claim = mine.claim
                 RETURNING a.id, a.claim, EXISTS (SELECT FROM selfpager.commands c WHERE c.agent = a.id)"""
        agents, ids = [each.agent for each in claims], [each.id for each in claims]
        found = self.server.ask(sql, (self.server.lease_seconds, agents, ids))
        return {agent: (claim, waits) for agent, claim, waits in found}

    def release(self, claim: Claim) -> None:
        """Let others claim the agent. One that nothing was ever committed to is deleted."""
        values = (claim.agent, claim.id)
        released = (
            f"{_QUICK} UPDATE selfpager.agents SET owner = NULL FROM quick WHERE id = %s AND claim = %s RETURNING id"
        )
        self.server.tell(
            (released, values),
            ("DELETE FROM selfpager.agents WHERE id = %s AND claim = %s AND seq = 0", values),
        )

    def remove(self, name: str, claim: Claim) -> bool:
        """Delete an agent that is claimed, with its helpers. Return False if another owns it by now."""
        return bool(
            self.server.tell(
                ("DELETE FROM selfpager.agents WHERE id = %s AND claim = %s RETURNING id", (claim.agent, claim.id)),
                ("DELETE FROM selfpager.agents WHERE starts_with(name, %s)", (f"{name}/",)),
            )
        )

    # the log

    def commit(self, claim: Claim, seq: int, parts: Sequence[bytes]) -> bool | None:
        """Commit number `seq`. Return True if commands wait; None if another owns the agent, or has committed."""
        first, *more = parts
        values = (VERSION, self.server.lease_seconds, claim.agent, claim.fence, claim.id, seq - 1, first)
        rest: list[Statement] = [(_MORE, (claim.agent, seq, part, data)) for part, data in enumerate(more, start=1)]
        found = self.server.tell((_COMMIT, values), *rest)
        return bool(found[0][0]) if found else None

    def last_commit(self, claim: Claim) -> int | None:
        """Return the number of the last commit; None if another owns the agent."""
        found = self.server.ask(
            "SELECT seq FROM selfpager.agents WHERE id = %s AND claim = %s", (claim.agent, claim.id)
        )
        return found[0][0] if found else None

    def fold(self, claim: Claim, seq: int, size_bytes: int, chunks: Iterator[tuple[int, bytes]]) -> None:
        """Replace these chunks, in ascending order, and drop the commits up to `seq`, which they hold.

        Raises AgentLostError if another owns the agent: then nothing was replaced.
        """
        last, owned = (size_bytes - 1) // CHUNK_BYTES, (claim.agent, claim.id)
        with self.server.transaction() as transaction:
            while batch := [(claim.agent, *chunk) for chunk in islice(chunks, CHUNKS_AT_ONCE)]:
                transaction.run_many(_CHUNK, batch)
            # The row of the agent comes last: its commits wait for it.
            if not transaction.rows(_FOLDED, (seq, size_bytes, *owned, seq)):
                raise AgentLostError("another worker owns the agent; nothing was folded.")
            transaction.rows("DELETE FROM selfpager.chunks WHERE agent = %s AND number > %s", (claim.agent, last))
            transaction.rows("DELETE FROM selfpager.commits WHERE agent = %s AND seq <= %s", (claim.agent, seq))

    def restore(self, agent: int, file: Path) -> "Restored":
        """Write pager.db, as it was after the last commit, into a new file."""
        with self.server.snapshot() as reading, open(file, "xb", opener=foreign_files.private) as target:
            found = reading.rows("SELECT seq, folded, size_bytes FROM selfpager.agents WHERE id = %s", (agent,))
            if not found:
                raise NotFoundError("the agent was removed a moment ago.")
            restored = Restored(*found[0])
            for number, data in _all(reading, _CHUNKS_FROM, agent, -1):
                restored.chunk_bytes[number] = len(data)
                target.seek(number * CHUNK_BYTES)
                target.write(unpack_chunk(data))
            pages = dict[int, bytes]()
            expected = restored.folded + 1
            for seq, data in _all(reading, _COMMITS_FROM, agent, restored.folded):
                if seq > expected:
                    raise damaged(f"commit {expected} is missing")
                expected = seq + 1
                restored.log_bytes += len(data)
                changed, size_pages = unpack_changes(data)
                pages |= changed
                page_bytes = len(next(iter(changed.values())))
                restored.size_bytes = size_pages * page_bytes
            if expected != restored.seq + 1:
                raise damaged(f"commit {expected} is missing")
            for page, data in pages.items():
                restored.changed_chunks.add(chunk_of(page, len(data)))
                target.seek((page - 1) * len(data))
                target.write(data)
            target.truncate(restored.size_bytes)
            return restored

    def upload(self, contents: Iterable["Content"]) -> None:
        """Create agents, all or none. Raises RejectedError if one of these names is taken."""
        with self.server.transaction() as transaction:
            for name, file, commands in contents:
                created = transaction.rows(_CREATED, (name, VERSION, file.stat().st_size))
                if not created:
                    taken = f"there is an agent {name} in {self.server.public} already"
                    raise RejectedError(f"{taken}; choose another name.")
                agent = created[0][0]
                with file.open("rb") as source:
                    pieces = enumerate(iter(partial(source.read, CHUNK_BYTES), b""))
                    packed = ((agent, number, pack_chunk(piece)) for number, piece in pieces)
                    while batch := list(islice(packed, CHUNKS_AT_ONCE)):
                        transaction.run_many(_CHUNK, batch)
                transaction.run_many(_COMMAND, [(agent, *command) for command in commands.items()])

    # commands of other processes

    def commands(self, agent: int) -> list[tuple[str, str]]:
        """Return the pending commands with their ids, oldest first."""
        return [
            (row[0], row[1])
            for row in self.server.ask(
                "SELECT id, command FROM selfpager.commands WHERE agent = %s ORDER BY id", (agent,)
            )
        ]

    def send(self, agent: int, command: str, text: str) -> None:
        """Store a command."""
        self.server.ask(_COMMAND, (agent, command, text))

    def change_command(self, agent: int, command: str, text: str) -> None:
        """Replace the text of a command."""
        self.server.ask(
            "UPDATE selfpager.commands SET command = %s WHERE agent = %s AND id = %s", (text, agent, command)
        )

    def drop_command(self, agent: int, command: str) -> None:
        """Delete a command."""
        self.server.ask("DELETE FROM selfpager.commands WHERE agent = %s AND id = %s", (agent, command))


@dataclass(slots=True)
class Restored:
    """What was restored: the numbers of the agent, and what the log of its file is made of."""

    seq: int
    folded: int
    size_bytes: int
    log_bytes: int = 0  # of the commits that are not folded
    chunk_bytes: dict[int, int] = field(default_factory=dict[int, int])
    changed_chunks: set[int] = field(default_factory=set[int])  # by these commits


def _all(reading: Transaction, sql: str, agent: int, after: int) -> Iterator[Row]:
    """Yield rows in their order, some megabytes at a time. The first value of each is its number."""
    while True:
        rows = reading.rows(sql, (agent, after))
        yield from rows
        if not rows:
            return
        after = rows[-1][0]
