"""Steps, parts, calls: SQL for the conversation and for messages recorded from elsewhere."""

import json
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any

from pager.blocks import dump
from pager.store.database import Database, Row, names_stored, stored_names
from pager.store.rows import Part, PartKind, Slot, Step
from pager.store.schema import TOKENIZER
from pager.types import Call, Counts, Json, number_of

_CARRIED = """
  SELECT p.id, p.step, p.kind, p.slot, z.words, z.digits, z.other, z.code, z.media,
         CASE WHEN f.part IS NULL THEN p.block ELSE f.block END AS block
  FROM parts p LEFT JOIN sizes z ON z.part = p.id
  LEFT JOIN forms f ON f.part = p.id
    AND f.epoch = (SELECT max(epoch) FROM forms WHERE part = p.id AND epoch <= :epoch)
"""


# In the memory of this connection: texts, to see what the word index makes of them.
_ASKED = (
    f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.asked USING fts5 (text, tokenize='{TOKENIZER}')",
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.asked_terms USING fts5vocab (temp, asked, instance)",
)


class ConversationTable:
    """The conversation as rows. Appends only; what changes is how a part is carried (`forms`)."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._has_calls: bool | None = None  # None: not read yet
        db.when_rolled_back(self.invalidate)

    def invalidate(self) -> None:
        """Read again at the next use: a change was rolled back."""
        self._has_calls = None

    def append_step(
        self, kind: str, role: str, at: int, *, turn: int | None = None, name: str | None = None,
        session: str | None = None, stop_reason: str | None = None, continues: bool = False, ends_turn: bool = False,
        sources: Collection[str] = (),
    ) -> int:  # fmt: skip
        """Append a step; without `turn` it begins one of its own."""
        own = "(SELECT ifnull(max(id), 0) + 1 FROM steps)"  # the id that SQLite is about to give
        return self._db.run(
            "INSERT INTO steps (kind, turn, role, name, session, at, stop_reason, continues, ends_turn, sources)"
            f" VALUES (?, ifnull(?, {own}), ?, ?, ?, ?, ?, ?, ?, ?)",
            (kind, turn, role, name, session, at, stop_reason, continues, ends_turn,
             names_stored(sources) if sources else "[]"),
        )  # fmt: skip

    def put_sources(self, step: int, sources: Collection[str]) -> None:
        """Replace the untrusted sources of a step."""
        self._db.run("UPDATE steps SET sources = ? WHERE id = ?", (names_stored(sources), step))

    def of_source(self, source: str, among: Sequence[int], earliest: int = 0) -> list[int]:
        """Return those of these steps that have a source and are not older than a time."""
        ids = ",".join(map(str, among))
        sql = f"SELECT id FROM steps WHERE id IN ({ids}) AND at >= ? AND sources_name(sources, ?) ORDER BY id"
        return [row["id"] for row in self._db.rows(sql, (earliest, source))]

    def step_of(self, page_id: str) -> int:
        """Return the step that a page `s5` or `x9` is or is a part of; 0 if there is none."""
        number = number_of(page_id)
        return number if page_id[0] == "s" else self._db.value("SELECT step FROM parts WHERE id = ?", (number,), 0)

    def sources_of(self, step: int) -> frozenset[str]:
        """Return the untrusted sources of a step."""
        return stored_names(self._db.value("SELECT sources FROM steps WHERE id = ?", (step,), "[]"))

    def end_turn(self, step: int) -> None:
        """Mark a step as the end of its turn."""
        self._db.run("UPDATE steps SET ends_turn = 1 WHERE id = ?", (step,))

    def mark_done(self, step: int) -> None:
        """Mark a step as done."""
        self._db.run("UPDATE steps SET done = 1 WHERE id = ?", (step,))

    def last_step(self) -> int:
        """Return the newest step; 0 if there is none."""
        return self._db.value("SELECT max(id) FROM steps", default=0)

    def last_live(self) -> Row | None:
        """Return the newest step of the conversation itself."""
        return self._db.row("SELECT * FROM steps WHERE kind <> 'record' ORDER BY turn DESC, id DESC LIMIT 1")

    def step(self, step: int) -> Row | None:
        """Return the row of a step, if it exists."""
        return self._db.row("SELECT * FROM steps WHERE id = ?", (step,))

    def requests_of_turn(self, turn: int) -> list[int]:
        """Return the user steps of a turn that are not done: its request, then what was said in its middle."""
        # The index steps_turn is for `kind <> 'record'`, and SQLite does not see that by itself.
        sql = "SELECT id FROM steps WHERE turn = ? AND kind <> 'record' AND kind = 'user' AND done = 0 ORDER BY id"
        return [row["id"] for row in self._db.rows(sql, (turn,))]

    def newest_turn(self, *, without: Collection[int]) -> int | None:
        """Return the newest turn that holds none of these steps."""
        kept = f"id NOT IN ({','.join(map(str, without))})"
        return self._db.value(f"SELECT max(turn) FROM steps WHERE kind <> 'record' AND {kept}")

    def steps_of(self, turn: int) -> list[int]:
        """Return the steps of a turn, in order."""
        rows = self._db.rows("SELECT id FROM steps WHERE turn = ? AND kind <> 'record' ORDER BY id", (turn,))
        return [row["id"] for row in rows]

    def turns_within(self, spans: Sequence[tuple[int, int]], *, without: Collection[int]) -> list[list[int]]:
        """Return the steps of the conversation within these spans, turn by turn, but for some."""
        sql = "SELECT id, turn FROM steps WHERE kind <> 'record' AND id BETWEEN ? AND ? ORDER BY id"
        rows = [row for span in spans for row in self._db.rows(sql, span) if row["id"] not in without]
        return [[row["id"] for row in turn] for _, turn in groupby(rows, lambda row: row["turn"])]

    def step_before_turn(self, turn: int, *, without: Collection[int]) -> Row | None:
        """Return the last step of the conversation before a turn that is none of these."""
        kept = f"id NOT IN ({','.join(map(str, without))})"
        sql = f"SELECT * FROM steps WHERE kind <> 'record' AND turn < ? AND {kept} ORDER BY turn DESC, id DESC LIMIT 1"
        return self._db.row(sql, (turn,))

    def tools_begun(self, turn: int) -> list[str]:
        """Return the tools that ran in a turn, or may have, in order; the memory's own have no intent."""
        sql = (
            "SELECT DISTINCT json_extract(p.block, '$.name') AS name FROM calls c JOIN parts p ON p.id = c.part"
            " JOIN steps s ON s.id = c.step WHERE s.turn = ? AND c.began_at IS NOT NULL ORDER BY c.part"
        )
        return [row["name"] for row in self._db.rows(sql, (turn,))]

    def newest_of_turn(self, turn: int, limit: int) -> list[Row]:
        """Return the last steps of a turn, newest first, resident or not."""
        sql = "SELECT * FROM steps WHERE turn = ? AND kind <> 'record' ORDER BY id DESC LIMIT ?"
        return self._db.rows(sql, (turn, limit))

    def has_calls(self) -> bool:
        """Return True if a tool was ever called in this conversation."""
        if self._has_calls is None or self._db.read_only:
            self._has_calls = self._db.row("SELECT 1 FROM calls LIMIT 1") is not None
        return self._has_calls

    def refused_turns(self, turns: Sequence[int]) -> set[int]:
        """Return those of these turns that the model refused."""
        theirs = f"kind <> 'record' AND turn IN ({','.join(map(str, turns))})"
        rows = self._db.rows(f"SELECT DISTINCT turn FROM steps WHERE {theirs} AND stop_reason = 'refusal'")
        return {row["turn"] for row in rows}

    def append_part(
        self, step: int, kind: PartKind, slot: Slot, block: Json, at: int, words: str | None, counts: Counts | None
    ) -> int:
        """Append a part, with the words by which it is found and the counts of its form in the prompt."""
        sql = "INSERT INTO parts (step, kind, slot, searchable, at, block) VALUES (?, ?, ?, ?, ?, ?)"
        part = self._db.run(sql, (step, kind, slot, words is not None, at, dump(block)))
        if counts is not None:
            self.size(part, counts)
        if words is not None:
            # Last: before a statement that SQLite may have to undo alone, it writes out the words that wait.
            self.index_words(part, words)
        return part

    def reform(self, part: int, epoch: int, form: Json | None) -> None:
        """Make the prompt carry `part` like this from `epoch` on; None leaves it out."""
        values = (part, epoch, None if form is None else dump(form))
        self._db.run("INSERT OR REPLACE INTO forms (part, epoch, block) VALUES (?, ?, ?)", values)

    def index_words(self, part: int, text: str) -> None:
        """Index the words of a part."""
        self._db.run("INSERT INTO said_words (rowid, text) VALUES (?, ?)", (part, text))

    def terms(self, texts: Sequence[str]) -> list[list[str]]:
        """Return for each text its distinct words, in their order and in the form of the word index."""
        terms: list[list[str]] = [list[str]() for _ in texts]
        sql = "SELECT doc, CAST(term AS BLOB), min(offset) FROM temp.asked_terms GROUP BY doc, term ORDER BY 3"
        for document, term, _ in self._asked(texts, sql):
            terms[int(document)].append(term.decode(errors="ignore"))
        return terms

    def all_terms(self, texts: Sequence[str]) -> list[list[str]]:
        """Return for each text all of its words as they follow each other, in the form of the word index."""
        terms: list[list[str]] = [list[str]() for _ in texts]
        sql = "SELECT doc, CAST(term AS BLOB), offset FROM temp.asked_terms ORDER BY doc, offset"
        for document, term, _ in self._asked(texts, sql):
            terms[int(document)].append(term.decode(errors="ignore"))
        return terms

    def _asked(self, texts: Sequence[str], sql: str) -> Iterable[Row]:
        """Return what is found of texts. Words are bytes: the index cuts one behind 32,768, also inside of a letter."""
        self._db.make_temporary(*_ASKED)
        self._db.run("DELETE FROM temp.asked")  # of the last question
        rows: list[Any] = [value for pair in enumerate(texts) for value in pair]
        self._db.run(f"INSERT INTO temp.asked (rowid, text) VALUES {','.join(['(?, ?)'] * len(texts))}", rows)
        return self._db.rows(sql)

    def size(self, part: int, counts: Counts) -> None:
        """Store the size of a part."""
        self._db.run("INSERT OR REPLACE INTO sizes VALUES (?, ?, ?, ?, ?, ?)", (part, *counts))

    def original(self, part: int) -> Row | None:
        """Return a part exactly as it came, with its step."""
        return self._db.row("SELECT p.*, s.purged FROM parts p JOIN steps s ON s.id = p.step WHERE p.id = ?", (part,))

    def originals(self, step: int, *, without: Collection[int] = ()) -> list[Json]:
        """Return the said blocks of a step exactly as they came, results after the reply, `without` some parts."""
        rows = self._db.rows("SELECT id, block FROM parts WHERE step = ? AND kind = 'said' ORDER BY id", (step,))
        return [json.loads(row["block"]) for row in rows if row["id"] not in without]

    def load(self, steps: Sequence[int], epoch: int, through_part: int | None = None) -> list[Step]:
        """Load these steps as the prompt of `epoch` carries them, up to a part."""
        ids = ",".join(map(str, steps))
        limit = f"AND p.id <= {through_part:d}" if through_part is not None else ""
        found = {
            row["id"]: Step(
                row["id"], row["kind"], row["turn"], row["at"], [], [],
                bool(row["continues"]), bool(row["ends_turn"]), row["stop_reason"], row["name"],
                row["stop_reason"] == "pause_turn", stored_names(row["sources"]),
            )
            for row in self._db.rows(f"SELECT * FROM steps WHERE id IN ({ids}) ORDER BY id")
        }  # fmt: skip
        sql = f"{_CARRIED} WHERE p.step IN ({ids}) {limit} ORDER BY p.id"
        for row in self._db.rows(sql, {"epoch": epoch}):
            counts = Counts(*(row[kind] or 0 for kind in Counts._fields))
            form = json.loads(row["block"]) if row["block"] else None
            found[row["step"]].parts.append(Part(row["id"], row["kind"], row["slot"], form, counts))
        for row in self._db.rows(f"SELECT id, step FROM calls WHERE result IS NULL AND step IN ({ids}) ORDER BY part"):
            found[row["step"]].open_calls.append(row["id"])
        return [step for step in found.values() if step.parts or through_part is None]

    def reformed_since(self, steps: Sequence[int], epoch: int) -> set[int]:
        """Return which parts of these steps a later epoch carries otherwise: their sizes are of that form."""
        theirs = f"p.step IN ({','.join(map(str, steps))})"
        sql = f"SELECT f.part FROM parts p JOIN forms f ON f.part = p.id WHERE {theirs} AND f.epoch > ?"
        return {row["part"] for row in self._db.rows(sql, (epoch,))}

    def append_call(self, call_id: str, step: int, part: int) -> None:
        """Insert an open call."""
        self._db.run("INSERT INTO calls (id, step, part) VALUES (?, ?, ?)", (call_id, step, part))
        self._has_calls = True

    def call_exists(self, call_id: str) -> bool:
        """Return True if a call of this id exists."""
        return self._db.row("SELECT 1 FROM calls WHERE id = ?", (call_id,)) is not None

    def answer_call(self, call_id: str, part: int) -> None:
        """Store which part answers a call."""
        self._db.run("UPDATE calls SET result = ?, waiting = 0 WHERE id = ?", (part, call_id))

    def begin_call(self, call_id: str, at: int) -> None:
        """Store when a call began."""
        self._db.run("UPDATE calls SET began_at = ?, waiting = 0 WHERE id = ?", (at, call_id))

    def hold_call(self, call_id: str) -> None:
        """Mark a call as waiting for approval."""
        self._db.run("UPDATE calls SET waiting = 1 WHERE id = ?", (call_id,))

    def open_calls(self) -> list[Call]:
        """Return the calls without a result."""
        sql = "SELECT c.*, p.block FROM calls c JOIN parts p ON p.id = c.part WHERE c.result IS NULL ORDER BY c.part"
        calls: list[Call] = []
        for row in self._db.rows(sql):
            block: Json = json.loads(row["block"])
            given, state = block.get("input") or Json(), (row["began_at"] is not None, bool(row["waiting"]))
            calls.append(Call(row["id"], block["name"], given, f"s{row['step']}", *state))
        return calls

    def moments(self) -> list[tuple[int, int, int]]:
        """Return every step, when it was said, and its bytes."""
        sql = (
            "SELECT s.id, s.at, sum(length(CAST(p.block AS BLOB))) AS bytes FROM steps s JOIN parts p ON p.step = s.id"
            " WHERE p.kind = 'said' AND s.purged = 0 GROUP BY s.id ORDER BY s.at"
        )
        return [(row["id"], row["at"], row["bytes"]) for row in self._db.rows(sql)]
