"""Facts with their versions, tags, words and vectors: SQL for the archive."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pager.blocks import dump
from pager.clock import from_micros
from pager.safety.sources import Source, stored_name, untrusted_of
from pager.store.database import Database, Row, any_of, text_digest
from pager.store.rows import End, FactFilter, FactSize, Origin
from pager.types import FOREVER, Fact, FactCounts, FactUse, Json, number_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TERMS = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.fact_terms USING fts5vocab (main, fact_words, row)"
_NEVER_USED = "uses = 0 AND purged = 0 AND valid_until"  # IS NULL, or > :at
# A fact that is true at :at. Purged ones are never found.
_TRUE_AT = "f.purged = 0 AND f.valid_from <= {at} AND (f.valid_until IS NULL OR f.valid_until > {at})"
_REPEAT = (
    "SELECT f.id FROM facts f WHERE f.digest = ? AND f.text = ? AND f.key IS ? AND f.tags = ? AND"
    f" CASE WHEN f.stated THEN f.valid_from END IS ? AND f.forgotten IS NULL AND {_TRUE_AT.format(at='?')}"
    " ORDER BY f.id DESC LIMIT 1"
)


class ArchiveTable:
    """The archive as rows. A fact's text never changes; what changes is until when it was true."""

    def __init__(self, db: Database, zone: tzinfo) -> None:
        self._db = db
        self._zone = zone

    def append(
        self, text: str, key: str | None, tags: Sequence[str], valid_from: int, valid_until: int | None, at: int,
        actor: str, step: int, *, stated: bool, sources: Sequence[Origin], supersedes: int | None = None,
        superseded_by: int | None = None, expires: int | None = None,
    ) -> int:  # fmt: skip
        """Insert a fact. Return its number."""
        self._db.vector_changes += 1
        fact = self._db.run(
            "INSERT INTO facts (text, key, tags, valid_from, stated, valid_until, at, actor, step, supersedes,"
            " superseded_by, expires, digest, sources, trusted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (text, key, json.dumps(list(tags), ensure_ascii=False), valid_from, stated, valid_until, at, actor, step,
             supersedes, superseded_by, expires, text_digest(text), *store_origins(sources)),
        )  # fmt: skip
        if tags:
            self._db.run_many("INSERT OR IGNORE INTO fact_tags VALUES (?, ?)", [(tag.casefold(), fact) for tag in tags])
        return fact

    def repeat(self, text: str, key: str | None, tags: Sequence[str], start: int | None, at: int) -> int | None:
        """Return the fact that is true at a moment and says just the same; `start` is its stated beginning."""
        values = (text_digest(text), text, key, json.dumps(list(tags), ensure_ascii=False), start, at, at)
        return self._db.value(_REPEAT, values)

    def renew_end(self, fact: int, expires: int | None) -> None:
        """Let a fact end at another moment, or never by itself; earlier if another version takes its place."""
        taken_over = "(SELECT max(n.valid_from, facts.valid_from) FROM facts n WHERE n.id = facts.superseded_by)"
        sql = (
            "UPDATE facts SET expires = :end, valid_until = CASE WHEN forgotten IS NOT NULL THEN valid_until"
            f" WHEN superseded_by IS NULL THEN :end ELSE min(coalesce(:end, {taken_over}), {taken_over}) END"
            " WHERE id = :fact"
        )
        self._db.run(sql, {"end": expires, "fact": fact})

    def expired(self, before: int) -> list[Fact]:
        """Return the facts that were given an end before a moment, by their ids; not purged ones."""
        sql = "SELECT * FROM facts WHERE expires < ? AND purged = 0 ORDER BY id"
        return [self._fact(row) for row in self._db.rows(sql, (before,))]

    def origins(self, fact: int) -> list[Origin]:
        """Return the sources of a fact, each with the time at which it was stored."""
        return list(_origins(self._db.value("SELECT sources FROM facts WHERE id = ?", (fact,), "[]")))

    def put_sources(self, fact: int, sources: Sequence[Origin]) -> None:
        """Replace the sources of a fact."""
        self._db.run("UPDATE facts SET sources = ?, trusted = ? WHERE id = ?", (*store_origins(sources), fact))

    def of_source(self, source: str) -> list[Fact]:
        """Return the facts with a source, also those that have ended, but no purged ones."""
        sql = "SELECT * FROM facts WHERE purged = 0 AND sources_name(sources, ?) ORDER BY id"
        return [self._fact(row) for row in self._db.rows(sql, (source,))]

    def index_words(self, fact: int, text: str) -> None:
        """Index the words of a fact."""
        self._db.run("INSERT INTO fact_words (rowid, text) VALUES (?, ?)", (fact, text))

    def fact(self, fact: int) -> Fact | None:
        """Return a fact, if it exists."""
        return self.facts([fact]).get(fact)

    def current(self, at: int) -> list[Fact]:
        """Return all facts that are true at a moment, oldest first."""
        rows = self._db.rows(f"SELECT * FROM facts f WHERE {_TRUE_AT.format(at=':at')} ORDER BY f.id", {"at": at})
        return [self._fact(row) for row in rows]

    def has_come(self, since: int) -> bool:
        """Return True if anything but a sleep has stored a fact behind this one."""
        sql = "SELECT 1 FROM facts WHERE id > ? AND actor NOT GLOB 'sleep *' LIMIT 1"
        return self._db.row(sql, (since,)) is not None

    def last_fact(self) -> int:
        """Return the number of the newest fact; 0 if there is none."""
        return self._db.value("SELECT max(id) FROM facts", default=0)

    def ends(self, facts: Sequence[int]) -> dict[int, End]:
        """Return how these facts have ended, or will."""
        sql = f"SELECT id, valid_until, superseded_by, forgotten FROM facts WHERE id IN ({','.join(map(str, facts))})"
        return {number: End(*end) for number, *end in self._db.rows(sql)}

    def put_end(self, fact: int, end: End) -> None:
        """Replace how a fact has ended."""
        self._db.run("UPDATE facts SET valid_until = ?, superseded_by = ?, forgotten = ? WHERE id = ?", (*end, fact))

    def facts(self, ids: Sequence[int]) -> dict[int, Fact]:
        """Return facts by their numbers."""
        rows = self._db.rows(f"SELECT * FROM facts WHERE id IN ({','.join(map(str, ids))})")
        return {row["id"]: self._fact(row) for row in rows}

    def told_in(self, facts: Sequence[int]) -> dict[int, set[int]]:
        """Return for each fact the steps whose content it holds: the record, or the agent's and the message before."""
        sql = (
            "SELECT f.id, s.id AS step, s.turn, CASE WHEN f.actor GLOB 'sleep *' THEN f.sources END AS sources"
            f" FROM facts f LEFT JOIN steps s ON s.id = f.step WHERE f.id IN ({','.join(map(str, facts))})"
            " AND (f.actor = 'agent' OR f.actor GLOB 'sleep *' OR s.kind = 'record')"
        )
        rows = self._db.rows(sql)
        found = {row["id"]: {row["step"], row["turn"]} for row in rows if row["sources"] is None and row["step"]}
        # A sleep comes long after what was said: what it read is among the sources.
        slept = {row["id"]: _origins(row["sources"]) for row in rows if row["sources"] is not None}
        if slept:
            steps = {number: {number_of(origin.source.step or "s0") for origin in slept[number]} for number in slept}
            every = ",".join(str(step) for step in set[int]().union(*steps.values()))
            turns = dict(map(tuple, self._db.rows(f"SELECT id, turn FROM steps WHERE id IN ({every})")))
            found |= {number: own | {turns.get(step, step) for step in own} for number, own in steps.items()}
        return found

    def versions(self, key: str, *, beyond: int | None = None) -> list[tuple[Fact, bool]]:
        """Return the facts of a key by their start, and if that was stated; with `beyond` those that do not end by it,
        and the newest, which may have expired."""
        every = "SELECT * FROM facts WHERE key = :key AND purged = 0"
        newest = f"{every} AND superseded_by IS NULL AND forgotten IS NULL"
        lasting = " UNION ALL ".join(  # each in an index
            (
                f"{every} AND valid_until IS NULL",
                f"{every} AND valid_until > :beyond",
                f"{newest} AND valid_until <= :beyond",
            )
        )
        sql = f"{every if beyond is None else lasting} ORDER BY valid_from, id"
        return [(self._fact(row), bool(row["stated"])) for row in self._db.rows(sql, {"key": key, "beyond": beyond})]

    def counts(self, at: int) -> FactCounts:
        """Count all facts, those true at a moment, and those never used, each from a narrow index."""
        purged = self._db.value("SELECT count(*) FROM facts WHERE purged = 1")
        # A fact that is not true has ended, or has not begun; what has not ended and is purged is neither.
        ended = "valid_until IS NOT NULL AND valid_until <= :at"
        over, to_come, gone, *never = (
            self._db.value(f"SELECT count(*) FROM facts WHERE {condition}", {"at": at})
            for condition in (
                ended,
                f"valid_from > at AND valid_from > :at AND NOT ({ended})",
                f"purged = 1 AND valid_from <= :at AND NOT ({ended})",
                f"{_NEVER_USED} IS NULL",
                f"{_NEVER_USED} > :at",
            )
        )
        stored = self._db.value("SELECT max(id) FROM facts", default=0)  # no fact is ever deleted
        return FactCounts(stored - purged, stored - over - to_come - gone, sum(never))

    def most_used(self, limit: int) -> list[FactUse]:
        """Return the facts with the most uses."""
        sql = "SELECT * FROM facts WHERE uses > 0 AND purged = 0 ORDER BY uses DESC, id DESC LIMIT ?"
        return [self.use(row) for row in self._db.rows(sql, (limit,))]

    def never_used(self, limit: int, at: int) -> list[Fact]:
        """Return the oldest facts that nothing ever returned and that have not ended at a moment."""
        rows = list[Row]()
        for lasting in ("IS NULL", "> :at"):  # each in the index
            sql = f"SELECT * FROM facts WHERE {_NEVER_USED} {lasting} ORDER BY +id LIMIT :limit"
            rows += self._db.rows(sql, {"at": at, "limit": limit})
        return [self._fact(row) for row in sorted(rows, key=lambda row: row["id"])[:limit]]

    def newest(self, limit: int, before_step: int | None = None) -> list[Fact]:
        """Return the newest facts, or those that were the newest before a step was written, newest first."""
        through = FOREVER if before_step is None else self._db.last_before("facts", before_step)
        sql = "SELECT * FROM facts WHERE id <= ? ORDER BY id DESC LIMIT ?"
        return [self._fact(row) for row in self._db.rows(sql, (through, limit))]

    def last_at(self) -> int | None:
        """Return when the newest fact was stored."""
        return self._db.value("SELECT at FROM facts WHERE id = (SELECT max(id) FROM facts)")

    def current_by_key(self, at: int, prefix: str) -> list[FactSize]:
        """Return the facts true at a moment by key: all of them, or those whose key begins with a prefix."""
        begins = "f.key >= :prefix AND f.key < :prefix || char(0x10FFFF) AND" if prefix else ""
        sql = (
            "SELECT f.id, ifnull(f.key, '') AS name, length(CAST(f.text AS BLOB)) AS bytes,"
            " CASE WHEN f.trusted THEN '[]' ELSE f.sources END AS sources FROM facts f"
            f" WHERE {begins} {_TRUE_AT.format(at=':at')} ORDER BY f.key, f.id DESC"
        )
        rows = self._db.rows(sql, {"at": at, "prefix": prefix})
        sizes: list[FactSize] = []
        for row in rows:
            via = untrusted_of([origin.source for origin in _origins(row["sources"])])
            sizes.append(FactSize(f"f{row['id']}", row["name"], row["bytes"], via))
        return sizes

    def release_key(self, fact: int) -> None:
        """Give up a fact's key for the moment in which the next fact with that key is not stored yet."""
        self._db.run("UPDATE facts SET superseded_by = id WHERE id = ?", (fact,))

    def supersede(self, old: int, new: int, until: int) -> None:
        """End a fact in favour of a newer one."""
        self._db.run("UPDATE facts SET superseded_by = ?, valid_until = ? WHERE id = ?", (new, until, old))

    def forget(self, fact: int, reason: str, until: int) -> None:
        """End a fact for a reason."""
        self._db.run("UPDATE facts SET forgotten = ?, valid_until = ? WHERE id = ?", (reason, until, fact))

    def used(self, facts: Sequence[int], at: int) -> None:
        """Count a use of each fact."""
        self._db.run_many("UPDATE facts SET uses = uses + 1, used_at = ? WHERE id = ?", [(at, fact) for fact in facts])

    def true_at(self, ids: Sequence[int], wanted: FactFilter) -> set[int]:
        """Return which of these facts fit a filter."""
        if not ids:
            return set()
        fits, values = _fitting(wanted)
        sql = f"SELECT f.id FROM facts f WHERE f.id IN ({','.join(map(str, ids))}) AND {fits}"
        return {row["id"] for row in self._db.rows(sql, values)}

    def newest_of(self, wanted: FactFilter, limit: int) -> list[int]:
        """Return the newest facts that fit a filter."""
        tags = wanted.tags
        fits, values = _fitting(wanted._replace(tags=tags[1:]))
        # Without a tag it goes over the facts. They are few beside what an index would cost every fact that is stored.
        every, order = ("facts f WHERE", "f.id") if not tags else (
            "fact_tags g JOIN facts f ON f.id = g.fact WHERE g.tag = ? AND", "g.fact"
        )  # fmt: skip
        first = [tag.casefold() for tag in tags[:1]]
        rows = self._db.rows(f"SELECT f.id FROM {every} {fits} ORDER BY {order} DESC LIMIT ?", (*first, *values, limit))
        return [row["id"] for row in rows]

    def match(
        self, words: Sequence[str], limit: int, ranked: int, wanted: FactFilter
    ) -> tuple[list[int], dict[int, float]]:
        """Return the best facts with any of these words that fit, and the BM25 scores of so many more, true or not."""
        chosen = "SELECT rowid AS id, -rank AS score FROM fact_words WHERE fact_words MATCH ?"
        enough = limit + limit // 4  # ranking reads no fact; mostly so many hold as many as are wanted
        rows = self._db.rows(f"{chosen} ORDER BY rank, rowid DESC LIMIT ?", (any_of(words), max(ranked, enough)))
        scores = {row["id"]: row["score"] for row in rows}
        best = list(scores)[:enough]
        true = self.true_at(best, wanted)
        found = [number for number in best if number in true][:limit]
        if len(found) < limit and len(best) == enough:
            fits, values = _fitting(wanted)
            every = (
                "SELECT f.id, -w.rank AS score FROM fact_words w JOIN facts f ON f.id = w.rowid"
                f" WHERE fact_words MATCH ? AND {fits} ORDER BY w.rank, f.id DESC LIMIT ?"
            )
            rows = self._db.rows(every, (any_of(words), *values, limit))
            found = [row["id"] for row in rows]
            scores |= {row["id"]: row["score"] for row in rows}
        return found, scores

    def count_holding(self, terms: Sequence[str]) -> dict[str, int]:
        """Return for each term, in the form of the word index, how many facts contain it, true or not."""
        self._db.make_temporary(_TERMS)
        sql = f"SELECT term, doc FROM temp.fact_terms WHERE term IN ({','.join('?' * len(terms))})"
        counts = {row["term"]: row["doc"] for row in self._db.rows(sql, tuple(terms))}
        return {term: counts.get(term, 0) for term in terms}

    def holding(self, terms: Sequence[str], ids: Sequence[int]) -> dict[int, list[str]]:
        """Return which of these facts hold which of the terms, in the form of the word index."""
        found: dict[int, list[str]] = {}
        sql = f"SELECT rowid AS id FROM fact_words WHERE fact_words MATCH ? AND rowid IN ({','.join(map(str, ids))})"
        for term in terms if ids else ():
            for row in self._db.rows(sql, (any_of([term]),)):
                found.setdefault(row["id"], []).append(term)
        return found

    def count_searchable(self) -> int:
        """Count the facts that are not purged."""
        # No fact is ever deleted.
        sql = "SELECT ifnull(max(id), 0) - (SELECT count(*) FROM facts WHERE purged = 1) FROM facts"
        return self._db.value(sql, default=0)

    def store_vectors(self, fact: int, vector: NDArray[np.float32], tokens: bytes | None) -> None:
        """Store the vector of a fact behind all others, unless it has one, and its token vectors if there are any."""
        sql = "INSERT OR IGNORE INTO vectors (fact, vector) VALUES (?, ?)"
        self._db.run(sql, (fact, vector.astype("float32").tobytes()))
        if tokens is not None:
            self._db.run("INSERT OR REPLACE INTO fact_token_vectors VALUES (?, ?)", (fact, tokens))

    def copy_vectors(self, fact: int, to: int) -> None:
        """Store for a fact behind all others the vectors that another one has."""
        self._db.run("INSERT INTO vectors (fact, vector) SELECT ?, vector FROM vectors WHERE fact = ?", (to, fact))
        sql = "INSERT INTO fact_token_vectors SELECT ?, vectors FROM fact_token_vectors WHERE fact = ?"
        self._db.run(sql, (to, fact))

    def renew_vectors(self, fact: int) -> None:
        """Store the vectors of a fact behind all others: an index that was built while it had ended lacks it."""
        self._db.vector_changes += 1
        row = self._db.row("SELECT vector FROM vectors WHERE fact = ?", (fact,))
        tokens = self.token_vectors([fact]).get(fact)
        if row is not None:
            self._db.run("DELETE FROM vectors WHERE fact = ?", (fact,))
            self._db.run("INSERT INTO vectors (fact, vector) VALUES (?, ?)", (fact, row["vector"]))
            if tokens is not None:
                self._db.run("INSERT INTO fact_token_vectors VALUES (?, ?)", (fact, tokens))

    def token_vectors(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the token vectors of these facts."""
        sql = f"SELECT fact, vectors FROM fact_token_vectors WHERE fact IN ({','.join(map(str, ids))})"
        return dict(map(tuple, self._db.rows(sql)))

    def vectors(self, ids: Sequence[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Return the vectors of these facts."""
        rows = self._db.rows(f"SELECT fact, vector FROM vectors WHERE fact IN ({','.join(map(str, ids))})")
        return _matrix(rows)

    def vectors_after(self, row: int, limit: int) -> tuple[int, list[int], NDArray[np.float32]]:
        """Return the next vectors behind a row, their facts, and the row of the last one."""
        sql = "SELECT row, fact, vector FROM vectors WHERE row > ? ORDER BY row LIMIT ?"
        rows = self._db.rows(sql, (row, limit))
        return (rows[-1]["row"] if rows else row, *_matrix(rows))

    def to_index(self, after: int, through: int, limit: int, moment: int) -> tuple[int, list[Row], NDArray[np.float32]]:
        """Return the next facts for an index, in the order of their vectors: those that have not ended by a moment."""
        sql = (
            "SELECT v.row, v.fact, v.vector, f.text, f.key, f.tags, f.sources, f.valid_from, f.at FROM vectors v"
            " JOIN facts f ON f.id = v.fact WHERE v.row > ? AND v.row <= ? AND f.purged = 0"
            " AND (f.valid_until IS NULL OR f.valid_until > ?) ORDER BY v.row LIMIT ?"
        )
        rows = self._db.rows(sql, (after, through, moment, limit))
        return (rows[-1]["row"] if rows else through, rows, _matrix(rows)[1])

    def count_vectors(self) -> int:
        """Count the vectors."""
        return self._db.value("SELECT count(*) FROM vectors")

    def last_vector(self) -> int:
        """Return the row of the newest vector; 0 if there is none."""
        return self._db.value("SELECT max(row) FROM vectors", default=0)

    def digest_at(self, row: int) -> int:
        """Return the digest of the fact whose vector is in this row; 0 if there is none, 1 if a purge rewrote it."""
        sql = "SELECT ifnull(f.digest, 1) FROM vectors v JOIN facts f ON f.id = v.fact WHERE v.row = ?"
        return self._db.value(sql, (row,), default=0)

    def count_ended(self, after: int, through: int) -> int:
        """Count the facts that ended in that time."""
        sql = "SELECT count(*) FROM facts WHERE valid_until > ? AND valid_until <= ?"
        return self._db.value(sql, (after, through))

    def without_vector(self, limit: int, *, tokens: bool = False) -> list[tuple[int, str]]:
        """Return the facts whose embedding failed or is not done (with `tokens` of word pieces, too), oldest first."""
        sql = (
            f"SELECT f.id, f.text FROM facts f LEFT JOIN {_vectors_table(tokens)} v ON v.fact = f.id"
            " WHERE v.fact IS NULL AND f.purged = 0 ORDER BY f.id LIMIT ?"
        )
        return [(row["id"], row["text"]) for row in self._db.rows(sql, (limit,))]

    def count_without_vector(self, *, tokens: bool = False) -> int:
        """Count the searchable facts without a vector, or with `tokens` without those of word pieces."""
        return self.count_searchable() - self._db.value(f"SELECT count(*) FROM {_vectors_table(tokens)}")

    def wrong_vectors(self, dimension: int) -> list[int]:
        """Return the facts whose vector has another dimension."""
        sql = (
            "SELECT fact FROM vectors WHERE length(vector) <> ?"
            " UNION SELECT fact FROM fact_token_vectors WHERE length(vectors) % 32 <> 0 ORDER BY fact"
        )
        return [row["fact"] for row in self._db.rows(sql, (4 * dimension,))]

    def drop_token_vectors(self) -> None:
        """Delete the token vectors of all facts."""
        self._db.vector_changes += 1
        self._db.run("DELETE FROM fact_token_vectors")

    def dimension(self) -> int | None:
        """Return the dimension of the stored vectors; None if there are none."""
        return self._db.value("SELECT length(vector) / 4 FROM vectors WHERE row = (SELECT max(row) FROM vectors)")

    def drop_vectors(self) -> None:
        """Delete all vectors."""
        self._db.vector_changes += 1
        self._db.run("DELETE FROM vectors")

    def use(self, row: Row) -> FactUse:
        """Return the uses of a fact from its row."""
        used_at = row["used_at"]
        return FactUse(self._fact(row), row["uses"], None if used_at is None else from_micros(used_at, self._zone))

    def _fact(self, row: Row) -> Fact:
        until, at = row["valid_until"], from_micros(row["at"], self._zone)
        sources = tuple(origin.source for origin in _origins(row["sources"]))
        return Fact(
            id=f"f{row['id']}", text=row["text"], key=row["key"], tags=tuple(json.loads(row["tags"])),
            valid_from=at if row["valid_from"] == row["at"] else from_micros(row["valid_from"], self._zone),
            valid_until=None if until is None else from_micros(until, self._zone),
            at=at, actor=row["actor"], step=f"s{row['step']}",
            supersedes=_id(row["supersedes"]), superseded_by=_id(row["superseded_by"]), forgotten=row["forgotten"],
            purged=bool(row["purged"]), sources=sources, via=() if row["trusted"] else untrusted_of(sources),
            expires=None if row["expires"] is None else from_micros(row["expires"], self._zone),
        )  # fmt: skip


def _vectors_table(tokens: bool) -> str:  # noqa: FBT001
    return "fact_token_vectors" if tokens else "vectors"


def _id(number: int | None) -> str | None:
    return None if number is None else f"f{number}"


@lru_cache(4096)
def _origins(stored: str) -> tuple[Origin, ...]:
    return tuple(read_origins(json.loads(stored)))


def read_origins(rows: Iterable[Json]) -> list[Origin]:
    """Return the sources of a fact from how they are stored."""
    origins: list[Origin] = []
    for row in rows:
        kind, _, name = stored_name(row["source"]).partition(":")
        via = tuple(map(stored_name, row.get("via", ())))
        origins.append(Origin(Source(kind, name, f"s{row['step']}", via), row["at"]))
    return origins


def store_origins(origins: Sequence[Origin]) -> tuple[str, bool]:
    """Return the columns `sources` and `trusted`."""
    return dump(origin_rows(origins)), not all(source.untrusted for source, _ in origins)


def origin_rows(origins: Iterable[Origin]) -> list[Json]:
    """Return the sources of a fact as they are stored."""
    rows: list[Json] = []
    for source, at in origins:
        more = {"via": source.via} if source.via else {}
        rows.append({"source": source.origin, "step": int((source.step or "s0")[1:]), "at": at, **more})
    return rows


def _fitting(wanted: FactFilter) -> tuple[str, list[Any]]:
    """Return the condition for a fact f that fits a filter."""
    tagged = " AND EXISTS (SELECT 1 FROM fact_tags t WHERE t.tag = ? AND t.fact = f.id)"
    condition = _TRUE_AT.format(at="?") + tagged * len(wanted.tags)
    values: list[Any] = [wanted.at, wanted.at, *map(str.casefold, wanted.tags)]
    for limit, beyond in zip(wanted.stored, (">=", "<"), strict=True):
        if limit is not None:
            condition += f" AND f.at {beyond} ?"
            values.append(limit)
    if wanted.source:
        condition += " AND sources_name(f.sources, ?)"
        values.append(wanted.source)
    if wanted.only_trusted:
        condition += " AND f.trusted = 1"
    return condition, values


def _matrix(rows: Sequence[Row]) -> tuple[list[int], NDArray[Any]]:
    import numpy as np

    ids = [row["fact"] for row in rows]
    if not ids:
        return [], np.empty((0, 0), dtype=np.float32)
    return ids, np.frombuffer(b"".join(row["vector"] for row in rows), dtype=np.float32).reshape(len(ids), -1)
