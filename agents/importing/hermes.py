"""Read the home of Hermes: ~/.hermes, or what HERMES_HOME names.

state.db                 sessions and messages, in SQLite
sessions/*.json[l]       the same, as older versions wrote them
memories/MEMORY.md       what it noted, entries between lines with a section sign
memories/USER.md         what it knows of its user, likewise

The database is somebody else's file: it is opened for reading alone, only its two tables are asked, and a view in their
place is refused.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from agents.importing.formats import Conversation
from agents.importing.messages import Record, as_list, as_object, records_of_message
from agents.importing.notes import MarkdownSection, read_text
from agents.importing.tool_sources import Reader
from pager.errors import RejectedError
from pager.safety import foreign_files

DELIMITER = "\n\u00a7\n"
ENCODED = ("\x00json:", "\x01json:")  # how content begins that is no plain text
LARGEST_DATABASE_BYTES = 32 << 30
SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:", "[PRIOR CONTEXT")  # how they begin where no column says it
SAME_WRITE_S = 0.001
MOST_STEPS = 50_000_000_000  # of SQLite's virtual machine: a file that was made to take for ever does not
ROLES = frozenset({"user", "assistant", "tool"})


def is_home(path: Path) -> bool:
    """Return True for a folder with its database or its memory files."""
    return (path / "state.db").is_file() or any(
        (path / "memories" / name).is_file() for name in ("MEMORY.md", "USER.md")
    )


def notes(home: Path) -> Iterator[MarkdownSection]:
    """Yield the entries of the memory files. They have no key: an entry has no name in Hermes either."""
    for name in ("MEMORY.md", "USER.md"):
        file = home / "memories" / name
        if file.is_file() and not file.is_symlink() and not file.parent.is_symlink():
            for entry in read_text(file).split(DELIMITER):
                if entry.strip():
                    yield MarkdownSection("", entry.strip())


def sessions(home: Path) -> Iterator[Conversation]:
    """Yield the sessions of the database, oldest first, then those of files that it does not have."""
    known: set[str] = set()
    database = home / "state.db"
    if database.is_file():
        with closing(_open(database)) as connection:
            for session in _asked(database, connection, "SELECT id FROM sessions ORDER BY started_at, id"):
                known.add(str(session["id"]))
                yield Conversation(str(session["id"]), _records(database, connection, session["id"]))
    folder = home / "sessions"
    for file in sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else ():
        name = file.stem.removeprefix("session_")
        if file.suffix in (".json", ".jsonl") and file.is_file() and not file.is_symlink() and name not in known:
            yield Conversation(name, _in_file(file))


def _open(file: Path) -> sqlite3.Connection:
    try:
        foreign_files.open_file(file, LARGEST_DATABASE_BYTES, follow_link=False).close()
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
    except (OSError, sqlite3.Error) as error:
        raise RejectedError(f"{file} cannot be read: {error}.") from None
    connection.row_factory = sqlite3.Row
    connection.text_factory = _text
    left = iter(range(MOST_STEPS // 1_000_000))
    connection.set_progress_handler(lambda: 0 if next(left, None) is not None else 1, 1_000_000)
    try:
        tables = _asked(file, connection, "SELECT name FROM sqlite_master WHERE type = 'table'", trust=False)
        if missing := {"sessions", "messages"} - {row["name"] for row in tables}:
            lacks = " and no table ".join(sorted(missing))
            raise RejectedError(f"{file} is no database of Hermes: it has no table {lacks}.")
    except RejectedError:
        connection.close()
        raise
    return connection


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _asked(
    file: Path, connection: sqlite3.Connection, sql: str, values: tuple[Any, ...] = (), *, trust: bool = True
) -> list[sqlite3.Row]:
    try:
        if not trust:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
        return connection.execute(sql, values).fetchall()
    except sqlite3.Error as error:
        raise RejectedError(f"{file} cannot be read: {error}. Stop Hermes, or copy its home, and try again.") from None


def _records(file: Path, connection: sqlite3.Connection, session: str) -> Iterator[tuple[str, Record]]:
    columns = {row["name"] for row in _asked(file, connection, "SELECT name FROM pragma_table_info('messages')")}
    kept = ["session_id = ?"]
    if {"active", "compacted"} <= columns:
        kept.append("(active = 1 OR compacted = 1)")  # neither: taken back
    sql = f"SELECT * FROM messages WHERE {' AND '.join(kept)} ORDER BY id"
    reader = Reader()
    for row in _without_summaries([dict(row) for row in _asked(file, connection, sql, (session,))]):
        yield from _said(row, f"{file}: message {row['id']}", reader)


def _without_summaries(rows: list[Record]) -> Iterator[Record]:
    """Yield rows without the summaries of a compaction, and without what it wrote again: the beginning and the end.

    Such a copy has the time of its message, or that of the summary, give or take some microseconds.
    """
    summaries = {row["id"]: _seconds(row) for row in rows if _is_summary(row)}
    times: dict[str, set[float]] = {}  # what was said -> when
    for row in rows:
        said = json.dumps([row.get(name) for name in ("role", "content", "tool_call_id", "tool_calls")], default=str)
        before, at = times.get(said, set()), _seconds(row)
        if row["id"] in summaries or (before and any(abs(at - each) < SAME_WRITE_S for each in summaries.values())):
            continue
        if at not in before:
            times.setdefault(said, set()).add(at)
            yield row


def _seconds(row: Record) -> float:
    at: Any = row.get("timestamp")
    return float(at) if isinstance(at, int | float) else 0.0  # what is no time is refused with its place


def _is_summary(row: Record) -> bool:
    return bool(row.get("_compressed_summary")) or str(row.get("content")).startswith(SUMMARIES)


def _said(row: Record, where: str, reader: Reader) -> Iterator[tuple[str, Record]]:
    if row.get("role") not in ROLES:
        return
    calls = as_list(_decoded(row.get("tool_calls")))
    for call in map(as_object, calls):
        function = as_object(call.get("function"))
        reader.note_calls([(call.get("id"), function.get("name"), _decoded(function.get("arguments")))])
    content = row.get("content")
    if isinstance(content, str) and content.startswith(ENCODED):
        content = _decoded(content.partition(":")[2])
    message = {"role": row["role"], "content": content, "timestamp": row.get("timestamp"), "tool_calls": calls or None}
    for record in records_of_message(message, where):
        yield where, reader.labelled(record, [row.get("tool_call_id")])


def _decoded(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _in_file(file: Path) -> Iterator[tuple[str, Record]]:
    text, reader = read_text(file, cut=True), Reader()
    if file.suffix == ".json":
        try:
            value = as_object(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise RejectedError(f"{file} is not JSON: {error}.") from None
        rows = as_list(value.get("messages"))
    else:
        rows = [_decoded(line) for line in text.split("\n") if line.strip()]
    for number, row in enumerate(map(as_object, rows), start=1):
        yield from _said(row, f"{file}:{number}", reader)
