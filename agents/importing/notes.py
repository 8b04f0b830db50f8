"""Import Markdown notes (CLAUDE.md, MEMORY.md, a folder of such files) as facts of the archive.

Each section is a fact below its headings, so that a search finds the one that fits. Its key is the folder, the file
below it, and the headings: the same file imported again has the same keys, and two projects' CLAUDE.md have different
ones. A section that changed since supersedes the old fact; an unchanged one is left alone; one that was deleted stays a
fact until it is forgotten.

YAML front matter is a fact of its own. Hidden files (.git) and installed packages (node_modules) are left out.

    >>> [(part.key, part.text) for part in sections("app/CLAUDE.md", "# Build\\nmake\\n## Tests\\npytest")]
    [('app/CLAUDE.md#Build', '# Build\\nmake'), ('app/CLAUDE.md#Build/Tests', '# Build\\n## Tests\\npytest')]
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

from pager.errors import RejectedError
from pager.memory import Memory
from pager.safety import foreign_files

SUFFIXES = frozenset({".md", ".markdown"})
INSTALLED = frozenset({"node_modules", "site-packages", "venv"})
FRONT_MATTER = "front matter"
LARGEST_BYTES = 512 << 20  # of a file of notes or conversations
MAX_ABOVE_CHARS = 200  # of a heading, in the sections below it
_FRONT = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)


class MarkdownSection(NamedTuple):
    """A section below its headings, and the key that its fact gets."""

    key: str
    text: str


def are_notes(path: Path) -> bool:
    """Return True for a folder or a Markdown file."""
    return path.is_dir() or path.suffix.lower() in SUFFIXES


def import_notes(memory: Memory, path: Path) -> int:
    """Archive the sections of a file or a folder, all or none. Return how many facts are new or changed."""
    base = (path if path.is_dir() else path.parent).resolve()
    files = _markdown_in(base) if path.is_dir() else [base / path.name]
    if not files:
        raise RejectedError(f"{path} holds no Markdown files ({', '.join(sorted(SUFFIXES))}).")
    texts = {(Path(base.name) / file.relative_to(base)).as_posix(): read_text(file) for file in files}
    imported = 0
    with memory.transaction():
        for section in (section for name, text in texts.items() for section in sections(name, text)):
            current = memory.inspect.current_fact(section.key)
            if current is None or current.text != section.text:
                memory.archive(section.text, key=section.key, source=f"import:{path.name}")
                imported += 1
    return imported


def sections(name: str, text: str) -> list[MarkdownSection]:
    """Return the sections of a file that have a text, in order, each below its headings."""
    front = _FRONT.match(text)
    found: list[tuple[list[str], str, str]] = []
    if front and front[1].strip():
        found.append(([], front[1], f"{name}#{FRONT_MATTER}"))
    for above, body in _bodies(text[front.end() :] if front else text):
        if body.strip():
            headings = [*(heading.cut() for heading in above[:-1]), *above[-1:]]
            key = f"{name}#{'/'.join(heading.title for heading in headings)}" if headings else name
            found.append(([heading.line for heading in headings], body, key))
    taken = {key for _, _, key in found}
    named: dict[str, MarkdownSection] = {}
    last: dict[str, int] = {}  # the number that a key got last
    for headings, body, key in found:
        own, number = key, last.get(key, 1)
        while own in named or (number > 1 and own in taken):  # "A (2)" may be the name of another section
            number += 1
            own = f"{key} ({number})"
        last[key] = number
        named[own] = MarkdownSection(own, "\n".join((*headings, body.strip("\n"))))
    return list(named.values())


class _Heading(NamedTuple):
    level: int
    title: str
    line: str

    def cut(self) -> Self:
        return self._replace(title=self.title[:MAX_ABOVE_CHARS], line=self.line[:MAX_ABOVE_CHARS])


def _bodies(text: str) -> Iterator[tuple[list[_Heading], str]]:
    """Yield the text below each heading, with the headings over it."""
    from markdown_it import MarkdownIt

    lines, above, begin = text.split("\n"), list[_Heading](), 0
    parser = MarkdownIt()
    parser.core.ruler.enableOnly(["normalize", "block"])  # the rest takes quadratic time, and is not needed
    for opening, title in pairwise(parser.parse(text)):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            first, end = opening.map
            yield above, "\n".join(lines[begin:first])
            level, begin = int(opening.tag.removeprefix("h")), end
            own = _Heading(level, title.content, "\n".join(lines[first:end]).strip())
            above = [*(heading for heading in above if heading.level < level), own]
    yield above, "\n".join(lines[begin:])


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


def read_text(file: Path, *, cut: bool = False) -> str:
    """Return the text of a file, without a character that is `cut` off at its end. Raises RejectedError."""
    try:
        return foreign_files.read_text(file, LARGEST_BYTES, cut=cut).removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise RejectedError(f"{file} cannot be read: {reason}.") from None
