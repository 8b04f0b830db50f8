"""The ledger: one row for every movement, written in the transaction that makes it. SQL.

Events: archive, repeat, supersede, forget, restore, reopen (a sleep that ended it was undone), sleep, source (one was
taken off a fact), end (it is again that from before), done, withdraw (a step, with its turn), branch (the conversation
went back behind that step, or behind none), purge, core, evict, drop, page_in, page_out, pin, unpin, recall, spill,
notice, epoch, digest, search, interrupted, command, index, embedder, error. The reason of an eviction contains
`unannounced` if the agent was not told of it before. `tokens` is the size of what moved; of a spill, the size of what
stays in the prompt.
"""

import json
from collections.abc import Sequence
from datetime import date
from typing import Any

from pager.arguments import require_int, require_texts
from pager.blocks import clean, dump
from pager.clock import Clock, from_micros, to_micros
from pager.store.database import Database, Row
from pager.types import FOREVER, Hit, Json, Movement, number_of


class LedgerTable:
    """Append-only; the database enforces it."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._withdrawn: frozenset[int] | None = None  # None: not read yet
        db.when_rolled_back(self.invalidate)
        self.version = 0  # rows written by this process, undone ones too: while it stays the same, so does the ledger

    def invalidate(self) -> None:
        """Read again at the next use: a change was rolled back."""
        self._withdrawn = None

    def withdrawn(self) -> frozenset[int]:
        """Return the steps of the turns that were withdrawn. They are needed in every search, so they are read once."""
        if self._withdrawn is None or self._db.read_only:
            rows = self._db.rows("SELECT page FROM ledger WHERE event = 'withdraw'")
            self._withdrawn = frozenset(number_of(row["page"]) for row in rows)
        return self._withdrawn

    def write(
        self, event: str, page: str | None = None, *, reason: str = "", actor: str = "pager", tokens: int = 0,
        step: int | None = None, **detail: Any,
    ) -> None:  # fmt: skip
        """Append a row. `step` is the newest step, if the caller has it at hand. A reader writes nothing."""
        if self._db.read_only:
            return
        self.version += 1
        if event == "withdraw":
            self._withdrawn = None
        text = dump({name: value for name, value in detail.items() if value not in (None, [])})
        if not (text.isascii() and reason.isascii()):
            text, reason = clean(text), clean(reason)
        self._db.run(
            "INSERT INTO ledger (at, step, event, page, reason, actor, tokens, detail)"
            " VALUES (?, ifnull(?, (SELECT ifnull(max(id), 0) FROM steps)), ?, ?, ?, ?, ?, ?)",
            (to_micros(self._clock.now()), step, event, page, reason, actor, tokens, text),
        )

    def write_recalled(self, step: int, pages: Sequence[tuple[str, int, Json]]) -> None:
        """Append a row for each page that was recalled with a step: its tokens, and why. In one statement."""
        self.version += len(pages)
        at, values = to_micros(self._clock.now()), list[Any]()
        for page, tokens, why in pages:
            values += (at, step, "recall", page, f"for s{step}", "pager", tokens, dump(why))
        rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(pages))
        self._db.run(f"INSERT INTO ledger (at, step, event, page, reason, actor, tokens, detail) VALUES {rows}", values)

    def write_search(
        self, tier: str, query: str, hits: Sequence[Hit], actor: str, *, missed: Sequence[Hit] = (), **detail: Any
    ) -> None:
        """Append a search: the query, its hits in their order, and those just below the limit, with their scores."""
        found, below = (
            [[hit.page_id, round(hit.score, 5), {k: round(v, 5) for k, v in hit.parts.items()}] for hit in each]
            for each in (hits, missed)
        )
        reason = f"asked of {tier}"
        detail = {name: str(value) if isinstance(value, date) else value for name, value in detail.items()}
        self.write("search", reason=reason, actor=actor, tier=tier, query=query, found=found, missed=below, **detail)

    def movements(
        self, *, page: str | None = None, events: Sequence[str] = (), after: int = 0, limit: int | None = None,
        before_step: int | None = None,
    ) -> list[Movement]:  # fmt: skip
        """Return rows in order, of one page or of some events; with `limit` the newest ones."""
        if events:
            require_texts(events, "events")
        for value, name in ((after, "after"), (limit or 0, "limit")):
            if type(value) is not int:
                require_int(value, name)
        through = FOREVER if before_step is None else self._db.last_before("ledger", before_step)
        conditions: list[str] = ["id > ?", "id <= ?"]
        values: list[object] = [after, through]
        if page is not None:
            conditions.append("page = ?")
            values.append(page)
        if events:
            # The plus keeps SQLite from the index of events: a page has few rows, an event may have all.
            plus = "+" if page is not None else ""
            conditions.append(f"{plus}event IN ({','.join('?' * len(events))})")
            values.extend(events)
        sql = f"SELECT * FROM ledger WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"
        rows = self._db.rows(sql, (*values, -1 if limit is None else limit))
        return [self.movement(row) for row in reversed(rows)]

    def movement(self, row: Row) -> Movement:
        """Return the movement of a row."""
        at, step, detail = from_micros(row["at"], self._clock.zone), f"s{row['step']}", json.loads(row["detail"])
        about = (row["event"], row["page"], row["reason"], row["actor"], row["tokens"])
        return Movement(row["id"], at, step, *about, detail)
