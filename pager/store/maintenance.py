"""SQL for looking after the database: audits, full-text rebuilds, scrubbing of purged bytes, copies."""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast

from pager.blocks import dump
from pager.errors import AgentLostError, StorageError
from pager.safety.sources import are_untrusted, is_untrusted, stored_name
from pager.store.database import Database
from pager.store.settings import PROGRAM_VALUE
from pager.types import FOREVER, Counts, Json

Change = Callable[..., str]  # of a text and `is_json`: rewrites it, JSON inside its strings

# Every column in which a text could be: table -> its key, its plain columns, its columns of JSON
TEXT_COLUMNS = {
    "steps": ("id", "role name session", "sources"),
    "requests": ("step", "", "sources options"),
    "parts": ("id", "", "block"),
    "forms": ("part, epoch", "", "block"),
    "epochs": ("id", "", "tools system preamble digest sources"),
    "blocks": ("id", "value description", "sources"),
    "facts": ("id", "text key forgotten", "tags sources"),
    "ledger": ("id", "reason", "detail"),
    "commands": ("id", "outcome", ""),
    "residency": ("rowid", "reason", ""),
    "skills": ("id", "description text", ""),
    "sleeps": ("id", "", "detail"),
    "sleep_edits": ("id", "why reason asks value", "after sources"),
    "meta": ("key", "value", ""),
}

# What each column of JSON holds: an array or an object
JSON_COLUMNS = {
    "parts": {"block": "object"},
    "forms": {"block": "object"},
    "epochs": {"tools": "array", "system": "array", "preamble": "array", "digest": "array", "settings": "object",
               "sizes": "object", "sources": "array"},
    **{table: {"sources": "array"} for table in ("steps", "blocks")},
    "requests": {"sources": "array", "options": "object"},
    "facts": {"tags": "array", "sources": "array"},
    "ledger": {"detail": "object"},
    "sleeps": {"detail": "object"},
    "sleep_edits": {**dict.fromkeys(("pages", "keeps", "after", "sources", "quotes"), "array"), "done": "object"},
}  # fmt: skip

# A law, and what is wrong -> a query whose every row is a case of it
AUDITS: dict[tuple[str, str], str] = {
    ("a step stays whole", "a call is open in a step that is not the newest of the prompt"): f"""
        SELECT c.id FROM calls c WHERE c.result IS NULL AND
        (c.step IS NOT (SELECT id FROM steps WHERE kind <> 'record' ORDER BY turn DESC, id DESC LIMIT 1) OR NOT EXISTS
        (SELECT 1 FROM residency r WHERE r.page = 's' || c.step AND r.how = 'step' AND r.until_step = {FOREVER}))""",
    ("a step stays whole", "a result is in another step than its call"): """
        SELECT c.id FROM calls c JOIN parts p ON p.id = c.result
        WHERE p.step <> c.step OR p.slot <> 'result'""",
    ("the prompt only grows", "an epoch lives that is not the newest"): (
        "SELECT id FROM epochs WHERE through_step IS NULL AND id < (SELECT max(id) FROM epochs)"
    ),
    ("what matters survives eviction", "a pinned page is not resident"): f"""
        SELECT p.page FROM pins p WHERE p.unseen = 0 AND NOT EXISTS
        (SELECT 1 FROM residency r WHERE r.page = p.page AND r.how = 'pinned' AND r.until_step = {FOREVER})""",
    ("nothing acknowledged is lost", "a step that somebody said has no parts"): """
        SELECT id FROM steps s WHERE kind <> 'assistant' AND purged = 0
        AND NOT EXISTS (SELECT 1 FROM parts WHERE step = s.id)""",
    ("nothing acknowledged is lost", "a reply has no request"): """
        SELECT id FROM steps s WHERE kind = 'assistant'
        AND NOT EXISTS (SELECT 1 FROM requests WHERE step = s.id)""",
    ("nothing acknowledged is lost", "a part of the conversation has no size"): """
        SELECT p.id FROM parts p JOIN steps s ON s.id = p.step WHERE s.kind <> 'record'
        AND NOT EXISTS (SELECT 1 FROM sizes WHERE part = p.id)""",
    ("nothing is overwritten", "a superseded fact has no end"): (
        "SELECT id FROM facts WHERE superseded_by IS NOT NULL AND valid_until IS NULL"
    ),
    ("nothing is overwritten", "a fact outlives its given end"): (
        "SELECT id FROM facts WHERE expires IS NOT NULL AND (valid_until IS NULL OR valid_until > expires)"
    ),
    ("nothing is overwritten", "a fact ends before it begins"): ("SELECT id FROM facts WHERE valid_until < valid_from"),
    ("nothing is overwritten", "a fact is superseded by one of another key"): """
        SELECT f.id FROM facts f JOIN facts n ON n.id = f.superseded_by
        WHERE f.key IS NOT n.key AND f.purged = 0 AND n.purged = 0""",
    ("everything can be explained", "a step left the prompt and the ledger does not say why"): f"""
        SELECT r.page FROM residency r WHERE r.how = 'step' AND r.until_step < {FOREVER} AND NOT EXISTS
        (SELECT 1 FROM ledger l WHERE l.page = r.page AND l.event IN ('evict', 'drop', 'withdraw'))""",
    ("everything can be explained", "an interval ends before it begins"): (
        "SELECT page FROM residency WHERE until_step < from_step"
    ),
    ("everything can be explained", "a page is in the prompt twice in the same way"): f"""
        SELECT page FROM residency WHERE until_step = {FOREVER} AND how IN ('step', 'pinned', 'request')
        GROUP BY page, how HAVING count(*) > 1""",
}


# The tokens of each kind in the parts of a prompt that every request begins with: name -> as many numbers as kinds
_WRONG_SIZES = f"""
    SELECT 1 FROM epochs, json_each(epochs.sizes) AS size WHERE CASE WHEN size.type = 'array'
    THEN json_array_length(size.value) <> {len(Counts._fields)}
    OR EXISTS (SELECT 1 FROM json_each(size.value) WHERE type <> 'integer') ELSE 1 END LIMIT 1"""


def _are_origins(stored: str, *, trusted: bool) -> bool:
    """Return True for the sources of a fact as they are stored, if they are as trusted as it says."""
    untrusted = True
    for row in json.loads(stored):
        if not isinstance(row, dict):
            return False
        origin = cast(Json, row)
        name, via = origin.get("source"), origin.get("via", [])
        counted = type(origin.get("step")) is int and type(origin.get("at")) is int
        if stored_name(name) != name or not are_untrusted(via) or not counted:
            return False
        untrusted = untrusted and bool(is_untrusted(str(name)) or via)
    return trusted is not untrusted


def copy_database(path: Path, file: Path, values: Mapping[str, str]) -> None:
    """Copy the database of another memory, of whatever version, as `copy_to` does. Raises StorageError."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as other:
            other.execute("VACUUM INTO ?", (str(file),))
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be copied ({error}). Look after it with check, or remove it.") from error
    _put_values(file, values)


def _put_values(file: Path, values: Mapping[str, str]) -> None:
    if values:
        try:
            with closing(sqlite3.connect(file)) as copy, copy:
                copy.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())
        except sqlite3.Error as error:
            raise StorageError(f"{file} cannot be written ({error}). Choose another place.") from error


class MaintenanceTable:
    """Audits, purging and copies of the whole database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def damage(self) -> list[str]:
        """Return what SQLite itself finds wrong with the file."""
        try:
            found = [row[0] for row in self._db.rows("PRAGMA integrity_check")]
            if foreign := self._db.foreign_schema():
                return [f"it {foreign}"]
            lost = self._db.rows("PRAGMA foreign_key_check")
            wrong = self._wrong_values() if found == ["ok"] else found
        except AgentLostError:
            raise
        except StorageError as error:
            return [str(error)]  # too damaged to be looked over
        return wrong + [f"{row[0]} row {row[1]} refers to nothing in {row[2]}" for row in lost]

    def _wrong_values(self) -> list[str]:
        """Return the columns that hold a value of a kind that we never write. SQLite itself takes any."""
        found: list[str] = []
        tables = "SELECT name FROM pragma_table_list WHERE type IN ('table', 'shadow') AND name NOT GLOB 'sqlite_*'"
        for (table,) in self._db.rows(tables):
            for column in self._db.rows(f"SELECT name, type FROM pragma_table_info('{table}') WHERE type <> ''"):
                name, kind = column["name"], str(column["type"]).lower()
                wrong = f"typeof({name}) NOT IN ('{kind}', 'null')"
                if shape := JSON_COLUMNS.get(table, {}).get(name):
                    # In this order: of what is no JSON at all the type cannot be asked for.
                    is_json = f"CASE WHEN json_valid({name}) THEN json_type({name}) = '{shape}' ELSE {name} IS NULL END"
                    wrong = f"{wrong} OR NOT {is_json}"
                if self._db.value(f"SELECT 1 FROM {table} WHERE {wrong} LIMIT 1"):
                    found.append(f"{table}.{name} holds what is no {shape or kind}")
        if self._db.value("SELECT 1 FROM meta WHERE key IN ('purges', 'latest_fact') AND value GLOB '*[^0-9-]*'"):
            found.append("meta.value holds what is no number")
        if not found and self._db.value(_WRONG_SIZES):
            found.append("epochs.sizes holds what are no counts")
        options = "SELECT * FROM said_words_config UNION ALL SELECT * FROM fact_words_config"
        if [tuple(row) for row in self._db.rows(options)] != [("version", 4)] * 2:
            found.append("a full-text table has options that selfpager did not set")
        return found or self._wrong_sources()

    def _wrong_sources(self) -> list[str]:
        """Return the tables with a source that we never write: of an unknown kind, or with signs in its name."""
        found: set[str] = set()
        for table in ("steps", "requests", "epochs", "blocks"):
            rows = self._db.rows(f"SELECT DISTINCT sources FROM {table} WHERE sources <> '[]'")
            if not all(are_untrusted(json.loads(row["sources"])) for row in rows):
                found.add(table)
        lines = [line for row in self._db.rows("SELECT digest FROM epochs") for line in json.loads(row["digest"])]
        if not all(isinstance(line, dict) and are_untrusted(cast(Json, line).get("sources", [])) for line in lines):
            found.add("epochs")
        facts = self._db.rows("SELECT sources, trusted FROM facts WHERE purged = 0")
        if not all(_are_origins(row["sources"], trusted=bool(row["trusted"])) for row in facts):
            found.add("facts")
        return [f"{table} have sources that selfpager does not write" for table in sorted(found)]

    def audit(self) -> list[tuple[str, str]]:
        """Return every law that does not hold, with rows that break it."""
        found = {case: self._db.rows(f"{sql} LIMIT 5") for case, sql in AUDITS.items()}
        cases = {case: ", ".join(str(row[0]) for row in rows) for case, rows in found.items() if rows}
        return [(law, f"{wrong}: {names}") for (law, wrong), names in cases.items()]

    def words_missing(self) -> list[str]:
        """Return the full-text tables that do not hold exactly what they should."""
        wanted = {
            "said_words": "SELECT count(*) FROM parts WHERE searchable = 1",
            "fact_words": "SELECT count(*) FROM facts WHERE purged = 0",
        }
        missing: list[str] = []
        for table, sql in wanted.items():
            held, should = self._db.value(f"SELECT count(*) FROM {table}_docsize"), self._db.value(sql)
            if held != should or not self._sound(table):
                missing.append(f"{table} holds {held} of {should} texts")
        return missing

    def _sound(self, table: str) -> bool:
        try:
            self._db.run(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        except StorageError:
            return False
        return True

    def clear_words(self) -> None:
        """Empty the word indexes."""
        for table in ("said_words", "fact_words"):
            self._db.run(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")

    def facts_for_words(self) -> list[tuple[int, str]]:
        """Return the facts to index, with their texts."""
        return [(row[0], row[1]) for row in self._db.rows("SELECT id, text FROM facts WHERE purged = 0 ORDER BY id")]

    def said_for_words(self) -> list[tuple[int, str | None, str]]:
        """Return the parts to index, with their speakers and blocks."""
        sql = "SELECT p.id, name, block FROM parts p JOIN steps s ON s.id = p.step WHERE searchable = 1 ORDER BY p.id"
        return [(row[0], row[1], row[2]) for row in self._db.rows(sql)]

    def rewrite(self, change: Change) -> list[tuple[str, Any]]:
        """Put every text of the database through `change(text, is_json)`. Return table and number of changed rows."""
        changed: list[tuple[str, Any]] = []
        for table, (key, plain, with_json) in TEXT_COLUMNS.items():
            # Of the single values only those of programs are texts.
            ours = f"key LIKE '{PROGRAM_VALUE}%'" if table == "meta" else "1"
            for columns, is_json in ((plain, False), (with_json, True)):
                for column in columns.split():
                    rows = self._rewrite(table, key, column, partial(change, is_json=is_json), ours)
                    changed += [(table, row) for row in rows]
                    if (table, column) == ("facts", "tags"):
                        self._index_tags(rows)
                    elif (table, column) == ("facts", "text"):
                        self._db.run_many("UPDATE facts SET digest = NULL WHERE id = ?", [(row,) for row in rows])
        return changed

    def _index_tags(self, facts: Sequence[int]) -> None:
        """Index the tags of facts anew. The index holds them in lower case, where no text of another case is found."""
        for fact in facts:
            tags = json.loads(self._db.value("SELECT tags FROM facts WHERE id = ?", (fact,)))
            self._db.run("DELETE FROM fact_tags WHERE fact = ?", (fact,))
            self._db.run_many("INSERT OR IGNORE INTO fact_tags VALUES (?, ?)", [(tag.casefold(), fact) for tag in tags])

    def _rewrite(
        self, table: str, key: str, column: str, change: Callable[[str], str], where: str, values: Sequence[Any] = ()
    ) -> list[Any]:
        """Put a column of the chosen rows through `change`. Return the numbers of the rows that it changed."""
        changed: list[Any] = []
        chosen = f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL AND {where}"
        for *numbers, old in self._db.rows(chosen, values):
            text: str | None = change(old)
            if text != old:
                if (table, column) == ("facts", "key"):
                    text = None  # two keys that were purged must not become one
                one = f"({key}) = ({','.join('?' * len(numbers))})"
                self._db.run(f"UPDATE {table} SET {column} = ? WHERE {one}", (text, *numbers))
                changed.append(numbers[0])
        return changed

    def parts_in(self, step: int) -> list[tuple[int, str]]:
        """Return the parts of a step, with their blocks."""
        return [(row[0], row[1]) for row in self._db.rows("SELECT id, block FROM parts WHERE step = ?", (step,))]

    def asides_naming(self, pages: Sequence[str]) -> list[int]:
        """Return the parts that our own tools or we ourselves wrote and that mention one of the pages by its id."""
        before = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"  # the block is JSON: a new line ends in a letter there
        named = re.compile(rf"{before}(?:{'|'.join(pages)})(?![A-Za-z0-9])")
        sql = "SELECT id, block FROM parts WHERE kind <> 'said' OR (slot = 'result' AND searchable = 0)"
        return [row["id"] for row in self._db.rows(sql) if named.search(row["block"])]

    def overwrite_part(self, part: int, change: Callable[[str], str]) -> None:
        """Put a part, as it came and as it was carried, through `change`; it is no longer searchable."""
        self._rewrite("parts", "id", "block", change, "id = ?", (part,))
        self._rewrite("forms", "part, epoch", "block", change, "part = ?", (part,))
        self._db.run("UPDATE parts SET searchable = 0 WHERE id = ?", (part,))
        for table in ("said_vectors", "said_owed"):
            self._db.run(f"DELETE FROM {table} WHERE part = ?", (part,))

    def preambles(self) -> list[tuple[int, str, str]]:
        """Return every epoch with its preamble and its digest, as JSON."""
        return [tuple(row) for row in self._db.rows("SELECT id, preamble, digest FROM epochs")]

    def put(self, table: str, row: int, **values: str | int | None) -> None:
        """Replace values of the row of that id."""
        columns = ", ".join(f"{name} = ?" for name in values)
        self._db.run(f"UPDATE {table} SET {columns} WHERE id = ?", (*values.values(), row))

    def rewrite_core_shown(self, name: str, change: Callable[[str], str]) -> None:
        """Put a core block, as ended epochs and their updates showed it, through `change`."""
        element = rf'(?s)(<(block|core_update) name="{re.escape(name)}"[^>]*>)(.*?)(</\2>)'

        def change_shown(raw: str) -> str:
            shown: Json | list[Json] = json.loads(raw)
            for block in shown if isinstance(shown, list) else [shown]:
                if "text" in block:  # in the texts of others our elements are disarmed
                    text = str(block["text"])
                    block["text"] = re.sub(element, lambda found: found[1] + change(found[3]) + found[4], text)
            return dump(shown)

        for column in ("system", "preamble"):  # epochs from before core was a message have it in their system text
            self._rewrite("epochs", "id", column, change_shown, "TRUE")
        self._rewrite("parts", "id", "block", change_shown, "kind = 'update'")

    def mark_fact_purged(self, fact: int) -> None:
        """Mark a fact as purged, without its texts."""
        self.put("facts", fact, purged=1, text="", key=None, tags="[]", sources="[]", digest=None, forgotten=None)
        self._db.run("DELETE FROM fact_tags WHERE fact = ?", (fact,))
        self.drop_vector(fact)

    def drop_vector(self, fact: int) -> None:
        """Delete the vector of a fact."""
        self._db.vector_changes += 1
        self._db.run("DELETE FROM vectors WHERE fact = ?", (fact,))

    def erase_freed(self) -> list[str]:
        """Erase what freed pages and the log still hold. Return the processes that have died with a copy of it.

        Raises StorageError while a reader reads an old state.
        """
        self._db.run("VACUUM")
        if not self._db.checkpoint(truncate=True):
            way = "Close the readers (a debug view, a backup) and open the agent again: it finishes by itself"
            why = "cannot finish while another process reads an old state"
            raise StorageError(f"the purge of {self._db.path} {why}. {way}.")
        return self._db.forget_past()

    def copy_to(self, file: Path, values: Mapping[str, str]) -> None:
        """Copy what is committed into an empty file, and store further values in the copy. Raises StorageError."""
        self._db.run("VACUUM INTO ?", (str(file),))
        _put_values(file, values)
