"""Memories that others keep as Markdown (CLAUDE.md, MEMORY.md, a directory of such files), as facts of the archive.

Each section is a fact under its headings, so that a search finds the one that fits. Its key names the directory that
was given, or the one that the file is in, the file from there on, and the headings: the same file taken again has the
same keys, and two projects' CLAUDE.md have others. Taken again, a section that reads otherwise supersedes the old one
and one that does not is left alone; a section that is gone stays a fact until it is forgotten.

YAML front matter is a fact of its own. Files that a text imports with `@path` are taken with it, if they are below the
same directory. What is hidden (.git) or was installed (node_modules) is left out.

    >>> [(fact.key, fact.text) for fact in facts("app/CLAUDE.md", "# Build\\nmake\\n## Tests\\npytest")]
    [('app/CLAUDE.md#Build', '# Build\\nmake'), ('app/CLAUDE.md#Build/Tests', '# Build\\n## Tests\\npytest')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pager.errors import RejectedError
from pager.memory import Memory

SUFFIXES = frozenset({".md", ".markdown"})
INSTALLED = frozenset({"node_modules", "site-packages", "venv"})
FRONT_MATTER = "front matter"
MOST_IMPORTS = 5  # from file to file, as Claude Code has it
_HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
_FRONT = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:\.{1,2}/|/)?[\w./-]*\.\w+)")


class Noted(NamedTuple):
    key: str
    text: str


def are_notes(path: Path) -> bool:
    return path.is_dir() or path.suffix.lower() in SUFFIXES


def facts(name: str, text: str) -> list[Noted]:
    """The sections of a file that say something, in order, each below the headings over it."""
    front = _FRONT.match(text)
    sections: list[tuple[list[str], str, str]] = []
    if front and front[1].strip():
        sections.append(([], front[1], f"{name}#{FRONT_MATTER}"))
    for headings, body in _sections(text[front.end() :] if front else text):
        if body.strip():
            titles = "/".join(map(_title, headings))
            sections.append((headings, body, f"{name}#{titles}" if headings else name))
    taken = {key for _, _, key in sections}
    found: dict[str, Noted] = {}
    for headings, body, key in sections:
        own, number = key, 1
        while own in found or (number > 1 and own in taken):  # "A (2)" may be the name of another section
            number += 1
            own = f"{key} ({number})"
        found[own] = Noted(own, "\n".join((*headings, body.strip("\n"))))
    return list(found.values())


def _title(heading: str) -> str:
    found = _HEADING.fullmatch(heading)
    return found[2] if found else heading


def _sections(text: str) -> Iterator[tuple[list[str], str]]:
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
    """Each line, and whether it is in a fenced piece of code, which as many marks close as opened it, or more."""
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


def take(memory: Memory, path: Path) -> int:
    """Archive what the files say, all or none; how many facts are new or changed."""
    base = (path if path.is_dir() else path.parent).resolve()
    files = _with_imports(_markdown_in(path) if path.is_dir() else [path], base)
    if not files:
        raise RejectedError(f"{path} holds no Markdown files ({', '.join(sorted(SUFFIXES))}).")
    taken = 0
    with memory.transaction():
        for file, text in files.items():
            for noted in facts((Path(base.name) / file.relative_to(base)).as_posix(), text):
                known = memory.inspect.current_fact(noted.key)
                if known is None or known.text != noted.text:
                    memory.archive(noted.text, key=noted.key)
                    taken += 1
    return taken


def _markdown_in(folder: Path) -> list[Path]:
    found: list[Path] = []
    try:
        for each in sorted(folder.iterdir()):
            if each.name.startswith(".") or each.is_symlink():
                continue
            if each.is_dir():
                found += _markdown_in(each) if each.name not in INSTALLED else []
            elif each.is_file() and each.suffix.lower() in SUFFIXES:  # to read a pipe is to wait for its writer
                found.append(each)
    except OSError as error:
        raise RejectedError(f"{folder} cannot be read: {error.strerror}.") from None
    return found


def _with_imports(files: list[Path], base: Path) -> dict[Path, str]:
    """The texts of these files and of those that they import, as long as they are below `base`."""
    texts: dict[Path, str] = {}
    wanted = [file.resolve() for file in files]
    for _ in range(MOST_IMPORTS + 1):
        new = [file for file in dict.fromkeys(wanted) if file not in texts]
        texts |= {file: _read(file) for file in new}
        wanted = [each for file in new for each in _imported(file, texts[file]) if each.is_relative_to(base)]
    return texts


def _imported(file: Path, text: str) -> list[Path]:
    lines = (re.sub(r"`[^`]*`", "", line) for line, is_code in _lines(text) if not is_code)
    named = [file.parent / match[1] for line in lines for match in _IMPORT.finditer(line)]
    return [each.resolve() for each in named if _is_file(each)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # what only looks like a path may be longer than one can be
        return False


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RejectedError(f"{file} cannot be read: {error}.") from None
