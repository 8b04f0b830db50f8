"""What lies at a path of the provider's memory tool: texts, directories and sizes, read from the tiers.

A fact is there while it is true. A day of recall holds what was said then and is not in view; any page can be read by
its id, in lines of at most `LINE_CHARS`, so that a range of lines reaches every piece of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pager.clock import read_moment
from pager.errors import NotFoundError, RejectedError
from pager.markup import stamp
from pager.memory import Memory
from pager.memory_tool.paths import ARCHIVE, CORE, MARKDOWN, RECALL, ROOT, Place, is_name, number_of_fact, path_of_key
from pager.reader import MemoryReader
from pager.types import Block, Fact

LINE_CHARS = 500
IN_VIEW = frozenset({"step", "request"})


@dataclass(frozen=True, slots=True)
class Found:
    """The text of a file, the fact that it is (if it is one), and the pages in it, with the lines where they begin."""

    text: str
    fact: Fact | None = None
    pages: tuple[tuple[int, str], ...] = ()

    def pages_in(self, first: int, last: int) -> list[str]:
        """The pages that stand, if only partly, in these lines, counted from 1."""
        ends = [start for start, _ in self.pages[1:]] + [last + 1]
        return [page for (start, page), end in zip(self.pages, ends, strict=False) if start <= last and end > first]


class Shelf:
    def __init__(self, memory: Memory | MemoryReader, actor: str) -> None:
        self._memory = memory
        self._actor = actor

    # what is there

    def exists(self, place: Place) -> bool:
        return self.text(place) is not None or self.is_directory(place)

    def text(self, place: Place) -> Found | None:
        """The file at a place; None where there is none."""
        if not place.name:
            return None
        if place.area == CORE:
            block = self._block(place)
            return Found(block.value) if block else None
        if place.area == RECALL:
            return self._recalled(place.name.removesuffix(MARKDOWN))
        fact = self._fact(place.name)
        return Found(fact.text, fact, ((1, fact.id),)) if fact else None

    def is_directory(self, place: Place) -> bool:
        return not place.name or (place.area == ARCHIVE and bool(self._named(f"{place.name}/")))

    def files(self, place: Place) -> dict[str, int]:
        """The files below a directory by their names from it on, with their sizes in bytes."""
        if place.area == CORE:
            return {f"{block.name}{MARKDOWN}": len(block.value.encode()) for block in self._memory.core()}
        if place.area == RECALL:
            return {
                f"{day}{MARKDOWN}": count for day, count in self._memory.history.days(without=self._in_view()).items()
            }
        if place.name:
            return {key[len(place.name) + 1 :]: count for _, key, count in self._named(f"{place.name}/")}
        if place.area == ARCHIVE:
            return self._archived()
        tiers = {
            f"{area}/{name}": count
            for area in (ARCHIVE, CORE, RECALL)
            for name, count in self.files(Place(area, "")).items()
        }
        return tiers | {key[1:]: count for _, key, count in self._named("/")}

    def _archived(self) -> dict[str, int]:
        """The directory of the archive: facts by their names, and those without one by their ids."""
        rows = self._memory.inspect.facts_by_key()
        named = {key: count for _, key, count in rows if is_name(key) and not key.startswith("/")}
        without = [(number, count) for number, key, count in rows if not is_name(key)]
        without += self._memory.inspect.facts_without_key()
        return named | {f"f{number}": count for number, count in without}

    def _named(self, prefix: str) -> list[tuple[int, str, int]]:
        rows = self._memory.inspect.facts_by_key(prefix)
        return [row for row in rows if is_name(row[1])]

    def facts_below(self, place: Place) -> list[Fact]:
        """All facts of a directory of the archive."""
        if place.area != ARCHIVE:
            return []
        return [self._memory.fact(f"f{number}") for number, _, _ in self._named(f"{place.name}/")]

    def _fact(self, name: str) -> Fact | None:
        number = number_of_fact(name)
        if number is None:
            return self._memory.inspect.current_fact(name) if is_name(name) else None
        try:
            fact = self._memory.fact(f"f{number}")
        except NotFoundError:
            return None
        named = fact.key is not None and is_name(fact.key)
        return fact if not named and self._memory.inspect.is_true(fact) else None

    # core

    def _block(self, place: Place) -> Block | None:
        name = place.name.removesuffix(MARKDOWN)
        if name == place.name:
            return None
        return next((block for block in self._memory.core() if block.name == name), None)

    def is_empty_block(self, place: Place) -> bool:
        block = self._block(place)
        return block is not None and not block.value

    def block_named(self, place: Place) -> str:
        block = self._block(place)
        if block is None:
            there = ", ".join(f"{ROOT}/{CORE}/{known.name}{MARKDOWN}" for known in self._memory.core())
            raise RejectedError(
                f"there is no core block at {ROOT}/{CORE}/{place.name} and none can be made; "
                + (f"there are: {there}." if there else f"there is none. Use {path_of_key(place.name)}.")
            )
        return block.name

    # recall

    def _recalled(self, name: str) -> Found | None:
        if name[:1].isdigit():
            return self._day(name)
        try:
            text = self._memory.page(name)
        except NotFoundError:
            return None
        return Found("\n".join(_lines(text)), None, ((1, name),))

    def _day(self, day: str) -> Found | None:
        try:
            read_moment(day, self._memory.zone)
        except RejectedError:
            return None
        in_view = self._in_view()
        lines, pages = list[str](), list[tuple[int, str]]()
        for step in self._memory.history.steps_on(day):
            if step.page_id not in in_view:
                pages.append((len(lines) + 1, step.page_id))
                heading = f"## {step.page_id} {stamp(step.at)} {step.who}"
                lines += [heading, *_lines(self._memory.page(step.page_id)), ""]
        return Found("\n".join(lines), None, tuple(pages)) if pages else None

    def _in_view(self) -> set[str]:
        return {stay.page_id for stay in self._memory.history.resident() if stay.how in IN_VIEW}

    def note_read(self, pages: Iterable[str]) -> None:
        """The ledger is to know what was read."""
        if isinstance(self._memory, Memory):
            for page in pages:
                self._memory.page_in(page, actor=self._actor)


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from (line[start : start + LINE_CHARS] for start in range(0, max(1, len(line)), LINE_CHARS))
