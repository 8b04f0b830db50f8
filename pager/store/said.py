"""The searchable parts of the conversation: words, neighbours and vectors. SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pager.store.database import Database, Row, stored_names
from pager.store.rows import NO_NAMES, Said, SaidMeta
from pager.types import FOREVER

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAID = "SELECT p.id, p.step, s.role, s.name, p.at, p.block, s.sources FROM parts p JOIN steps s ON s.id = p.step"
_WORDS = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.said_terms USING fts5vocab (main, said_words, instance)"

_HOLDING = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.said_holding USING fts5vocab (main, said_words, row)"


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

    def places(self, terms: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return for each term the parts that hold it, ascending, each as often as it does, in the order of `terms`."""
        import numpy as np

        self._db.make_temporary(_WORDS)
        # As one text: a row for each place would take ten times as long to fetch.
        each = "SELECT group_concat(doc) AS docs FROM temp.said_terms WHERE term = ?"
        rows = self._db.rows(" UNION ALL ".join([each] * len(terms)), tuple(terms)) if terms else []
        return [np.fromstring(row["docs"] or "", dtype=np.int64, sep=",") for row in rows]

    def said(self, parts: Sequence[int]) -> dict[int, Said]:
        """Return parts by their numbers."""
        rows = self._db.rows(f"{_SAID} WHERE p.id IN ({','.join(map(str, parts))})")
        return {row["id"]: _said(row) for row in rows}

    def parts_of(self, steps: Sequence[int]) -> dict[int, int]:
        """Return the searchable parts of these steps, each with its step."""
        sql = f"SELECT id, step FROM parts WHERE step IN ({','.join(map(str, steps))}) AND searchable = 1"
        return dict(map(tuple, self._db.rows(sql)))

    def newest(self, limit: int, after: int | None, before: int | None) -> list[Said]:
        """Return the newest searchable parts in the half-open span of time, but for those of withdrawn turns."""
        spans = ("AND p.at >= ?" if after is not None else "", "AND p.at < ?" if before is not None else "")
        values: list[Any] = [value for value in (after, before) if value is not None]
        kept = "NOT EXISTS (SELECT 1 FROM ledger l WHERE l.page = 's' || p.step AND l.event = 'withdraw')"
        sql = f"{_SAID} WHERE p.searchable = 1 AND {kept} {' '.join(spans)} ORDER BY p.at DESC, p.id DESC LIMIT ?"
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

    def store_vectors(self, rows: Sequence[tuple[int, bytes, bytes | None]]) -> None:
        """Store the vectors and token vectors of parts that are still queued; what was purged meanwhile gets none.

        Those that have a vector keep it: what is in memory has it already.
        """
        sql = "INSERT OR IGNORE INTO said_vectors (part, vector) SELECT part, ? FROM said_owed WHERE part = ?"
        self._db.run_many(sql, [(vector, part) for part, vector, _ in rows])
        sql = "INSERT OR REPLACE INTO said_token_vectors SELECT part, ? FROM said_owed WHERE part = ?"
        self._db.run_many(sql, [(tokens, part) for part, _, tokens in rows if tokens is not None])
        self._db.run_many("DELETE FROM said_owed WHERE part = ?", [(part,) for part, _, _ in rows])

    def vectors(self, after: int) -> list[tuple[int, int, bytes]]:
        """Return every vector that was stored beyond the row `after`: its row, its part, and itself."""
        rows = self._db.rows("SELECT row, part, vector FROM said_vectors WHERE row > ? ORDER BY row", (after,))
        return [(row["row"], row["part"], row["vector"]) for row in rows]

    def token_vectors(self, parts: Sequence[int]) -> dict[int, bytes]:
        """Return the token vectors of these parts."""
        sql = f"SELECT part, vectors FROM said_token_vectors WHERE part IN ({','.join(map(str, parts))})"
        return dict(map(tuple, self._db.rows(sql)))

    def vectors_of(self, steps: Sequence[int]) -> list[tuple[int, bytes]]:
        """Return every vector of these steps' parts, each with its step."""
        sql = "SELECT p.step, v.vector FROM parts p JOIN said_vectors v ON v.part = p.id"
        return list(map(tuple, self._db.rows(f"{sql} WHERE p.step IN ({','.join(map(str, steps))})")))

    def count_holding(self, terms: Sequence[str]) -> dict[str, int]:
        """Return for each term, in the form of the word index, how many parts contain it."""
        self._db.make_temporary(_HOLDING)
        sql = f"SELECT term, doc FROM temp.said_holding WHERE term IN ({','.join('?' * len(terms))})"
        counts = {row["term"]: row["doc"] for row in self._db.rows(sql, tuple(terms))}
        return {term: counts.get(term, 0) for term in terms}

    def dimension(self) -> int | None:
        """Return the dimension of the stored vectors; None if there are none."""
        newest = "(SELECT max(row) FROM said_vectors)"
        return self._db.value(f"SELECT length(vector) - 4 FROM said_vectors WHERE row = {newest}")

    def drop_vectors(self) -> None:
        """Drop all vectors and queue their parts."""
        self._db.vector_changes += 1
        self._db.run("INSERT OR IGNORE INTO said_owed SELECT part FROM said_vectors")
        self._db.run("DELETE FROM said_vectors")

    def drop_token_vectors(self) -> None:
        """Drop the token vectors, and queue every part that has a vector."""
        self._db.vector_changes += 1
        self._db.run("INSERT OR IGNORE INTO said_owed SELECT part FROM said_vectors")
        self._db.run("DELETE FROM said_token_vectors")

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
        sql = (
            "SELECT part FROM said_vectors WHERE length(vector) - 4 <> ?"
            " UNION SELECT part FROM said_token_vectors WHERE length(vectors) % 32 <> 0 ORDER BY part"
        )
        return [row["part"] for row in self._db.rows(sql, (dimension,))]


def _said(row: Row) -> Said:
    return Said(
        row["id"],
        row["step"],
        row["role"],
        row["name"],
        row["at"],
        json.loads(row["block"]),
        NO_NAMES if row["sources"] == "[]" else stored_names(row["sources"]),
    )


def _varint(size: bytes) -> int:
    """Decode SQLite's variable-length integer: seven bits a byte, the highest first."""
    value = 0
    for byte in size:
        value = value << 7 | byte & 127
        if byte < 128:
            break
    return value
