"""Long lists in pieces, and every place that may hold a text: what a debug view asks. SQL.

The ids of steps, facts and ledger rows have no gaps: a piece in the middle of a list is found without counting to it.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo

from pager.clock import from_micros
from pager.store.archive import ArchiveTable
from pager.store.core import CoreTable
from pager.store.database import Database, Row, stored_names
from pager.store.ledger import LedgerTable
from pager.store.prompt import answered_of
from pager.store.rows import AnsweredRequest, CoreVersion, RequestSpan, Rows, SaidPart, StepRow
from pager.types import FOREVER, Fact, FactUse, Json, Movement, PageId, Usage

BEGINS_CHARS = 240
ENDED_LATER = (  # than the row :moved of the ledger
    "EXISTS (SELECT 1 FROM ledger WHERE page = 'f' || facts.id AND event IN ('supersede', 'forget') AND id > :moved)"
)
ENDED = f"(valid_until IS NOT NULL AND valid_until <= :now AND NOT {ENDED_LATER})"
RESIDENT = (  # in the request that the step :at answered
    "EXISTS (SELECT 1 FROM residency WHERE page = 's' || steps.id AND how = 'step'"
    " AND until_step >= :at AND from_step < :at)"
)
TEXT_OF_PART = (
    "coalesce(json_extract(block, '$.text'), json_extract(block, '$.content[0].text'), json_extract(block, '$.input'))"
)
FACTS = {  # what a list of facts may be of
    "all": "",
    "current": f"purged = 0 AND NOT {ENDED}",
    "ended": ENDED,
    "used": "uses > 0 AND purged = 0",
    "unused": f"uses = 0 AND purged = 0 AND NOT {ENDED}",
}
STEPS = {"all": "", "resident": RESIDENT, "evicted": f"NOT {RESIDENT}"}  # what a list of steps may be of


class ListsTable:
    """Pieces of long lists, newest first, and the places of a text."""

    def __init__(self, db: Database, zone: tzinfo, archive: ArchiveTable, core: CoreTable, ledger: LedgerTable) -> None:
        self._db = db
        self._zone = zone
        self._archive = archive
        self._core = core
        self._ledger = ledger

    def requests(self, offset: int, limit: int, through: int | None = None) -> Rows[AnsweredRequest]:
        """Return requests, newest first; with `through` from the one that this step answered."""
        last = FOREVER if through is None else through
        sql = "SELECT * FROM requests WHERE step <= ? ORDER BY step DESC LIMIT ? OFFSET ?"
        rows = [self._request_row(row) for row in self._db.rows(sql, (last, limit, offset))]
        return Rows(self._db.value("SELECT count(*) FROM requests WHERE step <= ?", (last,)), rows)

    def usage(self, through: int | None = None) -> Usage:
        """Return the usage of all requests together; with `through` up to the one that this step answered."""
        columns = ("input - cache_read - cache_write", "output", "cache_read", "cache_write", "searches")
        last = FOREVER if through is None else through
        sums = ", ".join(f"sum({column})" for column in columns)
        row = self._db.row(f"SELECT {sums} FROM requests WHERE step <= ?", (last,))
        return Usage(*(number or 0 for number in row or ()))

    def request_spans(self, most: int) -> list[RequestSpan]:
        """Return all requests, oldest first, in at most `most` spans of about the same number of requests."""
        sql = (
            "WITH numbered AS (SELECT step, at, epoch, ifnull(input, estimate) AS used,"
            " (row_number() OVER (ORDER BY step) - 1) * min(:most, (SELECT count(*) FROM requests))"
            " / (SELECT count(*) FROM requests) AS span FROM requests)"
            " SELECT min(step) AS first, max(step) AS last, min(at) AS at, count(*) AS count, max(used) AS used,"
            " max(epoch) AS epoch FROM numbered GROUP BY span ORDER BY span"
        )
        return [
            RequestSpan(f"s{row['first']}", f"s{row['last']}", from_micros(row["at"], self._zone), *tuple(row)[3:])
            for row in self._db.rows(sql, {"most": most})
        ]

    def _request_row(self, row: Row) -> AnsweredRequest:
        request = answered_of(row)
        return AnsweredRequest(
            step=f"s{request.step}", at=from_micros(row["at"], self._zone), epoch=request.epoch, model=request.model,
            usage=request.usage, estimated_tokens=request.estimate, last_part=f"x{request.through_part}",
        )  # fmt: skip

    def steps(self, kind: str, like: str, offset: int, limit: int, before: int | None = None) -> Rows[StepRow]:
        """Return steps of a kind (`STEPS`), newest first; with `like` those that fit a pattern, with `before` those
        before a step, as they were in the request that it answered."""
        at, last = (FOREVER, None) if before is None else (before, before - 1)
        said = f"SELECT 1 FROM parts WHERE step = steps.id AND kind = 'said' AND {TEXT_OF_PART} LIKE :like"
        holds = f"purged = 0 AND (name LIKE :like OR EXISTS ({said}))" if like else ""
        where = " AND ".join(filter(None, (STEPS[kind], holds)))
        total, rows = self._section("steps", where, {"at": at, "like": like}, offset, limit, last)
        return Rows(total, [self._step_row(row, at) for row in rows])

    def _section(
        self, table: str, where: str, values: Json, offset: int, limit: int, last: int | None = None
    ) -> tuple[int, list[Row]]:
        """Return how many rows of a table there are, all or those of a condition, and some of them, newest first; with
        `last` up to this id."""
        if not where:
            newest = self._db.value(f"SELECT max(id) FROM {table}", default=0)
            total = newest if last is None else min(newest, last)
            sql = f"SELECT * FROM {table} WHERE id <= ? ORDER BY id DESC LIMIT ?"
            return total, self._db.rows(sql, (total - offset, limit))
        values, where = {**values, "last": FOREVER if last is None else last}, f"id <= :last AND {where}"
        total = self._db.value(f"SELECT count(*) FROM {table} WHERE {where}", values)
        chosen = f"SELECT id FROM {table} WHERE {where} ORDER BY id DESC LIMIT :limit OFFSET :offset"
        sql = f"SELECT * FROM {table} WHERE id IN ({chosen}) ORDER BY id DESC"
        return total, self._db.rows(sql, {**values, "offset": offset, "limit": limit})

    def steps_between(self, start: int, end: int) -> list[StepRow]:
        """Return the steps of a half-open span of time, in their order; not purged ones."""
        sql = "SELECT * FROM steps WHERE at >= ? AND at < ? AND purged = 0 ORDER BY at, id"
        return [self._step_row(row) for row in self._db.rows(sql, (start, end))]

    def step(self, step: int) -> StepRow | None:
        """Return a step, if it exists."""
        row = self._db.row("SELECT * FROM steps WHERE id = ?", (step,))
        return self._step_row(row) if row else None

    def _step_row(self, row: Row, at: int = FOREVER) -> StepRow:
        step = row["id"]
        parts = self._db.rows(
            "SELECT substr(coalesce(json_extract(block, '$.text'), json_extract(block, '$.content[0].text'), ''), 1, ?)"
            " AS text, json_extract(block, '$.type') AS type, json_extract(block, '$.name') AS name"
            " FROM parts WHERE step = ? AND kind = 'said' ORDER BY id LIMIT 12",
            (BEGINS_CHARS, step),
        )
        texts = [part["text"] for part in parts if part["type"] == "text" and part["text"].strip()]
        sql = "SELECT sum(words + digits + other + code + media) FROM sizes JOIN parts ON id = part WHERE step = ?"
        tokens = self._db.value(sql, (step,), default=0)
        sql = "SELECT 1 FROM residency WHERE page = ? AND until_step >= ? AND from_step < ? AND how = 'step'"
        resident = self._db.row(sql, (f"s{step}", at, at))
        who = "agent" if row["kind"] == "assistant" else row["name"] or row["role"]
        return StepRow(
            f"s{step}", f"s{row['turn']}", row["kind"], who, from_micros(row["at"], self._zone), tokens,
            resident is not None, bool(row["purged"]), texts[0] if texts else "",
            tuple(str(part["name"]) for part in parts if str(part["type"]).endswith("tool_use")),
            tuple(sorted(stored_names(row["sources"]))), bool(row["ends_turn"]),
        )  # fmt: skip

    def sources(self, at: int) -> dict[str, int]:
        """Return the sources of the facts that are true at a moment, and how many facts have each."""
        true = "f.purged = 0 AND f.valid_from <= :at AND (f.valid_until IS NULL OR f.valid_until > :at)"
        each = "FROM facts f, json_each(f.sources) s"
        own = f"SELECT f.id, json_extract(s.value, '$.source') AS name {each} WHERE {true}"
        behind = f"SELECT f.id, v.value {each}, json_each(s.value, '$.via') v WHERE {true}"
        sql = f"SELECT name, count(DISTINCT id) AS count FROM ({own} UNION ALL {behind}) GROUP BY name ORDER BY name"
        return {row["name"]: row["count"] for row in self._db.rows(sql, {"at": at})}

    def facts(
        self,
        kind: str,
        text: str,
        source: str,
        now: int,
        offset: int,
        limit: int,
        before: int | None = None,
        *,
        prefix: str = "",
    ) -> Rows[FactUse]:
        """Return facts of a kind (`FACTS`), newest first; of a source; with `text` only those that hold it; with
        `prefix` those whose key begins with it; with `before` those stored before a step, as they were then. Uses are
        always those of now."""
        # SQLite's `lower` knows ASCII letters only.
        forms = (text,) if text.isascii() else (text, text.lower(), text.upper(), text.title())
        cased = {f"text{place}": form for place, form in enumerate(dict.fromkeys(forms))}
        columns = ("text", "key", "tags")
        held = " OR ".join(f"instr(lower({column}), lower(:{name}))" for column in columns for name in cased)
        of_source = "sources_name(sources, :source)" if source else ""
        begins = "key >= :prefix AND key < :prefix || char(0x10FFFF)" if prefix else ""
        where = " AND ".join(filter(None, (begins, FACTS[kind], of_source, f"({held})" if text else "")))
        moved, last = self._last_before("ledger", before), self._last_before("facts", before)
        now = now if before is None else self._db.value("SELECT at FROM steps WHERE id = ?", (before,), now)
        values = {**cased, "source": source, "now": now, "prefix": prefix, "moved": FOREVER if moved is None else moved}
        total, rows = self._section("facts", where, values, offset, limit, last)
        return Rows(total, [self._fact_at(row, moved) for row in rows])

    def use(self, fact: int) -> FactUse:
        """Return a fact with its uses."""
        return self._archive.use(self._db.rows("SELECT * FROM facts WHERE id = ?", (fact,))[0])

    def _fact_at(self, row: Row, moved: int | None) -> FactUse:
        """Return a fact as it was after the row `moved` of the ledger: without an end that came later."""
        use = self._archive.use(row)
        sql = f"SELECT 1 FROM facts WHERE id = :id AND {ENDED_LATER}"
        if moved is None or not self._db.row(sql, {"id": row["id"], "moved": moved}):
            return use
        return replace(use, fact=replace(use.fact, valid_until=use.fact.expires, superseded_by=None, forgotten=None))

    def _last_before(self, table: str, step: int | None) -> int | None:
        return None if step is None else self._db.last_before(table, step)

    def movements(self, events: Sequence[str], offset: int, limit: int, before: int | None = None) -> Rows[Movement]:
        """Return rows of the ledger, newest first, all or those of some events; with `before` those before a step."""
        names = {f"event{place}": event for place, event in enumerate(events)}
        where = f"event IN ({', '.join(f':{name}' for name in names)})" if names else ""
        total, rows = self._section("ledger", where, names, offset, limit, self._last_before("ledger", before))
        return Rows(total, [self._ledger.movement(row) for row in rows])

    def events(self, before: int | None = None) -> dict[str, int]:
        """Count the rows of each event in the ledger."""
        last = FOREVER if before is None else self._db.last_before("ledger", before)
        sql = "SELECT event, count(*) FROM ledger WHERE id <= ? GROUP BY event"
        return {row[0]: row[1] for row in self._db.rows(sql, (last,))}

    def searches(self, likes: Sequence[str], limit: int) -> list[Movement]:
        """Return the newest searches whose detail may fit one of the patterns, in order."""
        fits = " OR ".join(["detail LIKE ?"] * len(likes)) or "0"
        sql = f"SELECT * FROM ledger WHERE event = 'search' AND ({fits}) ORDER BY id DESC LIMIT ?"
        return [self._ledger.movement(row) for row in reversed(self._db.rows(sql, (*likes, limit)))]

    def pieces_like(self, like: str, before: int, limit: int) -> list[SaidPart]:
        """Return said parts, newest first, whose JSON fits a pattern of LIKE."""
        sql = "SELECT * FROM parts WHERE id < ? AND kind = 'said' AND block LIKE ? ORDER BY id DESC LIMIT ?"
        return [_piece(row) for row in self._db.rows(sql, (before, like, limit))]

    def pieces_of(self, page: PageId) -> list[SaidPart]:
        """Return the said parts of a step, or the one part; none of a fact."""
        column = {"s": "step = ?", "x": "id = ?"}.get(page.kind, "0 = ?")
        sql = f"SELECT * FROM parts WHERE {column} AND kind = 'said' ORDER BY id"
        return [_piece(row) for row in self._db.rows(sql, (page.number,))]

    def facts_like(self, like: str, before: int, limit: int) -> list[Fact]:
        """Return the next facts whose text matches a LIKE pattern, newest first."""
        sql = "SELECT * FROM facts WHERE id < ? AND purged = 0 AND text LIKE ? ORDER BY id DESC LIMIT ?"
        return [self._archive.use(row).fact for row in self._db.rows(sql, (before, like, limit))]

    def core_like(self, like: str) -> list[str]:
        """Return the names of core blocks of which some version fits a pattern."""
        rows = self._db.rows("SELECT DISTINCT name FROM blocks WHERE value LIKE ? ORDER BY name", (like,))
        return [row["name"] for row in rows]

    def core_versions(self, name: str) -> list[CoreVersion]:
        """Return every version of a core block, oldest first."""
        rows = self._db.rows("SELECT * FROM blocks WHERE name = ? ORDER BY id", (name,))
        return [CoreVersion(self._core.block_of(row), f"s{row['step']}", i) for i, row in enumerate(rows, start=1)]


def _piece(row: Row) -> SaidPart:
    return SaidPart(f"x{row['id']}", f"s{row['step']}", row["slot"], bool(row["searchable"]), json.loads(row["block"]))
