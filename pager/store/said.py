"""The searchable parts of the conversation: words, neighbours and vectors. SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pager.store.database import Database, Row
from pager.store.rows import Said, SaidMeta
from pager.types import FOREVER

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAID = "SELECT p.id, p.step, s.role, s.name, p.at, p.block FROM parts p JOIN steps s ON s.id = p.step"
_WORDS = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.said_terms USING fts5vocab (main, said_words, instance)"


class SaidTable:
    """Searchable parts. Their words are in `said_words`, whose rows are theirs."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def metadata(self, after: int) -> list[SaidMeta]:
        """Return speaker, time and length of every searchable part beyond `after`, in the order in which they came."""
        sql = (
            "SELECT p.id, p.step, p.at, s.kind, s.role, s.name, s.session, d.sz FROM parts p"
            " JOIN steps s ON s.id = p.step JOIN said_words_docsize d ON d.id = p.id"
            " WHERE p.searchable = 1 AND p.id > ? ORDER BY p.id"
        )
        return [SaidMeta._make((*row[:-1], _varint(row[-1]))) for row in self._db.rows(sql, (after,))]

    def places(self, term: str) -> NDArray[np.int64]:
        """Return the parts that hold a term, ascending, each as often as it does. The term comes from `terms`."""
        import numpy as np

        self._db.make_temporary(_WORDS)
        # As one text: a row for each place would take ten times as long to fetch.
        joined: str = self._db.value("SELECT group_concat(doc) FROM temp.said_terms WHERE term = ?", (term,), "")
        return np.fromstring(joined, dtype=np.int64, sep=",")

    def said(self, parts: Sequence[int]) -> dict[int, Said]:
        """Return parts by their numbers."""
        rows = self._db.rows(f"{_SAID} WHERE p.id IN ({','.join(map(str, parts))})")
        return {row["id"]: _said(row) for row in rows}

    def newest(self, limit: int, after: int | None, before: int | None) -> list[Said]:
        """Return the newest searchable parts in the half-open span of time."""
        spans = ("AND p.at >= ?" if after is not None else "", "AND p.at < ?" if before is not None else "")
        values: list[Any] = [value for value in (after, before) if value is not None]
        sql = f"{_SAID} WHERE p.searchable = 1 {' '.join(spans)} ORDER BY p.at DESC, p.id DESC LIMIT ?"
        return [_said(row) for row in self._db.rows(sql, (*values, limit))]

    def enqueue(self, steps: Sequence[int]) -> None:
        """Queue the searchable parts of these steps for embedding."""
        self._db.vector_changes += 1
        sql = "INSERT OR IGNORE INTO said_owed SELECT id FROM parts WHERE step = ? AND searchable = 1"
        self._db.run_many(sql, [(step,) for step in steps])

    def queued(self, limit: int, *, newest: bool = False) -> list[Said]:
        """Return the oldest queued parts, or the newest, in the order in which they came."""
        chosen = f"SELECT part FROM said_owed ORDER BY part {'DESC' if newest else ''} LIMIT ?"
        return [_said(row) for row in self._db.rows(f"{_SAID} WHERE p.id IN ({chosen}) ORDER BY p.id", (limit,))]

    def count_queued(self) -> int:
        """Count the queued parts."""
        return self._db.value("SELECT count(*) FROM said_owed")

    def store_vectors(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Store vectors of parts that are still queued; what was purged meanwhile gets none."""
        sql = "INSERT OR REPLACE INTO said_vectors (part, vector) SELECT part, ? FROM said_owed WHERE part = ?"
        self._db.run_many(sql, [(vector, part) for part, vector in rows])
        self._db.run_many("DELETE FROM said_owed WHERE part = ?", [(part,) for part, _ in rows])

    def vectors(self, after: int) -> list[tuple[int, int, bytes]]:
        """Return every vector that was stored beyond the row `after`: its row, its part, and itself."""
        rows = self._db.rows("SELECT row, part, vector FROM said_vectors WHERE row > ? ORDER BY row", (after,))
        return [(row["row"], row["part"], row["vector"]) for row in rows]

    def dimension(self) -> int | None:
        """Return the dimension of the stored vectors; None if there are none."""
        newest = "(SELECT max(row) FROM said_vectors)"
        return self._db.value(f"SELECT length(vector) - 4 FROM said_vectors WHERE row = {newest}")

    def drop_vectors(self) -> None:
        """Drop all vectors and queue their parts."""
        self._db.vector_changes += 1
        self._db.run("INSERT OR IGNORE INTO said_owed SELECT part FROM said_vectors")
        self._db.run("DELETE FROM said_vectors")

    def renew_vector(self, part: int) -> None:
        """Drop the vector of a part, if it has one, and queue the part."""
        self._db.vector_changes += 1
        self._db.run("INSERT OR IGNORE INTO said_owed SELECT part FROM said_vectors WHERE part = ?", (part,))
        self._db.run("DELETE FROM said_vectors WHERE part = ?", (part,))

    def unqueued(self) -> list[int]:
        """Return evicted or recorded steps with a searchable part that has no vector and is not queued."""
        sql = (
            "SELECT DISTINCT p.step FROM parts p JOIN steps s ON s.id = p.step WHERE p.searchable = 1"
            " AND NOT EXISTS (SELECT 1 FROM said_vectors v WHERE v.part = p.id)"
            " AND NOT EXISTS (SELECT 1 FROM said_owed o WHERE o.part = p.id) AND (s.kind = 'record' OR EXISTS"
            " (SELECT 1 FROM residency r WHERE r.page = 's' || s.id AND r.how = 'step' AND r.until_step < ?))"
            " ORDER BY p.step"
        )
        return [row["step"] for row in self._db.rows(sql, (FOREVER,))]

    def wrong_vectors(self, dimension: int) -> list[int]:
        """Return the parts whose vector is of another dimension."""
        rows = self._db.rows("SELECT part FROM said_vectors WHERE length(vector) - 4 <> ? ORDER BY part", (dimension,))
        return [row["part"] for row in rows]


def _said(row: Row) -> Said:
    return Said(row["id"], row["step"], row["role"], row["name"], row["at"], json.loads(row["block"]))


def _varint(size: bytes) -> int:
    """Decode SQLite's variable-length integer: seven bits a byte, the highest first."""
    value = 0
    for byte in size:
        value = value << 7 | byte & 127
        if byte < 128:
            break
    return value
