"""The present prompt and earlier ones: epochs, answered requests, residency, pins. SQL."""

import json
from collections.abc import Sequence
from dataclasses import astuple
from functools import partial

from pager.blocks import dump
from pager.safety.sources import names_one
from pager.store.database import Database, Row, names_stored, stored_names
from pager.store.rows import Answered, Epoch, Pin
from pager.types import FOREVER, Counts, Json, Residency, Usage

_JSON = ("tools", "system", "preamble", "digest", "settings", "sizes")  # columns of epochs
_LEAVE = "UPDATE residency SET until_step = ?, reason = ? WHERE until_step = ?"


class PromptTable:
    """Epochs as they were sent, and intervals that say which page was in the prompt when."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._pins: list[Pin] | None = None  # None: not read yet
        db.when_rolled_back(partial(setattr, self, "_pins", None))

    def open_epoch(self, epoch: Epoch, first_step: int, at: int, step: int) -> None:
        """End the present epoch and insert the next one, whose messages begin with `first_step`."""
        self.end_epoch(step)
        columns = ("id", "at", "step", "reason", "first_step", "sources", *_JSON)
        sql = f"INSERT INTO epochs ({', '.join(columns)}) VALUES (?{', ?' * 11})"
        stored = (dump(getattr(epoch, name)) for name in _JSON)
        self._db.run(sql, (epoch.id, at, step, epoch.reason, first_step, names_stored(epoch.sources), *stored))

    def end_epoch(self, step: int) -> None:
        """End the present epoch: the next request opens another."""
        newest = "(SELECT max(id) FROM epochs)"  # no other lives
        self._db.run(f"UPDATE epochs SET through_step = ? WHERE id = {newest} AND through_step IS NULL", (step,))

    def forget_digest(self, source: str) -> bool:
        """Remove the summaries in the newest digest that have a source. Return True if there were any."""
        row = self._db.row("SELECT id, digest FROM epochs ORDER BY id DESC LIMIT 1")
        lines: list[Json] = json.loads(row["digest"]) if row else []
        named = [line for line in lines if any(names_one(name, source) for name in line.get("sources", ()))]
        for line in named:
            line |= {"words": "", "sources": []}
        if row and named:
            self._db.run("UPDATE epochs SET digest = ? WHERE id = ?", (dump(lines), row["id"]))
        return bool(named)

    def disown(self, step: int) -> None:
        """End the present epoch, and forget what was learned of models: both decide what is sent, and how much."""
        self.end_epoch(step)
        self._db.run("DELETE FROM tokenizers")

    def notice(self, epoch: int, step: int) -> None:
        """Store the step at which the window's notice was given."""
        self._db.run("UPDATE epochs SET noticed_step = ? WHERE id = ?", (step, epoch))

    def last_epoch(self) -> tuple[Epoch, bool] | None:
        """Return the newest epoch, and True if it is still open."""
        row = self._db.row("SELECT * FROM epochs ORDER BY id DESC LIMIT 1")
        return (_epoch(row), row["through_step"] is None) if row else None

    def epoch(self, number: int) -> Epoch | None:
        """Return an epoch, if it exists."""
        row = self._db.row("SELECT * FROM epochs WHERE id = ?", (number,))
        return _epoch(row) if row else None

    def save_request(self, request: Answered, at: int) -> None:
        """Store an answered request."""
        counted, searches = (None, None, None, None), 0
        if request.usage:
            _, *others, searches = astuple(request.usage)
            counted = (request.usage.whole_input, *others)
        parts = request.through_part, request.mark_part
        sources = names_stored(request.sources) if request.sources else "[]"
        about = (request.model, request.estimate, *counted, request.may_call, sources)
        options = dump(request.options) if request.options else "{}"
        values = (request.step, request.epoch, *parts, at, *about, searches, options)
        self._db.run(f"INSERT INTO requests VALUES (?{', ?' * 14})", values)

    def request(self, step: int) -> Answered | None:
        """Return the request that a step answered."""
        row = self._db.row("SELECT * FROM requests WHERE step = ?", (step,))
        return answered_of(row) if row else None

    def last_request(self, epoch: int) -> Answered | None:
        """Return the newest answered request of an epoch."""
        # An epoch's requests follow the step at which it opened: without that, one that has none yet reads them all.
        of_epoch = "epoch = ? AND step > (SELECT step FROM epochs WHERE id = ?)"
        row = self._db.row(f"SELECT * FROM requests WHERE {of_epoch} ORDER BY step DESC LIMIT 1", (epoch, epoch))
        return answered_of(row) if row else None

    def answered_around(self, step: int) -> tuple[int | None, int | None]:
        """Return the nearest replies to a request before and behind a step."""
        before = self._db.value("SELECT max(step) FROM requests WHERE step < ?", (step,))
        return before, self._db.value("SELECT min(step) FROM requests WHERE step > ?", (step,))

    def last_answered(self) -> int | None:
        """Return the newest step that answered a request."""
        return self._db.value("SELECT max(step) FROM requests")

    def tokenizer(self, model: str) -> str | None:
        """Return what was learned about a model's tokenizer."""
        return self._db.value("SELECT state FROM tokenizers WHERE model = ?", (model,))

    def save_tokenizer(self, model: str, state: str) -> None:
        """Store what was learned of a model's tokenizer."""
        self._db.run("INSERT OR REPLACE INTO tokenizers VALUES (?, ?)", (model, state))

    def enter(self, page: str, how: str, step: int, holder: int | None = None) -> None:
        """Store that a page entered the prompt."""
        sql = "INSERT INTO residency (page, how, from_step, holder) VALUES (?, ?, ?, ?)"
        self._db.run(sql, (page, how, step, holder))

    def enter_recalled(self, pages: Sequence[str], step: int) -> None:
        """Store that pages entered the prompt with a step, and leave it with that step. In one statement."""
        rows = ", ".join(["(?, 'recalled', ?, ?)"] * len(pages))
        values = [value for page in pages for value in (page, step, step)]
        self._db.run(f"INSERT INTO residency (page, how, from_step, holder) VALUES {rows}", values)

    def end_residency(self, page: str, how: str, step: int, reason: str) -> None:
        """Store that a page left the prompt, and why."""
        self._db.run(f"{_LEAVE} AND page = ? AND how = ?", (step, reason, FOREVER, page, how))

    def release(self, holders: list[int], step: int, reason: str) -> None:
        """End the residency of every page that was in the prompt only within these steps."""
        self._db.run(f"{_LEAVE} AND holder IN ({','.join(map(str, holders))})", (step, reason, FOREVER))

    def release_recalled(self, except_holder: int | None, step: int, reason: str) -> None:
        """End the residency of recalled facts, but for those of a step that was not sent yet."""
        self._db.run(f"{_LEAVE} AND how = 'recalled' AND holder IS NOT ?", (step, reason, FOREVER, except_holder))

    def resident(self, at: int | None = None) -> list[Residency]:
        """Return what was in the request that step `at` answered, or is in the next one."""
        at = FOREVER if at is None else at
        sql = "SELECT * FROM residency WHERE until_step >= ? AND from_step < ? ORDER BY from_step"
        return [_stay(row) for row in self._db.rows(sql, (at, at))]

    def shown(self) -> tuple[int, list[str]]:
        """Return the newest step, and the pages in the prompt beside its steps: recalled, pinned, paged in, ..."""
        pages = "SELECT json_group_array(page) FROM residency WHERE until_step = ? AND how <> 'step'"
        row = self._db.row(f"SELECT ifnull(max(id), 0) AS last, ({pages}) AS pages FROM steps", (FOREVER,))
        return (row["last"], json.loads(row["pages"])) if row else (0, [])

    def resident_steps(self, at: int | None = None) -> list[int]:
        """Return the steps that stood in the messages of the request that step `at` answered, or of the next one."""
        return [int(stay.page_id[1:]) for stay in self.resident(at) if stay.how == "step"]

    def residencies(self, page: str) -> list[Residency]:
        """Return the intervals of a page in the prompt."""
        return [_stay(row) for row in self._db.rows("SELECT * FROM residency WHERE page = ? ORDER BY rowid", (page,))]

    def how_resident(self, page: str) -> set[str]:
        """Return in which ways a page is in the prompt now; none if it is not."""
        rows = self._db.rows("SELECT how FROM residency WHERE page = ? AND until_step = ?", (page, FOREVER))
        return {row["how"] for row in rows}

    def pin(self, page: str, offset: int, length: int, tokens: int, step: int, actor: str, *, unseen: bool) -> None:
        """Store a pin."""
        row = (page, offset, length, tokens, step, actor, unseen)
        self._db.run("INSERT OR REPLACE INTO pins VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self._pins = None

    def unpin(self, page: str) -> None:
        """Delete the pin of a page."""
        self._db.run("DELETE FROM pins WHERE page = ?", (page,))
        self._pins = None

    def pins(self) -> list[Pin]:
        """Return all pins, oldest first. They are needed before every request, so they are read once."""
        if self._pins is None or self._db.read_only:
            rows = self._db.rows("SELECT * FROM pins ORDER BY step, page")
            self._pins = [Pin(r["page"], r["offset"], r["length"], r["tokens"], bool(r["unseen"])) for r in rows]
        return list(self._pins)

    def pins_seen(self) -> None:
        """Mark all pins as seen by the agent."""
        self._db.run("UPDATE pins SET unseen = 0 WHERE unseen = 1")
        self._pins = None


def _epoch(row: Row) -> Epoch:
    tools, system, preamble, digest, settings, counts = (json.loads(row[name]) for name in _JSON)
    sizes = {name: Counts(*each) for name, each in counts.items()}
    noticed = row["noticed_step"] is not None
    sources = stored_names(row["sources"])
    return Epoch(row["id"], tools, system, preamble, digest, settings, sizes, row["reason"], noticed, sources)


def answered_of(row: Row) -> Answered:
    """Return the answered request of a row."""
    usage = None
    if row["input"] is not None:
        read, write = row["cache_read"], row["cache_write"]
        usage = Usage(row["input"] - read - write, row["output"], read, write, row["searches"])
    parts = row["through_part"], row["mark_part"]
    sources = stored_names(row["sources"])
    options = json.loads(row["options"]) if row["options"] != "{}" else Json()
    about = (row["model"], row["estimate"], usage, bool(row["may_call"]), sources, options)
    return Answered(row["step"], row["epoch"], *parts, *about)


def _stay(row: Row) -> Residency:
    until = None if row["until_step"] == FOREVER else f"s{row['until_step']}"
    return Residency(row["page"], row["how"], f"s{row['from_step']}", until, row["reason"])
