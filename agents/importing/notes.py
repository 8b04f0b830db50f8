"""Import Markdown notes (CLAUDE.md, MEMORY.md, a folder of such files) as facts of the archive.

Each section is a fact below its headings, so that a search finds the one that fits. Its key is the folder, the file
below it, and the headings: the same file imported again has the same keys, and two projects' CLAUDE.md have different
ones. A section that changed since supersedes the old fact; an unchanged one is left alone; one that was deleted stays a
fact until it is forgotten.

YAML front matter is a fact of its own. Files that a text imports with `@path` are included if they are below the same
folder. Hidden files (.git) and installed packages (node_modules) are left out.

    >>> [(note.key, note.text) for note in sections("app/CLAUDE.md", "# Build\\nmake\\n## Tests\\npytest")]
    [('app/CLAUDE.md#Build', '# Build\\nmake'), ('app/CLAUDE.md#Build/Tests', '# Build\\n## Tests\\npytest')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pager.errors import RejectedError
from pager.memory import Memory

SUFFIXES = frozenset({".md", ".markdown"})
INSTALLED = frozenset({"node_modules", "site-packages", "venv"})
FRONT_MATTER = "front matter"
MAX_IMPORT_DEPTH = 5  # as in Claude Code
_HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
_FRONT = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:\.{1,2}/|/)?[\w./-]*\.\w+)")


class Note(NamedTuple):
    key: str
    text: str


def are_notes(path: Path) -> bool:
    """Return True for a folder or a Markdown file."""
    return path.is_dir() or path.suffix.lower() in SUFFIXES


def import_notes(memory: Memory, path: Path) -> int:
    """Archive the sections of a file or a folder, all or none. Return how many facts are new or changed."""
    base = (path if path.is_dir() else path.parent).resolve()
    files = _with_imports(_markdown_in(path) if path.is_dir() else [path], base)
    if not files:
        raise RejectedError(f"{path} holds no Markdown files ({', '.join(sorted(SUFFIXES))}).")
    names = {file: (Path(base.name) / file.relative_to(base)).as_posix() for file in files}
    imported = 0
    with memory.transaction():
        for note in (note for file, text in files.items() for note in sections(names[file], text)):
            current = memory.inspect.current_fact(note.key)
            if current is None or current.text != note.text:
                memory.archive(note.text, key=note.key)
                imported += 1
    return imported


def sections(name: str, text: str) -> list[Note]:
    """Return the sections of a file that have a text, in order, each below its headings."""
    front = _FRONT.match(text)
    found: list[tuple[list[str], str, str]] = []
    if front and front[1].strip():
        found.append(([], front[1], f"{name}#{FRONT_MATTER}"))
    for headings, body in _bodies(text[front.end() :] if front else text):
        if body.strip():
            titles = [match[2] if (match := _HEADING.fullmatch(heading)) else heading for heading in headings]
            found.append((headings, body, f"{name}#{'/'.join(titles)}" if headings else name))
    taken = {key for _, _, key in found}
    notes: dict[str, Note] = {}
    for headings, body, key in found:
        own, number = key, 1
        while own in notes or (number > 1 and own in taken):  # "A (2)" may be the name of another section
            number += 1
            own = f"{key} ({number})"
        notes[own] = Note(own, "\n".join((*headings, body.strip("\n"))))
    return list(notes.values())


def _bodies(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the text below each heading, with the headings over it."""
    above: dict[int, str] = {}
    body: list[str] = []
    for line, is_code in _lines(text):
        heading = None if is_code else _HEADING.fullmatch(line)
        if heading is None:
            body.append(line)
            continue
        yield list(above.values()), "\n".join(body)
        level, body = len(heading[1]), []
        above = {depth: title for depth, title in above.items() if depth < level} | {level: line.strip()}
    yield list(above.values()), "\n".join(body)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and True if it is in a fenced block of code. At least as many marks close it as opened it."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.fullmatch(line)
        if not fence:
            fence = mark[1] if mark else ""
            yield line, bool(fence)
            continue
        yield line, True
        if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
            fence = ""


def _markdown_in(folder: Path) -> list[Path]:
    files: list[Path] = []
    try:
        for path in sorted(folder.iterdir()):
            if path.name.startswith(".") or path.is_symlink():
                continue
            if path.is_dir():
                files += _markdown_in(path) if path.name not in INSTALLED else []
            elif path.is_file() and path.suffix.lower() in SUFFIXES:  # reading a pipe would wait for its writer
                files.append(path)
    except OSError as error:
        raise RejectedError(f"{folder} cannot be read: {error.strerror}.") from None
    return files


def _with_imports(files: list[Path], base: Path) -> dict[Path, str]:
    texts: dict[Path, str] = {}
    wanted = [file.resolve() for file in files]
    for _ in range(MAX_IMPORT_DEPTH + 1):
        new = [file for file in dict.fromkeys(wanted) if file not in texts]
        texts |= {file: read_text(file) for file in new}
        wanted = list[Path]()
        for file in new:
            lines = (re.sub(r"`[^`]*`", "", line) for line, is_code in _lines(texts[file]) if not is_code)
            for match in (match for line in lines for match in _IMPORT.finditer(line)):
                with suppress(OSError):  # what only looks like a path may be too long for one
                    path = file.parent / match[1]
                    if path.is_file() and path.resolve().is_relative_to(base):
                        wanted.append(path.resolve())
    return texts


def read_text(file: Path) -> str:
    """Return the text of a file. Raises RejectedError if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RejectedError(f"{file} cannot be read: {error}.") from None
