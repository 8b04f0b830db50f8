"""Read the home of Claude Code: ~/.claude, or what CLAUDE_CONFIG_DIR names.

projects/<folder>/<session>.jsonl    a line per message, in the form of the Messages API inside an envelope
projects/<folder>/memory/*.md        what it noted by itself
CLAUDE.md, rules/**/*.md             what a person wrote for every project

Of a session, what the person and the model said, calls, and results count, also what the person wrote while the model
was working. Left out are lines that the program keeps for itself (snapshots, titles, hooks, slash commands), summaries
of what stands above them, subagents, and lines that it has written twice. What others said in the person's place (a
task in the background, another session) counts as the result of a tool. Its makers call the format internal, so a line
of another kind is passed over, and one that is no JSON is an error with its place.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agents.importing.formats import Conversation
from agents.importing.messages import Record, as_list, as_object, records_of_message
from agents.importing.notes import MarkdownSection, read_text
from agents.importing.notes import sections as sections_of
from agents.importing.tool_sources import Reader
from pager.errors import RejectedError

LINES = ("user", "assistant")
NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
OTHERS = ("<task-notification>",)  # of the program, in lines without an origin
COMMANDS = ("<command-name>", "<command-message>", "<local-command-", "<bash-")  # of the program, not of the person


def is_home(path: Path) -> bool:
    """Return True for a folder with projects that have sessions or notes."""
    projects = path / "projects"
    return projects.is_dir() and any(
        next(folder.glob("*.jsonl"), None) or (folder / "memory").is_dir() for folder in _folders(projects)
    )


def _folders(projects: Path) -> list[Path]:
    if projects.is_symlink():
        return []
    return [each for each in sorted(projects.iterdir()) if each.is_dir() and not each.is_symlink()]


def notes(home: Path) -> Iterator[MarkdownSection]:
    """Yield the sections of the memory files. Their keys begin with the path below the home."""
    files = [home / "CLAUDE.md", *sorted((home / "rules").rglob("*.md"))]
    for folder in _folders(home / "projects"):
        files += sorted((folder / "memory").glob("*.md"))
    for file in files:
        if file.is_file() and not any(each.is_symlink() for each in (file, *file.parents) if each.is_relative_to(home)):
            yield from sections_of(f"claude-code/{file.relative_to(home).as_posix()}", read_text(file))


def sessions(home: Path) -> Iterator[Conversation]:
    """Yield the sessions, oldest project folder first, each with its messages."""
    for folder in _folders(home / "projects"):
        for file in sorted(folder.glob("*.jsonl")):
            if file.is_file() and not file.is_symlink():
                yield Conversation(f"{folder.name}:{file.stem}", _records(file))


def _records(file: Path) -> Iterator[tuple[str, Record]]:
    reader, seen = Reader(), set[str]()
    lines = read_text(file, cut=True).split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        try:
            entry = as_object(json.loads(line))
        except (ValueError, RecursionError) as error:
            if number >= len(lines) - 1:
                return  # it is being written now, or its writer was killed
            raise RejectedError(f"{where}: this line is not JSON: {error}.") from None
        entry = _unqueued(entry)
        message = as_object(entry.get("message"))
        if entry.get("type") not in LINES or any(entry.get(name) for name in NOT_SAID) or not _is_said(message):
            continue
        if isinstance(uuid := entry.get("uuid"), str):
            if uuid in seen:
                continue
            seen.add(uuid)
        reader.note_calls((part.get("id"), part.get("name"), part.get("input")) for part in _parts(message))
        results = [part.get("tool_use_id") for part in _parts(message) if part.get("type") == "tool_result"]
        role = entry["type"] if _is_own(entry, message) else "tool"
        given = {"role": role, "content": message.get("content"), "timestamp": entry.get("timestamp")}
        for record in records_of_message(given, where):
            yield where, reader.labelled(record, results or [None])


def _unqueued(entry: Record) -> Record:
    """Return a line as it is; of what was written while the model was working, the line that it has become."""
    attached = as_object(entry.get("attachment"))
    if entry.get("type") != "attachment" or attached.get("type") != "queued_command":
        return entry
    said = {"type": "user", "message": {"content": attached.get("prompt")}, "origin": attached.get("origin")}
    return {**entry, **said, "isMeta": attached.get("isMeta"), "uuid": attached.get("source_uuid") or entry.get("uuid")}


def _parts(message: Record) -> list[Record]:
    return [as_object(part) for part in as_list(message.get("content"))]


def _begins(message: Record, beginnings: tuple[str, ...]) -> bool:
    content: Any = message.get("content")
    first: Any = content if isinstance(content, str) else as_object(next(iter(_parts(message)), None)).get("text")
    return isinstance(first, str) and first.lstrip().startswith(beginnings)


def _is_said(message: Record) -> bool:
    content: Any = message.get("content")
    is_made_up = message.get("model") == "<synthetic>"  # by the program, in the model's place
    return bool(content) and isinstance(content, str | list) and not is_made_up and not _begins(message, COMMANDS)


def _is_own(entry: Record, message: Record) -> bool:
    """Return True for what is of the model, or of the person."""
    origin = as_object(entry.get("origin")).get("kind", "human")
    return entry["type"] == "assistant" or (origin == "human" and not _begins(message, OTHERS))
