"""The ledger, taken commands, learned tokenizers and single values. SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import tzinfo

from pager.blocks import dump
from pager.clock import from_micros
from pager.store.database import Database, Row
from pager.types import Json, Movement


class JournalTable:
    """What happened and what was learned. The ledger is append-only; the database enforces it."""

    def __init__(self, db: Database, zone: tzinfo) -> None:
        self._db = db
        self._zone = zone

    def write(
        self, at: int, step: int, event: str, page: str | None, reason: str, actor: str, tokens: int = 0,
        detail: Json | None = None,
    ) -> None:  # fmt: skip
        self._db.run(
            "INSERT INTO ledger (at, step, event, page, reason, actor, tokens, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (at, step, event, page, reason, actor, tokens, dump(detail or {})),
        )

    def movements(
        self, *, page: str | None = None, events: Sequence[str] = (), after: int = 0, limit: int | None = None,
        before_step: int | None = None,
    ) -> list[Movement]:  # fmt: skip
        """Rows in order; with `limit` the newest ones."""
        conditions: list[str] = ["id > ?"]
        values: list[object] = [after]
        if before_step is not None:
            conditions.append("id <= ?")
            values.append(self._db.last_before("ledger", before_step))
        if page is not None:
            conditions.append("page = ?")
            values.append(page)
        if events:
            # The plus keeps SQLite from the index of events, where a page has few rows and an event may have all.
            plus = "+" if page is not None else ""
            conditions.append(f"{plus}event IN ({','.join('?' * len(events))})")
            values.extend(events)
        sql = f"SELECT * FROM ledger WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"
        rows = self._db.rows(sql, (*values, -1 if limit is None else limit))
        return [self.movement(row) for row in reversed(rows)]

    def command(self, command_id: str) -> str | None:
        """The outcome of a command that was taken; None for one that was not."""
        return self._db.value("SELECT outcome FROM commands WHERE id = ?", (command_id,))

    def take_command(self, command_id: str, at: int, kind: str, outcome: str) -> None:
        self._db.run("INSERT INTO commands VALUES (?, ?, ?, ?)", (command_id, at, kind, outcome))

    def tokenizer(self, model: str) -> str | None:
        return self._db.value("SELECT state FROM tokenizers WHERE model = ?", (model,))

    def keep_tokenizer(self, model: str, state: str) -> None:
        self._db.run("INSERT OR REPLACE INTO tokenizers VALUES (?, ?)", (model, state))

    def get(self, key: str) -> str | None:
        return self._db.value("SELECT value FROM meta WHERE key = ?", (key,))

    def put(self, key: str, value: str | None) -> None:
        if value is None:
            self._db.run("DELETE FROM meta WHERE key = ?", (key,))
        else:
            self._db.run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def movement(self, row: Row) -> Movement:
        return Movement(
            row["id"], from_micros(row["at"], self._zone), row["step"], row["event"], row["page"], row["reason"],
            row["actor"], row["tokens"], json.loads(row["detail"]),
        )  # fmt: skip
