"""`builtin: files`: list, read and search what is below a directory, and with `write` write and edit it.

Results are untrusted unless the YAML says otherwise, and name the file that they are from. Listing, reading, searching
and writing may be repeated after a crash; an edit may not.
"""

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.builtin import documents
from agents.builtin.confined import MAX_ENTRIES, Entry, Parts, Tree, entries, split
from agents.builtin.protected import Protected
from agents.builtin.search import Found, Pattern, Search
from agents.builtin.texts import DOCUMENTS, MAX_TEXT_BYTES, PAGES, decode, lines_of
from agents.config.tool_sections import FilesTool
from agents.tools.functions import Sourced, Tool, ToolConfigError
from pager import RejectedError, count_tokens

MAX_LISTED = 2_000
MAX_LINE_CHARS = 1_000_000  # a longer line is cut; a shorter one that is too long for a page is spilled by the memory
CHARS_PER_TOKEN = 16  # more than any tokenizer makes of text, so that a longer line need not be counted
READING = ("list_files", "read_file", "search_files")


def file_tools(section: FilesTool, folder: Path, protected: Protected, page_tokens: int) -> list[Tool]:
    """Return the tools over the section's root, relative to `folder`. A page that is read has at most `page_tokens`.
    Raise ToolConfigError if there is no such directory."""
    root = folder / Path(section.root).expanduser()
    if not root.is_dir():
        raise ToolConfigError(f"root: there is no directory {root}. Create it, or correct the path.")
    files = Files(Tree(root, protected), page_tokens, section)
    options: dict[str, Any] = {"approve": section.approve, "timeout_seconds": section.timeout_seconds}
    made = [Tool.of(getattr(files, name), idempotent=True, trust=section.trust, **options) for name in READING]
    if section.trust == "trusted":
        made = [replace(tool, names_sources=False) for tool in made]
    if section.write:
        made += [Tool.of(files.write_file, idempotent=True, **options), Tool.of(files.edit_file, **options)]
    return made


class Files:
    """The tools over one tree."""

    def __init__(self, tree: Tree, page_tokens: int, section: FilesTool) -> None:
        self._tree = tree
        self._page_tokens = page_tokens
        self._section = section

    def list_files(self, path: str = ".") -> Sourced | str:
        """List the files and directories in a directory, with sizes and days of change.

        Args:
            path: Relative to the root. Leave it out for the root itself.
        """
        parts = split(path)
        with self._tree.directory(parts) as descriptor:
            found, is_all = entries(descriptor)
        lines = [_line(entry) for entry in sorted(found, key=lambda each: each.kind != "directory")[:MAX_LISTED]]
        count = f"{len(found):,} entries" if is_all else f"more than {MAX_ENTRIES:,} entries"
        if len(lines) < len(found):
            lines.append(f"({len(found) - len(lines):,} more are not listed; search_files finds files by name, too.)")
        return self._from(parts, "\n".join([f"{'/'.join(parts) or 'the root'} has {count}:", *lines]))

    def read_file(self, path: str, line: int = 1) -> Sourced | str:
        """Read a text file from a line on, as much as a page holds. PDF, Office and HTML files are read as text.

        Args:
            path: Relative to the root.
            line: Where to begin, counted from 1. The result says where to read on.
        """
        text, note = self._text(path)
        lines = lines_of(text)
        if not lines:
            return self._from(split(path), f"{path} is empty.")
        if not 1 <= line <= len(lines):
            raise RejectedError(f"line is {line}; {path} has the lines 1 to {len(lines):,}.")
        page = self._page(lines, line - 1)
        end = line - 1 + len(page)
        on = f"; read on with line {end + 1}" if end < len(lines) else ""
        if len(page[0]) > MAX_LINE_CHARS:
            on += f"; line {line} has {len(page[0]):,} characters and is cut after {MAX_LINE_CHARS:,}"
            page = [page[0][:MAX_LINE_CHARS]]
        head = f"{path}, lines {line} to {end} of {len(lines)}{f' ({note})' if note else ''}{on}:"
        return self._from(split(path), "\n".join([head, *page]))

    def search_files(self, pattern: str, path: str = ".") -> Sourced | str:
        """Find lines, and names of files, by a regular expression (RE2), in all files below a directory or in one file.

        Args:
            pattern: Such as (?i)ferry|boat. It is matched in each line.
            path: Relative to the root. Leave it out for all files. What .gitignore names and hidden files are left out.
        """
        deadline = time.monotonic() + self._section.timeout_seconds * 0.8
        found = Search(self._tree, Pattern(pattern), deadline).run(split(path))
        text = _as_text(found)
        if self._section.trust == "trusted":
            return text
        return Sourced(tuple(f"file:{name}" for name in found.lines) or (f"file:{path}",), text)

    def write_file(self, path: str, text: str) -> str:
        """Write a file as a whole, and create it and its directories if needed. UTF-8.

        Args:
            path: Relative to the root.
        """
        content = text.encode("utf-8", "replace")
        before = self._tree.write(split(path), content)
        replaced = f"; it replaces {before:,} bytes" if before is not None else ""
        return f"Written: {path} has {len(lines_of(text)):,} lines, {len(content):,} bytes{replaced}."

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        """Replace an exact and unique piece of a file. An empty new_text deletes it.

        Args:
            path: Relative to the root.
        """
        parts = split(path)
        raw = self._tree.read(parts, MAX_TEXT_BYTES)
        text, encoding = decode(raw, path)
        if encoding:
            raise RejectedError(f"{path} is not edited, its encoding is {encoding}. Write it anew with write_file.")
        ends_crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
        if ends_crlf:
            text, old_text, new_text = (each.replace("\r\n", "\n") for each in (text, old_text, new_text))
        count = text.count(old_text) if old_text else 0
        if count != 1:
            why = f"old_text stands {count} times in {path}" if count else f"old_text does not stand in {path}"
            way = "give more of what is around it" if count else "read the file and copy it exactly, with its spaces"
            raise RejectedError(f"{why}; nothing was changed. It has to be exact and unique: {way}.")
        line = text[: text.index(old_text)].count("\n") + 1
        text = text.replace(old_text, new_text)
        self._tree.write(parts, (text.replace("\n", "\r\n") if ends_crlf else text).encode())
        done = "Replaced" if new_text else "Deleted"
        return f"{done} in line {line} of {path}, which has {len(lines_of(text)):,} lines now."

    def _text(self, path: str) -> tuple[str, str]:
        """Return the text of a file, and what has to be said about it."""
        parts, ending = split(path), Path(path).suffix.casefold()
        raw = self._tree.read(parts, MAX_TEXT_BYTES)
        # Who edits a web page needs it as it is.
        if ending in DOCUMENTS or (ending in PAGES and not self._section.write and documents.can_read()):
            return documents.text_of(raw, ending, path), "as text"
        return decode(raw, path)

    def _page(self, lines: list[str], start: int) -> list[str]:
        """Return as many lines as a page holds, at least one."""
        left = self._page_tokens
        for number in range(start, len(lines)):
            line = lines[number]
            left -= 1 + (count_tokens(line) if len(line) < CHARS_PER_TOKEN * self._page_tokens else self._page_tokens)
            if left < 0:
                return lines[start : max(number, start + 1)]
        return lines[start:]

    def _from(self, parts: Parts, text: str) -> Sourced | str:
        return text if self._section.trust == "trusted" else Sourced(f"file:{'/'.join(parts) or '.'}", text)


def _line(entry: Entry) -> str:
    match entry.kind:
        case "directory":
            return f"{entry.shown}/"
        case "file":
            return f"{entry.shown} ({entry.size:,} bytes, {datetime.fromtimestamp(entry.modified, UTC):%Y-%m-%d})"
        case "link":
            return f"{entry.shown} (a link, which is not followed)"
        case _:
            return f"{entry.shown} (a pipe, a socket or a device)"


def _as_text(found: Found) -> str:
    left_out = ", ".join(f"{count:,} {what}" for what, count in sorted(found.left_out.items()) if count)
    where = f"{found.files:,} files searched" + (f"; left out: {left_out}" if left_out else "")
    if not found.hits:
        stopped = f" It stopped {found.stopped}; name a narrower path." if found.stopped else ""
        return f"Nothing matches ({where}).{stopped}"
    lines = [f"{path}:{line}" for path, several in found.lines.items() for line in several]
    if found.stopped:
        lines.append(f"The search stopped {found.stopped}, in {[*found.lines][-1]}. Name a narrower path or pattern.")
    return "\n".join([f"{found.hits:,} hits in {len(found.lines):,} files ({where}):", *lines])
