"""Memories that others keep as Markdown (CLAUDE.md, MEMORY.md, a directory of such files), as facts of the archive.

Each section is a fact under its headings, so that a search finds the one that fits; its key names file and headings.
Taken again, a section that reads otherwise supersedes the old one and one that does not is left alone.

    >>> [(fact.key, fact.text) for fact in facts("CLAUDE.md", "# Build\\nmake\\n## Tests\\npytest")]
    [('CLAUDE.md#Build', '# Build\\nmake'), ('CLAUDE.md#Build/Tests', '# Build\\n## Tests\\npytest')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pager.errors import Refused
from pager.memory import Memory

SUFFIXES = frozenset({".md", ".markdown"})
_HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*")
_FENCE = re.compile(r"\s*(```|~~~)")


class Noted(NamedTuple):
    key: str
    text: str


def are_notes(path: Path) -> bool:
    return path.is_dir() or path.suffix.lower() in SUFFIXES


def facts(name: str, text: str) -> list[Noted]:
    """The sections of a file that say something, in order, each below the headings over it."""
    found: list[Noted] = []
    for headings, body in _sections(text):
        if body.strip():
            key = f"{name}#{'/'.join(map(_title, headings))}" if headings else name
            same = sum(noted.key == key or noted.key.startswith(f"{key} (") for noted in found)
            found.append(Noted(f"{key} ({same + 1})" if same else key, "\n".join((*headings, body.strip("\n")))))
    return found


def _title(heading: str) -> str:
    found = _HEADING.fullmatch(heading)
    return found[2] if found else heading


def _sections(text: str) -> Iterator[tuple[list[str], str]]:
    above: dict[int, str] = {}
    body: list[str] = []
    fence = ""
    for line in text.split("\n"):
        heading = None if fence else _HEADING.fullmatch(line)
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence == mark[1] else fence or mark[1]
        if heading is None:
            body.append(line)
            continue
        yield list(above.values()), "\n".join(body)
        level, body = len(heading[1]), []
        above = {depth: title for depth, title in above.items() if depth < level} | {level: line.strip()}
    yield list(above.values()), "\n".join(body)


def take(memory: Memory, path: Path) -> int:
    """Archive what the files say, all or none; how many facts are new or changed."""
    files = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES) if path.is_dir() else [path]
    if not files:
        raise Refused(f"{path} holds no Markdown files ({', '.join(sorted(SUFFIXES))}).")
    base = path if path.is_dir() else path.parent
    taken = 0
    with memory.transaction():
        for file in files:
            for noted in facts(file.relative_to(base).as_posix(), _read(file)):
                known = memory.current_fact(noted.key)
                if known is None or known.text != noted.text:
                    memory.archive(noted.text, key=noted.key, neighbours=0)
                    taken += 1
    return taken


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{file} cannot be read: {error}.") from None
