"""Regular expressions over the files of a directory: the only file that knows RE2, which matches in linear time.

A search is bounded: in its hits, in the files and bytes that it looks at, and in its time. What was left out is said.
"""

import errno
import os
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from agents.builtin.confined import Entry, Parts, Tree, entries, read_in, step_into
from agents.builtin.ignored import Rules
from agents.builtin.texts import DOCUMENTS, MAX_TEXT_BYTES, as_utf8
from agents.tools.functions import ToolCallError
from pager import RejectedError, one_line
from pager.errors import brief

MAX_PATTERN_CHARS = 1_000
MAX_HITS = 200
MAX_FILES = 50_000
MAX_BYTES = 1 << 30
MAX_DEPTH = 64
BLOCK_BYTES = 64 << 10  # searched at once; RE2 may need 10 µs a byte for the worst patterns
OVERLAP_BYTES = 4 << 10  # of the pieces of one line: so long a match is found wherever it stands
SHOWN_BYTES = 300  # of a line that matches, around the match
SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})  # of the machine: they say nothing of a file
MATCHER_BYTES = 16 << 20  # what RE2 may take for the states of a pattern


class Pattern:
    """A regular expression in RE2's syntax, for UTF-8. `^` and `$` stand for the ends of a line."""

    def __init__(self, text: str) -> None:
        import re2  # pyright: ignore[reportMissingTypeStubs]

        matcher: Any = re2
        if len(text) > MAX_PATTERN_CHARS:
            raise RejectedError(f"the pattern has {len(text):,} characters; at most {MAX_PATTERN_CHARS:,} are used.")
        options = matcher.Options()
        options.log_errors = False
        options.never_nl = True
        options.max_mem = MATCHER_BYTES
        try:
            self._found: Any = matcher.compile(f"(?m){text}", options)
        except matcher.error as error:
            why = b" ".join(error.args).decode("utf-8", "replace")
            hint = "RE2 knows no look-ahead, look-behind and back-references; \\ makes a sign literal"
            raise RejectedError(
                f"{brief(text, 200)} is no regular expression that can be used: {why} ({hint})."
            ) from None

    def search(self, content: bytes, start: int = 0) -> tuple[int, int] | None:
        """Return where the first match from `start` on begins and ends."""
        found = self._found.search(content, start)
        return found.span() if found else None


@dataclass(slots=True)
class Found:
    """The lines that a search found, by file, and what it left out."""

    lines: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    hits: int = 0
    files: int = 0
    bytes: int = 0
    left_out: Counter[str] = field(default_factory=Counter[str])
    stopped: str = ""

    def add(self, path: str, line: str) -> None:
        """Note a line, or the name, of a file."""
        self.lines.setdefault(path, []).append(line)
        self.hits += 1


class _Enough(Exception):
    """A bound of the search is reached."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search in a tree."""

    tree: Tree
    pattern: Pattern
    deadline: float  # of time.monotonic
    found: Found = field(default_factory=Found)

    def run(self, parts: Parts) -> Found:
        """Search a file, or the files below a directory."""
        try:
            if self.tree.kind(parts) == "directory":
                rules = Rules()
                for depth in range(len(parts)):
                    with self.tree.directory(parts[:depth]) as descriptor:
                        rules = rules.within(descriptor, depth)
                with self.tree.directory(parts) as descriptor:
                    self._directory(descriptor, parts, rules)
            else:
                with self.tree.directory(parts[:-1]) as descriptor:
                    self._file(descriptor, parts)
        except _Enough as enough:
            self.found.stopped = str(enough)
        return self.found

    def _directory(self, descriptor: int, parts: Parts, rules: Rules) -> None:
        rules = rules.within(descriptor, len(parts))
        listed, is_all = entries(descriptor)
        self.found.left_out["directories of which only the first entries were searched"] += not is_all
        for entry in listed:
            self._check()
            below = (*parts, entry.shown)
            if rules.ignore(below, is_directory=entry.kind == "directory"):
                self.found.left_out["ignored"] += 1
            elif entry.name.startswith("."):
                self.found.left_out["hidden"] += 1
            elif entry.kind == "directory":
                self._below(descriptor, entry, below, rules)
            elif entry.kind == "file":
                self._file(descriptor, below, entry)
            else:
                self.found.left_out["links, pipes and devices"] += 1

    def _below(self, descriptor: int, entry: Entry, parts: Parts, rules: Rules) -> None:
        if len(parts) > MAX_DEPTH:
            self.found.left_out["too deep"] += 1
            return
        try:
            opened = step_into(descriptor, entry.name)
        except (OSError, ToolCallError) as error:  # it is a link by now, or not ours to read
            if getattr(error, "errno", None) in SHORTAGES:
                raise
            self.found.left_out["not readable"] += 1
            return
        try:
            self._directory(opened, parts, rules)
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
            self.found.left_out["not readable"] += 1
        finally:
            os.close(opened)

    def _file(self, descriptor: int, parts: Parts, entry: Entry | None = None) -> None:
        path = "/".join(parts)
        if self.pattern.search(path.encode()):
            self._hit(path, "(its name)")
        if parts[-1].casefold().endswith(DOCUMENTS):
            self.found.left_out["PDF and Office (read_file reads them)"] += 1
            return
        try:
            raw = read_in(descriptor, entry.name if entry else parts[-1], path, MAX_TEXT_BYTES)
        except (OSError, ToolCallError) as error:
            if entry is None or getattr(error, "errno", None) in SHORTAGES:
                raise
            self.found.left_out["not readable or too large"] += 1
            return
        self.found.files += 1
        self.found.bytes += len(raw)
        content = as_utf8(raw)
        if content is None:
            self.found.left_out["binary"] += 1
            return
        for number, line in self._matches(content):
            self._hit(path, f"{number}: {line}")

    def _matches(self, content: bytes) -> Generator[tuple[int, str]]:
        """Yield the number of each line that matches, and what is shown of it."""
        number, newest = 1, 0
        for block in _blocks(content):
            self._check()
            at = counted = 0
            while span := self.pattern.search(block, at):
                if span[0] == len(block) and block.endswith(b"\n"):
                    break  # behind the last line
                number += block.count(b"\n", counted, span[0])
                counted = span[0]
                start = block.rfind(b"\n", 0, span[0]) + 1
                end = block.find(b"\n", span[0])
                end = len(block) if end < 0 else end
                if number != newest:  # else the piece of a long line before this one has matched
                    yield number, _excerpt(block, start, end, span)
                newest = number
                self._check()
                at = end + 1
                if at >= len(block):
                    break
            number += block.count(b"\n", counted)

    def _hit(self, path: str, line: str) -> None:
        self.found.add(path, line)
        if self.found.hits == MAX_HITS:
            raise _Enough(f"after {MAX_HITS} hits")

    def _check(self) -> None:
        if time.monotonic() > self.deadline:
            raise _Enough("after its time was over")
        if self.found.files >= MAX_FILES or self.found.bytes >= MAX_BYTES:
            raise _Enough(f"after {self.found.files:,} files with {self.found.bytes >> 20:,} MB")


def _blocks(content: bytes) -> Generator[bytes]:
    """Yield pieces of whole lines. Those of a line that is longer overlap."""
    start = 0
    while start < len(content):
        end, of_lines = start + BLOCK_BYTES, True
        if end < len(content):
            lines_end = content.rfind(b"\n", start, end) + 1
            end, of_lines = lines_end or end, lines_end > 0
        yield content[start:end]
        start = end if of_lines else end - OVERLAP_BYTES


def _excerpt(block: bytes, start: int, end: int, span: tuple[int, int]) -> str:
    first = max(start, span[0] - SHOWN_BYTES // 3)
    last = min(end, first + SHOWN_BYTES)
    text = block[first:last].decode("utf-8", "ignore")
    return one_line(f"{'…' * (first > start)}{text}{'…' * (last < end)}")
