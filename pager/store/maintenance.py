"""SQL for looking after the database: audits, full-text rebuilds, scrubbing of purged bytes, copies."""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from pager.blocks import dump
from pager.errors import StorageError
from pager.store.audits import AUDITS
from pager.store.database import Database
from pager.types import Json

Change = Callable[..., str]  # of a text and `is_json`: rewrites it, JSON inside its strings

# Every column in which a text could be, with its key. JSON columns are walked string by string.
TEXT_COLUMNS: tuple[tuple[str, str, str, bool], ...] = (
    ("steps", "id", "role", False),
    ("steps", "id", "name", False),
    ("steps", "id", "session", False),
    ("parts", "id", "block", True),
    ("forms", "part", "block", True),
    ("epochs", "id", "tools", True),
    ("epochs", "id", "system", True),
    ("epochs", "id", "preamble", True),
    ("epochs", "id", "digest", True),
    ("blocks", "id", "value", False),
    ("blocks", "id", "description", False),
    ("facts", "id", "text", False),
    ("facts", "id", "key", False),
    ("facts", "id", "tags", True),
    ("facts", "id", "forgotten", False),
    ("ledger", "id", "reason", False),
    ("ledger", "id", "detail", True),
    ("commands", "id", "outcome", False),
    ("residency", "rowid", "reason", False),
    ("meta", "key", "value", False),
)


def _in_block(name: str, text: str, change: Callable[[str], str]) -> str:
    element = rf'(?s)(<(block|core_update) name="{re.escape(name)}"[^>]*>)(.*?)(</\2>)'
    return re.sub(element, lambda found: found[1] + change(found[3]) + found[4], text)


class MaintenanceTable:
    def __init__(self, db: Database) -> None:
        self._db = db

    def damage(self) -> list[str]:
        """Return what SQLite itself finds wrong with the file."""
        try:
            found = [row[0] for row in self._db.rows("PRAGMA integrity_check")]
        except StorageError as error:
            return [str(error)]  # too damaged to be looked over
        lost = self._db.rows("PRAGMA foreign_key_check")
        broken = [f"{row[0]} row {row[1]} refers to nothing in {row[2]}" for row in lost]
        return [text for text in found if text != "ok"] + broken

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
        sql = (
            "SELECT p.id, s.name, p.block FROM parts p JOIN steps s ON s.id = p.step"
            " WHERE p.searchable = 1 ORDER BY p.id"
        )
        return [(row[0], row[1], row[2]) for row in self._db.rows(sql)]

    def rewrite(self, change: Change) -> list[tuple[str, int]]:
        """Put every text of the database through `change(text, is_json)`. Return (table, row) of each change."""
        changed: list[tuple[str, int]] = []
        for table, key, column, is_json in TEXT_COLUMNS:
            if table == "forms":
                changed += self._rewrite_forms(change)
                continue
            ours = " AND key LIKE 'note:%'" if table == "meta" else ""  # what a program keeps; the rest says no text
            sql = f"SELECT {key} AS key, {column} AS text FROM {table} WHERE {column} IS NOT NULL{ours}"
            for row in self._db.rows(sql):
                text: str | None = change(row["text"], is_json=is_json)
                if text != row["text"]:
                    if (table, column) == ("facts", "key"):
                        text = None  # two keys that were purged must not become one
                    self._db.run(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (text, row["key"]))
                    changed.append((table, row["key"] if isinstance(row["key"], int) else 0))
                    if (table, column) == ("facts", "tags"):
                        self._index_tags(row["key"], json.loads(text or "[]"))
        return changed

    def _index_tags(self, fact: int, tags: list[str]) -> None:
        """Index the tags of a fact anew. The index holds them in lower case, where no text of another case is found."""
        self._db.run("DELETE FROM fact_tags WHERE fact = ?", (fact,))
        self._db.run_many("INSERT OR IGNORE INTO fact_tags VALUES (?, ?)", [(tag.casefold(), fact) for tag in tags])

    def _rewrite_forms(self, change: Change) -> list[tuple[str, int]]:
        changed: list[tuple[str, int]] = []
        for row in self._db.rows("SELECT part, epoch, block FROM forms WHERE block IS NOT NULL"):
            text = change(row["block"], is_json=True)
            if text != row["block"]:
                where = (text, row["part"], row["epoch"])
                self._db.run("UPDATE forms SET block = ? WHERE part = ? AND epoch = ?", where)
                changed.append(("forms", row["part"]))
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
        row = self._db.row("SELECT block FROM parts WHERE id = ?", (part,))
        if row is None:
            return
        self._db.run("UPDATE parts SET block = ?, searchable = 0 WHERE id = ?", (change(row["block"]), part))
        for table in ("said_vectors", "said_owed"):
            self._db.run(f"DELETE FROM {table} WHERE part = ?", (part,))
        for form in self._db.rows("SELECT epoch, block FROM forms WHERE part = ? AND block IS NOT NULL", (part,)):
            where = (change(form["block"]), part, form["epoch"])
            self._db.run("UPDATE forms SET block = ? WHERE part = ? AND epoch = ?", where)

    def preambles(self) -> list[tuple[int, str, str]]:
        """Return every epoch with its preamble and its digest, as JSON."""
        return [tuple(row) for row in self._db.rows("SELECT id, preamble, digest FROM epochs")]

    def put_preamble(self, epoch: int, preamble: str, digest: str) -> None:
        """Replace the preamble and the digest of an epoch."""
        self._db.run("UPDATE epochs SET preamble = ?, digest = ? WHERE id = ?", (preamble, digest, epoch))

    def put_movement(self, movement: int, reason: str, detail: Json) -> None:
        """Replace the reason and the detail of a movement."""
        self._db.run("UPDATE ledger SET reason = ?, detail = ? WHERE id = ?", (reason, dump(detail), movement))

    def put_block(self, version: int, value: str) -> None:
        """Replace the text of a version of a block."""
        self._db.run("UPDATE blocks SET value = ? WHERE id = ?", (value, version))

    def rewrite_core_shown(self, name: str, change: Callable[[str], str]) -> None:
        """Put a core block, as ended epochs and their updates showed it, through `change`."""
        for row in self._db.rows("SELECT id, system FROM epochs WHERE json_array_length(system) > 1"):
            system = json.loads(row["system"])
            system[1]["text"] = _in_block(name, system[1]["text"], change)
            self._db.run("UPDATE epochs SET system = ? WHERE id = ?", (dump(system), row["id"]))
        for row in self._db.rows("SELECT id, block FROM parts WHERE kind = 'update'"):
            block = json.loads(row["block"])
            block["text"] = _in_block(name, block["text"], change)
            self._db.run("UPDATE parts SET block = ? WHERE id = ?", (dump(block), row["id"]))

    def mark_step_purged(self, step: int) -> None:
        """Mark a step as purged, without its names."""
        self._db.run("UPDATE steps SET purged = 1, name = NULL, session = NULL WHERE id = ?", (step,))

    def mark_fact_purged(self, fact: int) -> None:
        """Mark a fact as purged, without its texts."""
        nothing = "text = '', key = NULL, tags = '[]', forgotten = NULL"
        self._db.run(f"UPDATE facts SET purged = 1, {nothing} WHERE id = ?", (fact,))
        self._db.run("DELETE FROM fact_tags WHERE fact = ?", (fact,))
        self.drop_vector(fact)

    def drop_vector(self, fact: int) -> None:
        """Delete the vector of a fact."""
        self._db.count_vector_change()
        self._db.run("DELETE FROM vectors WHERE fact = ?", (fact,))

    def erase_freed(self) -> None:
        """Erase what freed pages and the log still hold. Raises StorageError while a reader reads an old state."""
        self._db.run("VACUUM")
        row = self._db.row("PRAGMA wal_checkpoint(TRUNCATE)")
        if row is not None and row[0]:
            raise StorageError(
                f"the purge of {self._db.path} cannot finish while another process reads an old state. Close the "
                "readers (a debug view, a backup) and open the agent again: it finishes by itself."
            )

    def copy_to(self, file: Path, values: Mapping[str, str]) -> None:
        """Copy what is committed into an empty file, and store further values in the copy. Raises StorageError."""
        self._db.run("VACUUM INTO ?", (str(file),))
        if values:
            try:
                with closing(sqlite3.connect(file)) as copy, copy:
                    copy.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())
            except sqlite3.Error as error:
                raise StorageError(f"{file} cannot be written ({error}). Choose another place.") from error
