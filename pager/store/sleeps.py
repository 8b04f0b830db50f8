"""Sleeps: their edits, and the turns that were read in them. SQL."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, tzinfo
from itertools import groupby
from typing import Any

from pager.blocks import dump, text_of
from pager.clock import from_micros, to_micros
from pager.store.archive import read_origins, store_origins
from pager.store.database import Database, Row, sources_name, stored_names
from pager.store.rows import EditRow, Origin, TurnRow
from pager.types import FOREVER, Json

# What has left the prompt, or never was in it, is answered, and gave the agent no fact.
_UNREAD = f"""
  SELECT s.turn, min(s.id) AS first FROM steps s
  WHERE s.purged = 0 AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.page = 's' || s.id AND l.event = 'withdraw')
    AND NOT EXISTS (SELECT 1 FROM sleep_turns r WHERE r.turn = s.turn)
  GROUP BY s.turn HAVING
    NOT EXISTS (SELECT 1 FROM steps t JOIN residency r ON r.page = 's' || t.id
                WHERE t.turn = s.turn AND r.how = 'step' AND r.until_step = {FOREVER})
    AND NOT EXISTS (SELECT 1 FROM facts f JOIN steps t ON t.id = f.step WHERE t.turn = s.turn AND f.actor = 'agent')
    AND (max(s.kind = 'record') OR s.turn <> (SELECT turn FROM steps WHERE kind <> 'record' ORDER BY turn DESC LIMIT 1))
  ORDER BY s.turn LIMIT ?
"""
_SAID_IN = """
  SELECT s.id, s.turn, s.kind, s.role, s.name, s.session, s.at, s.sources, r.sources AS read, p.block
  FROM steps s JOIN parts p ON p.step = s.id LEFT JOIN requests r ON r.step = s.id
  WHERE {which} AND p.searchable = 1 AND p.slot <> 'result' AND json_extract(p.block, '$.type') = 'text'
  ORDER BY s.turn, s.id, p.id
"""


class SleepsTable:
    """Proposals as rows. An edit never changes, but for its state, and for a purge."""

    def __init__(self, db: Database, zone: tzinfo) -> None:
        self._db = db
        self._zone = zone

    def begin(self, at: datetime, through_fact: int) -> int:
        """Insert a sleep. Return its number."""
        sql = "INSERT INTO sleeps (at, step, through_fact) VALUES (?, (SELECT ifnull(max(id), 0) FROM steps), ?)"
        return self._db.run(sql, (to_micros(at), through_fact))

    def finish(self, number: int, at: datetime) -> None:
        """Mark a sleep as finished."""
        self._db.run("UPDATE sleeps SET finished_at = ? WHERE id = ?", (to_micros(at), number))

    def put_detail(self, number: int, detail: Json) -> None:
        """Replace what a sleep says of itself."""
        self._db.run("UPDATE sleeps SET detail = ? WHERE id = ?", (dump(detail), number))

    def unfinished(self) -> int | None:
        """Return the sleep that was interrupted, if there is one."""
        return self._db.value("SELECT id FROM sleeps WHERE finished_at IS NULL ORDER BY id DESC LIMIT 1")

    def compared_through(self, before: int = FOREVER) -> int:
        """Return the fact up to which earlier sleeps have compared all."""
        sql = "SELECT max(through_fact) FROM sleeps WHERE finished_at IS NOT NULL AND id < ?"
        return self._db.value(sql, (before,), default=0)

    def sleep(self, number: int) -> tuple[datetime, bool, Json] | None:
        """Return when a sleep began, if it is finished, and its details."""
        row = self._db.row("SELECT * FROM sleeps WHERE id = ?", (number,))
        if row is None:
            return None
        return from_micros(row["at"], self._zone), row["finished_at"] is not None, json.loads(row["detail"])

    def numbers(self, limit: int) -> list[int]:
        """Return the newest sleeps, newest first."""
        return [row["id"] for row in self._db.rows("SELECT id FROM sleeps ORDER BY id DESC LIMIT ?", (limit,))]

    def append(self, sleep: int, edit: EditRow, sources: Sequence[Origin]) -> int:
        """Insert an edit. Return its number."""
        return self._db.run(
            "INSERT INTO sleep_edits (sleep, kind, reason, asks, pages, keeps, after, block, version, value, sources,"
            " quotes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (sleep, edit.kind, edit.reason, edit.asks, dump(edit.pages), dump(edit.keeps), dump(edit.after),
             edit.block, edit.version, edit.value, store_origins(sources)[0], dump(edit.quotes)),
        )  # fmt: skip

    def edits(self, sleep: int) -> list[EditRow]:
        """Return the edits of a sleep, in their order."""
        return [_edit(row) for row in self._db.rows("SELECT * FROM sleep_edits WHERE sleep = ? ORDER BY id", (sleep,))]

    def origins(self, edit: int) -> list[Origin]:
        """Return the sources of an edit."""
        return read_origins(json.loads(self._db.value("SELECT sources FROM sleep_edits WHERE id = ?", (edit,), "[]")))

    def put_after(self, edit: int, after: Sequence[Json]) -> None:
        """Replace the facts that an edit stores."""
        self._db.run("UPDATE sleep_edits SET after = ? WHERE id = ?", (dump(list(after)), edit))

    def put_asks(self, edit: int, asks: str) -> None:
        """Replace why a person has to decide about an edit."""
        self._db.run("UPDATE sleep_edits SET asks = ? WHERE id = ?", (asks, edit))

    def supersede(self, edit: int, page: str, after: Sequence[Json], asks: str) -> None:
        """Let an edit that stores a fact end another one."""
        self.put_after(edit, after)
        sql = "UPDATE sleep_edits SET kind = 'supersede', pages = ?, asks = ? WHERE id = ?"
        self._db.run(sql, (dump([page]), asks, edit))

    def put_state(self, edit: int, state: str, why: str = "", done: Json | None = None) -> None:
        """Replace the state of an edit, and with `done` what applying it did."""
        self._db.run("UPDATE sleep_edits SET state = ?, why = ? WHERE id = ?", (state, why, edit))
        if done is not None:
            self._db.run("UPDATE sleep_edits SET done = ? WHERE id = ?", (dump(done), edit))

    def kept(self, pages: Collection[str], *, but: int) -> tuple[int, str] | None:
        """Return a sleep with an applied edit, `but` one, that makes no sense without one of these facts, and which."""
        rows = self._db.rows("SELECT sleep, keeps FROM sleep_edits WHERE state = 'applied' AND id <> ?", (but,))
        found = ((row["sleep"], page) for row in rows for page in json.loads(row["keeps"]) if page in pages)
        return next(found, None)

    def signatures(self) -> set[tuple[str, str, str | None, int | None]]:
        """Return what is open, or was refused or undone: kind, pages, block and version."""
        states = "state IN ('open', 'refused', 'undone')"
        rows = self._db.rows(f"SELECT DISTINCT kind, pages, block, version FROM sleep_edits WHERE {states}")
        return {(row["kind"], row["pages"], row["block"], row["version"]) for row in rows}

    def unread(self, limit: int) -> list[TurnRow]:
        """Return the oldest turns that have left the window, gave no fact and were not read, with what was said."""
        turns = [row["turn"] for row in self._db.rows(_UNREAD, (limit,))]
        found = {turn: TurnRow(turn, "", []) for turn in turns}
        rows = self._db.rows(_SAID_IN.format(which=f"s.turn IN ({','.join(map(str, turns))})"))
        for step, parts in groupby(rows, key=lambda row: row["id"]):
            first, *more = parts
            via = stored_names(first["sources"]) | stored_names(first["read"] or "[]")
            who = "agent" if first["kind"] == "assistant" else first["name"] or first["role"]
            text = _joined([first, *more])
            said = (who, from_micros(first["at"], self._zone), text, tuple(sorted(via)))
            turn = found[first["turn"]]
            found[turn.turn] = turn._replace(session=first["session"] or "", steps=[*turn.steps, (step, said)])
        return list(found.values())

    def said(self, step: int) -> str:
        """Return what was said in a step, as `unread` gives it; an empty text if it was purged."""
        return _joined(self._db.rows(_SAID_IN.format(which="s.purged = 0 AND s.id = ?"), (step,)))

    def mark_read(self, sleep: int, turns: Collection[int]) -> None:
        """Note that turns were read."""
        self._db.run_many("INSERT OR IGNORE INTO sleep_turns VALUES (?, ?)", [(turn, sleep) for turn in turns])

    def withdraw(self, source: str, why: str) -> None:
        """Refuse the open edits that have a source."""
        for row in self._db.rows("SELECT id, sources FROM sleep_edits WHERE state = 'open'"):
            if sources_name(row["sources"], source):
                self.put_state(row["id"], "refused", why)

    def disown(self) -> None:
        """Let nobody decide what of a copy is open: it was proposed to somebody else. The next sleep of the copy reads
        and compares anew what that came from."""
        self._db.run("UPDATE sleeps SET finished_at = at WHERE finished_at IS NULL")
        if self._db.value("SELECT 1 FROM sleep_edits WHERE state = 'open' LIMIT 1"):
            self._db.run(
                "DELETE FROM sleep_turns WHERE turn IN (SELECT s.turn FROM sleep_edits e, json_each(e.quotes) q"
                " JOIN steps s ON s.id = q.value ->> 0 WHERE e.state = 'open')"
            )
            self._db.run("UPDATE sleeps SET through_fact = 0")
            self._db.run("UPDATE sleep_edits SET state = 'stale', why = 'it came with an import' WHERE state = 'open'")

    def scrub(self, pages: Collection[str], purged: str) -> None:
        """Remove the texts of edits that are about purged pages, and of what models failed with: they may say a piece
        of those."""
        steps = {int(page[1:]) for page in pages if page.startswith("s")}
        for row in self._db.rows("SELECT id, state, why, pages, keeps, quotes, done FROM sleep_edits"):
            named: list[Any] = [*json.loads(row["pages"]), *json.loads(row["keeps"])]
            named += [f"f{fact}" for fact in json.loads(row["done"]).get("made", ())]
            if set(named) & set(pages) or steps & {quote[0] for quote in json.loads(row["quotes"])}:
                sql = "UPDATE sleep_edits SET after = '[]', value = NULL, reason = ?, asks = '' WHERE id = ?"
                self._db.run(sql, (purged, row["id"]))
                state = "stale" if row["state"] == "open" else row["state"]
                self.put_state(row["id"], state, purged if row["why"] or state == "stale" else "")
        for row in self._db.rows("SELECT id, detail FROM sleeps WHERE detail ->> 'failures' <> '[]'"):
            detail: Json = json.loads(row["detail"])
            self.put_detail(row["id"], {**detail, "failures": [purged for _ in detail["failures"]]})


def _joined(parts: Sequence[Row]) -> str:
    return "\n".join(text_of(json.loads(part["block"])) for part in parts)


def _edit(row: Row) -> EditRow:
    pages, keeps, after, quotes, done = (
        json.loads(row[name]) for name in ("pages", "keeps", "after", "quotes", "done")
    )
    return EditRow(
        row["kind"], row["reason"], row["asks"], pages, keeps, after, row["block"], row["version"], row["value"],
        quotes, row["id"], row["sleep"], row["state"], row["why"], done,
    )  # fmt: skip
