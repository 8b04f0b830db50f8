"""The agents in Postgres (tables.py): who owns one, and its commits. `owner`, `fence` and `seq` are the whole protocol.

An agent is a row of `agents`. Who claims it raises its fence, and gives the claim an id of its own: after a failover a
fence may be given out twice. Each commit names both, and the number that follows the last one, and has no effect if
one of them is another.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any, NamedTuple

from pager.log.claim import Claim
from pager.log.keys import Keys
from pager.log.postgres import Server, Statement
from pager.log.states import States
from pager.store.schema import VERSION
from pager.types import OF_TENANT, Json

REMOVED = (1 << 63) - 1  # behind every commit of an agent that there is
LAST = "\x7f"  # behind every character of a name
# A claim, a renewal and a release need not be on the disk before the next commit, which brings it there. If Postgres
# loses one in a crash, the id of the claim is gone with it, and its owner commits nothing.
_QUICK = "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))"
# But after a crash Postgres may show commits that its synchronous standby lacks: a claim waits until that one has them.
_CLAIM = """
    WITH quick AS MATERIALIZED (SELECT CASE WHEN current_setting('synchronous_standby_names') = ''
        THEN set_config('synchronous_commit', 'off', true) END)
    UPDATE selfpager.agents SET fence = fence + 1, claim = %s, owner = %s,
        lease_until = clock_timestamp() + make_interval(secs => %s) FROM quick
    WHERE name = %s AND format <= %s AND (owner IS NULL OR lease_until < clock_timestamp() OR claim = ANY(%s))
    RETURNING id, fence, claim, EXISTS (SELECT FROM selfpager.commands c WHERE c.agent = agents.id)"""
# This line is the commit: it has a row, or nothing happened. It changes no column that is in an index, the lease least
# of all, which is renewed by itself: so it writes a row here and a row there, and one entry of an index.
_COMMIT = f"""
    WITH owned AS (
        UPDATE selfpager.agents SET seq = seq + 1, format = {VERSION}
        WHERE id = %s AND (fence, claim) = (%s, %s) AND seq = %s
        RETURNING id, seq),
    written AS (INSERT INTO selfpager.commits SELECT id, seq, 0, clock_timestamp(), %b FROM owned)
    SELECT EXISTS (SELECT FROM selfpager.commands c WHERE c.agent = owned.id) FROM owned"""
_MORE = "INSERT INTO selfpager.commits VALUES (%s, %s, %s, clock_timestamp(), %b)"
# The state of an agent before its first commit is a base, too.
_CREATE = """
    WITH made AS (INSERT INTO selfpager.agents (name) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id)
    INSERT INTO selfpager.bases SELECT id, 0, clock_timestamp(), 0, '' FROM made"""
# The moment of a commit tells it from another one of that number, which a standby made that lacked it.
_AT = """coalesce((SELECT at FROM selfpager.commits WHERE agent = a.id AND seq = {0} AND part = 0),
    (SELECT at FROM selfpager.bases WHERE agent = a.id AND seq = {0}))"""
_POSITION = f"SELECT id, seq, format, {_AT.format('a.seq')}, {_AT.format('%s')} FROM selfpager.agents a WHERE name = %s"


class Position(NamedTuple):
    """How far the commits of an agent go."""

    agent: int
    seq: int
    format: int
    at: datetime | None  # the moment of the last commit
    at_before: datetime | None  # that of the commit that was asked for; None if nothing is known of it any more


@dataclass(frozen=True, slots=True)
class State:
    """An agent in Postgres at one moment."""

    agent: int
    seq: int
    format: int
    owner: Json | None
    lease_seconds: float  # until others may claim it


class Rows:
    """The agents in one Postgres."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.keys = Keys(server)
        self.states = States(server, self.keys)
        self.noted: dict[str, datetime] = {}  # when agents are due, as this process has stored it as their owner

    def names(self, begin: str, limit: int | None, tenant: str | None) -> list[str]:
        """Return the names of agents that are not helpers, sorted: those of a tenant ("" for none), or all."""
        first = f"{tenant}{OF_TENANT}" if tenant else ""
        end = f"{tenant}{OF_TENANT}{LAST}" if tenant else LAST
        of_none = "AND strpos(name, '..') = 0" if tenant == "" else ""
        sql = f"""SELECT name FROM selfpager.agents
                  WHERE name >= %s AND name < %s AND seq > 0 AND strpos(name, '/') = 0 {of_none} ORDER BY 1 LIMIT %s"""
        return [row[0] for row in self.server.ask(sql, (max(begin, first), end, limit))]

    def names_below(self, name: str, *, deep: bool = False) -> list[str]:
        """Return the names of an agent's helpers, sorted, without theirs unless `deep`."""
        sql = """SELECT name FROM selfpager.agents WHERE seq > 0 AND starts_with(name, %s)
                 AND (%s OR strpos(substr(name, %s), '/') = 0) ORDER BY 1"""
        return [row[0] for row in self.server.ask(sql, (f"{name}/", deep, len(name) + 2))]

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

    def position(self, name: str, seq: int) -> Position | None:
        """Return how far the commits of an agent go, and what is known of commit `seq`; None if there is no agent."""
        found = self.server.ask(_POSITION, (seq, seq, name))
        return Position(*found[0]) if found else None

    # ownership

    def create(self, name: str) -> None:
        """Create an agent without content, unless there is one."""
        self.server.ask(_CREATE, (name,))

    def claim(self, name: str, owner: Mapping[str, Any]) -> Claim | None:
        """Return the claim to an agent; None if there is none, if another owns it, or if its format is newer."""
        self.noted.pop(name, None)  # another owner may have stored another time
        mine, lease, left = uuid.uuid4(), self.server.lease_seconds, self.server.left
        until = monotonic() + lease
        values = (mine, json.dumps(owner), lease, name, VERSION, [mine, *left.values()])
        found = self.server.ask(_CLAIM, values)
        if not found:
            return None
        agent, fence, claim, has_commands = found[0]
        left.pop(agent, None)
        return Claim(agent, fence, claim, has_commands, until)

    def renew(self, claims: Sequence[Claim]) -> dict[int, tuple[uuid.UUID, bool]]:
        """Renew leases. Return agent -> claim and whether commands wait, of those that are still ours."""
        sql = f"""{_QUICK}
                 UPDATE selfpager.agents a SET lease_until = clock_timestamp() + make_interval(secs => %s),
                     at_work = a.name = ANY (%s::text[])
                 FROM unnest(%s::bigint[], %s::uuid[]) AS mine (id, claim), quick
                 WHERE a.id = mine.id AND a.claim = mine.claim
                 RETURNING a.id, a.claim, EXISTS (SELECT FROM selfpager.commands c WHERE c.agent = a.id)"""
        agents, ids = [each.agent for each in claims], [each.id for each in claims]
        found = self.server.ask(sql, (self.server.lease_seconds, list(self.server.at_work), agents, ids))
        return {agent: (claim, waits) for agent, claim, waits in found}

    def release(self, claim: Claim, *, unfinished: bool = False) -> None:
        """Let others claim the agent, and visit it at once if it may be `unfinished`. One that nothing was ever
        committed to is deleted. If Postgres cannot be told, this process may claim it again, and others when the lease
        has ended."""
        values = (claim.agent, claim.id)
        released = f"""{_QUICK}
            UPDATE selfpager.agents SET owner = NULL, at_work = false,
                due = CASE WHEN %s THEN clock_timestamp() ELSE due END
            FROM quick WHERE id = %s AND claim = %s RETURNING id"""
        self.server.left[claim.agent] = claim.id
        deleted = "DELETE FROM selfpager.agents WHERE id = %s AND claim = %s AND seq = 0"
        self.server.tell((released, (unfinished, *values)), (deleted, values))
        self.server.left.pop(claim.agent, None)

    def remove(self, name: str, claim: Claim) -> bool:
        """Delete an agent that is claimed, with its helpers. Return False if another owns it by now."""
        with self.server.transaction() as transaction:
            mine = "DELETE FROM selfpager.agents WHERE id = %s AND claim = %s RETURNING id"
            removed = transaction.rows(mine, (claim.agent, claim.id))
            if removed:
                helpers = "DELETE FROM selfpager.agents WHERE starts_with(name, %s) RETURNING id"
                removed += transaction.rows(helpers, (f"{name}/",))
                # From here on nobody can commit to one of them.
                agents = [row[0] for row in removed]
                transaction.rows("DELETE FROM selfpager.commits WHERE agent = ANY(%s)", (agents,))
                # Whoever reads a copy follows, and finds nothing: see copy.py.
                transaction.rows("UPDATE selfpager.copies SET awaited = %s WHERE agent = ANY(%s)", (REMOVED, agents))
        return bool(removed)

    # the log

    def commit(self, claim: Claim, seq: int, parts: Sequence[bytes]) -> bool | None:
        """Commit number `seq`. Return True if commands wait; None if another owns the agent, or has committed."""
        first, *more = parts
        values = (claim.agent, claim.fence, claim.id, seq - 1, first)
        rest: list[Statement] = [(_MORE, (claim.agent, seq, part, data)) for part, data in enumerate(more, start=1)]
        waits = self.server.commit((_COMMIT, values), *rest)
        return None if waits is None else waits == b"t"

    def last_commit(self, claim: Claim) -> int | None:
        """Return the number of the last commit, once it is as safe as one that is acknowledged; None if another owns
        the agent."""
        sql = "UPDATE selfpager.agents SET seq = seq WHERE id = %s AND claim = %s RETURNING seq"
        found = self.server.ask(sql, (claim.agent, claim.id))
        return found[0][0] if found else None

    # commands of other processes

    def commands(self, agent: int) -> dict[str, bytes]:
        """Return the pending commands by their ids, oldest first."""
        sql = "SELECT id, command FROM selfpager.commands WHERE agent = %s ORDER BY id"
        return {row[0]: row[1] for row in self.server.ask(sql, (agent,))}

    def drop_command(self, agent: int, command: str) -> None:
        """Delete a command."""
        self.server.ask("DELETE FROM selfpager.commands WHERE agent = %s AND id = %s", (agent, command))
