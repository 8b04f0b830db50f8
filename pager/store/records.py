"""Messages from elsewhere, by the session that they belong to. SQL."""

import json
from collections.abc import Mapping
from datetime import tzinfo

from pager.blocks import text_of
from pager.clock import from_micros
from pager.store.database import Database, Row
from pager.types import FOREVER, Record, SessionUse

# A session's records are those that carry its name: a forgotten one has none.
_OF_SESSION = (
    "SELECT s.id, s.role, s.name, s.session, s.at, p.block FROM steps s JOIN parts p ON p.step = s.id"
    " WHERE s.session = ? AND s.purged = 0 AND s.id < ? ORDER BY s.id DESC LIMIT ?"
)


class RecordsTable:
    """Records and their sessions."""

    def __init__(self, db: Database, zone: tzinfo) -> None:
        self._db = db
        self._zone = zone

    def of_session(self, session: str, limit: int | None, before: int | None) -> list[Record]:
        """Return the records of a session in their order; with `limit` the newest, with `before` older than that."""
        values = (session, FOREVER if before is None else before, -1 if limit is None else limit)
        return [self._record(row) for row in reversed(self._db.rows(_OF_SESSION, values))]

    def sessions(self, prefix: str) -> list[SessionUse]:
        """Return the sessions whose name begins with a prefix, by name."""
        sql = (
            "SELECT session, count(*) AS count, max(at) AS last FROM steps WHERE session >= :prefix"
            " AND session < :prefix || char(0x10FFFF) AND purged = 0 GROUP BY session ORDER BY session"
        )
        rows = self._db.rows(sql, {"prefix": prefix})
        return [SessionUse(row["session"], row["count"], from_micros(row["last"], self._zone)) for row in rows]

    def forget(self, step: int, words: Mapping[int, str]) -> None:
        """Take a record out of its session and of every search: its searchable parts, with the words they are found by.
        Its text stays where it is."""
        for part, text in words.items():
            # The index has no texts of its own, so it has to be told.
            self._db.run("INSERT INTO said_words (said_words, rowid, text) VALUES ('delete', ?, ?)", (part, text))
            self._db.run("DELETE FROM said_vectors WHERE part = ?", (part,))
            self._db.run("DELETE FROM said_owed WHERE part = ?", (part,))
        self._db.run("UPDATE parts SET searchable = 0 WHERE step = ?", (step,))
        self._db.run("UPDATE steps SET session = NULL WHERE id = ?", (step,))

    def _record(self, row: Row) -> Record:
        block = json.loads(row["block"])
        at = from_micros(row["at"], self._zone)
        return Record(f"s{row['id']}", row["role"], text_of(block), at, row["name"], row["session"], block.get("data"))
