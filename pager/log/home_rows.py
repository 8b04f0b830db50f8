"""What a home in Postgres keeps beside its agents: values of programs, and which agents want to be visited."""

from collections.abc import Callable
from datetime import datetime, timedelta

from pager.log.rows import Rows
from pager.store.schema import VERSION

KNOWN = 10_000  # agents whose time this process remembers
# An agent wants a visit when its time has come, or when its owner has died with it. Who takes it has as long as a lease
# lasts to claim it: then it is offered again. What another one takes at this moment is passed over. Helpers, and agents
# of formats that others know, are left out before the limit, which they would use up for ever. What was at work comes
# first and what was only open last: a worker that dies leaves hundreds of these.
_TAKE = """
    UPDATE selfpager.agents SET due = clock_timestamp() + %s
    WHERE id IN (
        SELECT id FROM selfpager.agents
        WHERE ((due <= clock_timestamp()
                AND (owner IS NULL OR lease_until < clock_timestamp() OR owner::json ->> 'worker' = %s))
            OR (owner IS NOT NULL AND lease_until < clock_timestamp() AND (due IS NULL
                OR due NOT BETWEEN clock_timestamp() AND clock_timestamp() + %s)))
            AND seq > 0 AND strpos(name, '/') = 0 AND format <= %s
        ORDER BY at_work DESC, due LIMIT %s FOR UPDATE SKIP LOCKED)
    RETURNING name"""
_SET = "UPDATE selfpager.agents SET due = clock_timestamp() + %s::interval WHERE name = %s"
_END = """
    UPDATE selfpager.agents a SET due = CASE
        WHEN %s AND EXISTS (SELECT FROM selfpager.commands c WHERE c.agent = a.id) THEN clock_timestamp()
        ELSE clock_timestamp() + %s::interval END
    WHERE name = %s"""


class HomeRows:
    """Values and visits in one Postgres."""

    def __init__(self, rows: Rows) -> None:
        self._server, self._noted = rows.server, rows.noted

    def value(self, key: str) -> str | None:
        """Return a value; None if there is none."""
        found = self._server.ask("SELECT value FROM selfpager.home WHERE key = %s", (key,))
        return found[0][0] if found else None

    def change_value(self, key: str, change: Callable[[str | None], str]) -> str:
        """Replace a value by what `change` makes of it, while nobody else changes it. Return it."""
        with self._server.transaction() as transaction:
            transaction.rows("INSERT INTO selfpager.home VALUES (%s, NULL) ON CONFLICT DO NOTHING", (key,))
            found = transaction.rows("SELECT value FROM selfpager.home WHERE key = %s FOR UPDATE", (key,))
            value = change(found[0][0])
            transaction.rows("UPDATE selfpager.home SET value = %s WHERE key = %s", (value, key))
        return value

    # Moments are those of the caller's clock: Postgres, whose clock may be another, is told how long it is until then.

    def set_due(self, name: str, now: datetime, at: datetime | None) -> None:
        """Note when an agent wants to be visited; None if never."""
        self._server.ask(_SET, (at and at - now, name))
        self._note(name, at)

    def take_due(self, limit: int) -> list[str]:
        """Return agents that want to be visited now. Nobody else gets them for as long as a lease lasts."""
        lease, worker = timedelta(seconds=self._server.lease_seconds), self._server.worker
        found = [row[0] for row in self._server.ask(_TAKE, (lease, worker, lease, VERSION, limit))]
        for name in found:
            self._noted.pop(name, None)
        return found

    def end_work(
        self, name: str, now: datetime, due: datetime | None, *, takes_messages: bool, was_visited: bool
    ) -> None:
        """Note when an agent wants to be visited next; at once while messages wait that it would take."""
        if was_visited or self._noted.get(name) != due:
            self._server.ask(_END, (takes_messages, due and due - now, name))
            self._note(name, due)

    def _note(self, name: str, due: datetime | None) -> None:
        if due is None:
            self._noted.pop(name, None)
            return
        if len(self._noted) >= KNOWN:
            self._noted.clear()  # each is written once more
        self._noted[name] = due
