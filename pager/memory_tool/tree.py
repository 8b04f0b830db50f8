"""The paths of the memory tool as blocks, facts, days and pages, with their texts, read from the memory.

/memories/core/<block>.md     a core block
/memories/archive/<key>       the current fact of a key; a fact without a key is named by its id: f12
/memories/<key>               the fact of the key /<key>, for programs that put their files anywhere
/memories/recall/<day>.md     what was said on a day and is not in the prompt; and any page by its id: s45, x3

A page is shown in lines of at most `LINE_CHARS`, so that a range of lines reaches every piece of it.

>>> place_of("/memories/todo.md"), path_of(Place("archive", "/todo.md"))
(Place(area='archive', name='/todo.md'), '/memories/todo.md')
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pager.arguments import normalize
from pager.clock import format_minute, read_moment
from pager.errors import NotFoundError, RejectedError
from pager.markup import one_line
from pager.memory import Memory
from pager.reader import MemoryReader
from pager.store.rows import FactSize
from pager.types import Block, Fact

LINE_CHARS = 500
IN_PROMPT = frozenset({"step", "request"})
ROOT = "/memories"
ARCHIVE, CORE, RECALL = "archive", "core", "recall"
AREAS = (ARCHIVE, CORE, RECALL)
MARKDOWN = ".md"
MAX_NAME_BYTES = 255
_FACT_ID = re.compile(r"f[0-9]+")
_HEADING = re.compile(r"[\W_]*[#\ufe5f\uff03]")  # what could be read as the heading of another step
_ABOVE = "/-"  # stands for what lies above /memories, so that a path can lead there


class Place(NamedTuple):
    """The target of a path. `area` is empty for /memories itself, `name` for the directory of the area."""

    area: str
    name: str


def place_of(path: str) -> Place:
    """Return the place of a path, resolved as a file system would. Raises RejectedError if it leads elsewhere."""
    if not path.startswith(ROOT):
        raise RejectedError(f"Path must start with {ROOT}, got: {path}")
    whole = posixpath.normpath(f"{_ABOVE}{ROOT}/{normalize('NFC', path[len(ROOT) :])}")
    if whole != _ABOVE + ROOT and not whole.startswith(f"{_ABOVE}{ROOT}/"):
        raise RejectedError(f"Path {path} would escape {ROOT} directory")
    inside = whole[len(_ABOVE + ROOT) + 1 :]
    area, _, name = inside.partition("/")
    if not inside or area in AREAS:
        return Place(area, name)
    return Place(ARCHIVE, f"/{inside}")


def path_of(place: Place) -> str:
    """Return the path of a place."""
    if place.area == ARCHIVE and place.name.startswith("/"):
        return f"{ROOT}{place.name}"
    return "/".join(filter(None, (ROOT, place.area, place.name)))


def is_name(key: str) -> bool:
    """Return True if a key can be a file's name; else the fact is named by its id."""
    names = key.removeprefix("/").split("/")
    whole = all(name not in ("", ".", "..") and name.isprintable() for name in names)
    short = all(len(name.encode()) <= MAX_NAME_BYTES for name in names)
    free = not _FACT_ID.fullmatch(key) and not (key.startswith("/") and names[0] in AREAS)
    return whole and short and free and key == key.strip()


@dataclass(frozen=True, slots=True)
class File:
    """The text of a file, its fact if it is one, and the pages in it with the lines where they begin."""

    text: str
    fact: Fact | None = None
    pages: tuple[tuple[int, str], ...] = ()

    def pages_in(self, first: int, last: int) -> list[str]:
        """Return the pages of which some line is among these, counted from 1."""
        ends = [start for start, _ in self.pages[1:]] + [last + 1]
        return [page for (start, page), end in zip(self.pages, ends, strict=False) if start <= last and end > first]


class MemoryTree:
    """Looks up paths in a memory. Writes nothing."""

    def __init__(self, memory: Memory | MemoryReader) -> None:
        self._memory = memory

    def file(self, place: Place) -> File | None:
        """Return the file at a place, or None."""
        if not place.name:
            return None
        if place.area == CORE:
            block = self._block(place)
            return File(block.value) if block else None
        if place.area == RECALL:
            return self._recall_file(place.name.removesuffix(MARKDOWN))
        fact = self._fact(place.name)
        return File(fact.text, fact, ((1, fact.id),)) if fact else None

    def check_new(self, place: Place, path: str) -> None:
        """Raise RejectedError if there cannot be a file of the archive at a place."""
        if not is_name(place.name):
            names = f"names have at most {MAX_NAME_BYTES} bytes between slashes, no blanks at their ends and no control"
            fact = "and a fact that has none is named by its id. Choose another one"
            raise RejectedError(f"{path} cannot be a new file: {names} characters, {fact}.")
        names = place.name.split("/")
        for end in range(2 if place.name.startswith("/") else 1, len(names)):  # the directories above it
            folder = Place(place.area, "/".join(names[:end]))
            if self.file(folder) is not None:
                raise RejectedError(f"{path} cannot be a new file: {path_of(folder)} is a file, not a directory.")

    def is_directory(self, place: Place) -> bool:
        """Return True for the directory of a tier, and for one that some fact's name begins with."""
        return not place.name or (place.area == ARCHIVE and bool(self._named(f"{place.name}/")))

    def files(self, place: Place) -> dict[str, int]:
        """Return the files below a directory by their names relative to it, with their sizes in bytes."""
        if place.area == CORE:
            return {f"{block.name}{MARKDOWN}": len(block.value.encode()) for block in self._memory.core()}
        if place.area == RECALL:
            days = self._memory.history.days(without=self._in_prompt())
            return {f"{day}{MARKDOWN}": count for day, count in days.items()}
        if place.name:
            return {row.key[len(place.name) + 1 :]: row.bytes for row in self._named(f"{place.name}/")}
        if place.area == ARCHIVE:
            rows = self._memory.inspect.facts_by_key()
            named = {row.key: row.bytes for row in rows if is_name(row.key) and not row.key.startswith("/")}
            return named | {row.id: row.bytes for row in rows if not is_name(row.key)}
        below = {area: self.files(Place(area, "")) for area in AREAS}
        tiers = {f"{area}/{name}": count for area, files in below.items() for name, count in files.items()}
        return tiers | {row.key[1:]: row.bytes for row in self._named("/")}

    def _named(self, prefix: str) -> list[FactSize]:
        return [row for row in self._memory.inspect.facts_by_key(prefix) if is_name(row.key)]

    def sources_below(self, place: Place) -> set[str]:
        """Return the untrusted sources of the facts whose names a directory shows."""
        prefix = f"{place.name}/" if place.area == ARCHIVE and place.name else ""
        rows = self._memory.inspect.facts_by_key(prefix) if place.area in ("", ARCHIVE) else []
        return {name for row in rows for name in row.via}

    def block_sources(self, place: Place) -> tuple[str, ...]:
        """Return the untrusted sources of the core block at a place."""
        block = self._block(place)
        return block.via if block else ()

    def facts_below(self, place: Place) -> list[Fact]:
        """Return all facts of a directory of the archive."""
        if place.area != ARCHIVE:
            return []
        return [self._memory.fact(row.id) for row in self._named(f"{place.name}/")]

    def _fact(self, name: str) -> Fact | None:
        if not _FACT_ID.fullmatch(name):
            return self._memory.inspect.current_fact(name) if is_name(name) else None
        try:
            fact = self._memory.fact(name)
        except NotFoundError:
            return None
        named = fact.key is not None and is_name(fact.key)
        return fact if not named and self._memory.inspect.is_true(fact) else None

    def _block(self, place: Place) -> Block | None:
        name = place.name.removesuffix(MARKDOWN)
        if name == place.name:
            return None
        return next((block for block in self._memory.core() if block.name == name), None)

    def block_name(self, place: Place) -> str:
        """Return the name of the core block at a place. Raises RejectedError with those that there are."""
        block = self._block(place)
        if block is None:
            existing = ", ".join(path_of(Place(CORE, f"{each.name}{MARKDOWN}")) for each in self._memory.core())
            path = path_of(Place(ARCHIVE, place.name))
            way = f"there are: {existing}." if existing else f"this memory has no blocks. Use {path}."
            raise RejectedError(f"there is no core block at {path_of(place)} and none can be made; {way}")
        return block.name

    def _recall_file(self, name: str) -> File | None:
        if name[:1].isdigit():
            return self._day(name)
        try:
            text = self._memory.page_text(name)
        except NotFoundError:
            return None
        return File("\n".join(_lines(text)), None, ((1, name),))

    def _day(self, day: str) -> File | None:
        try:
            read_moment(day, self._memory.zone)
        except RejectedError:
            return None
        in_prompt = self._in_prompt()
        lines, pages = list[str](), list[tuple[int, str]]()
        for step in self._memory.history.steps_on(day):
            if step.page_id not in in_prompt:
                pages.append((len(lines) + 1, step.page_id))
                heading = f"## {step.page_id} {format_minute(step.at)} {one_line(step.who)}"
                text = _lines(self._memory.page_text(step.page_id))
                lines += [heading, *(f"\\{line}" if _HEADING.match(line) else line for line in map(one_line, text)), ""]
        return File("\n".join(lines), None, tuple(pages)) if pages else None

    def _in_prompt(self) -> set[str]:
        return {residency.page_id for residency in self._memory.history.resident() if residency.how in IN_PROMPT}


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from (line[start : start + LINE_CHARS] for start in range(0, max(1, len(line)), LINE_CHARS))
