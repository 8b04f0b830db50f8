"""The six commands of the provider's memory tool (`memory_20250818`) over the tiers. `pager.memory_tool.paths` says what
lies where; answers and errors are worded as the SDK's own local tool words them, except where the tiers say otherwise:

- The three directories of the tiers, and the core blocks, are always there: an empty block is an empty file that can be
  created again, deleting one empties it, and no further block can be made. Its limit and read-only hold.
- Other directories are there as long as something is in them.
- A file of the archive is a fact: it cannot be blank, and has a name without blanks at its ends or control characters.
  One without a name (f12) is renamed before it is edited.
- /memories/recall is read-only.
- Half a character (a lone surrogate), also in a path, is read as U+FFFD.
- What is too long for a part of the prompt is shown in pieces; a range of lines works on a directory, too.

    >>> with Memory.open(directory, embedder=None) as memory:
    ...     MemoryFiles(memory).run({"command": "create", "path": "/memories/archive/seat", "file_text": "aisle"})
    ...     memory.search_archive("aisle")[0].page_id
    'File created successfully at: /memories/archive/seat'
    'f1'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pager import tokens
from pager.blocks import clean
from pager.errors import RejectedError
from pager.memory import Memory
from pager.memory_tool import paths as memory_paths
from pager.memory_tool import text as file_texts
from pager.memory_tool.paths import ARCHIVE, AREAS, CORE, RECALL, ROOT, Place, above, is_name, path_of, place_of
from pager.memory_tool.shelf import Shelf
from pager.memory_tool.text import no_such
from pager.reader import MemoryReader
from pager.types import Fact

LISTED = f"Here're the files and directories up to {file_texts.LEVELS} levels deep in {{path}}, excluding hidden items:"
LISTED_FLAT = "Here're the files and directories in {path}, excluding hidden items. View one to see what is in it:"
READ_FACT = "read it in pieces as /memories/recall/{page}"
READ_BLOCK = "its beginning is shown"
DEFINITION = {"type": "memory_20250818", "name": "memory"}  # what a request's tools hold


class MemoryFiles:
    """The tiers of one memory as files; of a reader they can only be viewed."""

    def __init__(self, memory: Memory | MemoryReader, *, actor: str = "agent", limit_tokens: int | None = None) -> None:
        self._memory = memory
        self._shelf = Shelf(memory, actor)
        self._actor = actor
        self._limit_tokens = limit_tokens
        self._commands: dict[str, Callable[..., str]] = {
            "view": self._view, "create": self._create, "str_replace": self._str_replace, "insert": self._insert,
            "delete": self._delete, "rename": self._rename,
        }  # fmt: skip

    def run(self, command: Mapping[str, Any]) -> str:
        """Carry out a command as the model gave it, as one transaction; what it refuses is `RejectedError`."""
        name = command.get("command")
        carry_out = self._commands.get(name) if isinstance(name, str) else None
        if carry_out is None:
            raise RejectedError(f"Unknown command: {name!r:.100}. There are: {', '.join(self._commands)}.")
        given = clean(_checked(str(name), command))
        if name == "view" and not isinstance(self._memory, Memory):
            with self._memory.at_one_moment():
                return carry_out(**given)
        with self._writable.transaction():
            return carry_out(**given)

    @property
    def _writable(self) -> Memory:
        if not isinstance(self._memory, Memory):
            raise RejectedError("this memory is only read here: nothing in it can be changed.")
        return self._memory

    @property
    def _limit(self) -> int:
        if self._limit_tokens is not None:
            return self._limit_tokens
        return self._memory.limits.max_part_tokens // 2 if isinstance(self._memory, Memory) else 4000

    # reading

    def _view(self, path: str, view_range: Any = None) -> str:
        place = place_of(path)
        found = self._shelf.text(place)
        if found is None:
            return self._list(path, place, view_range)
        lines = found.text.split("\n")
        shown, first = file_texts.within(lines, view_range)
        told = READ_FACT.format(page=found.pages[0][1]) if place.area == ARCHIVE else READ_BLOCK
        body, last = file_texts.fitting(shown, first, self._limit, len(lines), told)
        if body:
            self._shelf.note_read(found.pages_in(first, last))
        return f"Here's the content of {path} with line numbers:\n" + "\n".join(body)

    def _list(self, path: str, place: Place, view_range: Any) -> str:
        if not self._shelf.is_directory(place):
            raise no_such(path)
        folders = AREAS if not place.area else ()
        files = self._shelf.files(place)
        lines = file_texts.listing(path, files, folders)
        if not view_range and len(self._fitting(lines)) < len(lines):
            flat = file_texts.listing(path, files, folders, levels=1)
            if len(flat) < len(lines):
                return "\n".join((LISTED_FLAT.format(path=path), *self._fitting(flat)))
        shown, first = file_texts.within(lines, view_range)
        fit = self._fitting(shown)
        if len(fit) < len(shown):
            end = first + len(fit) - 1
            fit.append(
                f"(Entries {first} to {end} of {len(lines)} are shown; read on with view_range [{end + 1}, -1].)"
            )
        return "\n".join((LISTED.format(path=path), *fit))

    def _fitting(self, lines: Sequence[str]) -> list[str]:
        left, fit = self._limit - file_texts.WORDS_AROUND_TOKENS, list[str]()
        for line in lines:
            left -= tokens.total(line) + 1
            if left < 0 and fit:
                break
            fit.append(line)
        return fit

    # changing

    def _create(self, path: str, file_text: str) -> str:
        place = place_of(path)
        emptied = place.area == CORE and self._shelf.is_empty_block(place)
        if not emptied and self._shelf.exists(place):
            raise RejectedError(f"File {path} already exists")
        self._put(place, file_text, path)
        return f"File created successfully at: {path}"

    def _put(self, place: Place, text: str, path: str, *, known: Fact | None = None, tags: Sequence[str] = ()) -> None:
        """A text at a place where nothing is, or in the stead of the fact that is known there."""
        self._refuse_recall(place, path)
        if place.area == CORE:
            self._writable.core_write(self._shelf.block_named(place), text, actor=self._actor)
            return
        if known is None:
            self._check_new(place, path)
        if not text.strip():
            raise RejectedError(
                f"{path} would be blank, and a file of the archive needs a text. To remove it use delete."
            )
        tags = known.tags if known else tags
        self._writable.archive(text, key=place.name, tags=tags, actor=self._actor)

    def _check_new(self, place: Place, path: str) -> None:
        if not is_name(place.name):
            raise RejectedError(
                f"{path} cannot be a new file: names have at most {memory_paths.LONGEST_NAME_BYTES} bytes between "
                "slashes, no blanks at their ends and no control characters, and f12 is the name of a fact that has "
                "none. Choose another one."
            )
        for folder in above(place):
            if self._shelf.text(folder) is not None:
                raise RejectedError(f"{path} cannot be a new file: {path_of(folder)} is a file, not a directory.")

    def _refuse_recall(self, place: Place, path: str) -> None:
        if place.area == RECALL:
            raise RejectedError(
                f"{path} is read-only: what was said stays as it was. Files can be made in {ROOT}/{ARCHIVE}."
            )

    def _existing(self, path: str) -> tuple[Place, str, Fact | None]:
        """A file to edit: its place, its text, and the fact that it is."""
        place = place_of(path)
        found = self._shelf.text(place)
        if found is None:
            raise RejectedError(f"The path {path} is not a file.") if self._shelf.is_directory(place) else no_such(path)
        self._refuse_recall(place, path)
        if found.fact is not None and found.fact.key != place.name:
            raise RejectedError(f"{path} has no name yet, only its id. Rename it, then edit it under its new name.")
        return place, found.text, found.fact

    def _str_replace(self, path: str, old_str: str, new_str: str) -> str:
        place, content, fact = self._existing(path)
        changed, around = file_texts.replaced(content, old_str, new_str, path)
        self._put(place, changed, path, known=fact)
        told = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return f"{told}\n{around}"

    def _insert(self, path: str, insert_line: int, insert_text: str) -> str:
        place, content, fact = self._existing(path)
        self._put(place, file_texts.inserted(content, insert_line, insert_text), path, known=fact)
        return f"The file {path} has been edited."

    def _delete(self, path: str) -> str:
        place = place_of(path)
        self._refuse_directory_of_tier(place, "delete")
        found = self._shelf.text(place)
        self._refuse_recall(place, path)
        if place.area == CORE and found is not None:
            self._writable.core_write(self._shelf.block_named(place), "", actor=self._actor)
            return f"Successfully deleted {path}"
        facts = [found.fact] if found and found.fact else self._shelf.facts_below(place)
        if not facts:
            raise RejectedError(f"The path {path} does not exist")
        for fact in facts:
            self._writable.forget(fact.id, f"deleted as {path}", actor=self._actor)
        return f"Successfully deleted {path}"

    def _refuse_directory_of_tier(self, place: Place, what: str) -> None:
        if not place.name:
            raise RejectedError(f"Cannot {what} the {path_of(place)} directory itself")

    # moving

    def _rename(self, old_path: str, new_path: str) -> str:
        old, new = place_of(old_path), place_of(new_path)
        self._refuse_directory_of_tier(old, "rename")
        if self._shelf.exists(new) and not (new.area == CORE and self._shelf.is_empty_block(new)):
            raise RejectedError(f"The destination {new_path} already exists")
        self._refuse_recall(new, new_path)
        found = self._shelf.text(old)
        if found is None and not self._shelf.is_directory(old):
            raise RejectedError(f"The path {old_path} does not exist")
        self._refuse_recall(old, old_path)
        if found is None:
            self._rename_directory(old, new, new_path)
        elif found.fact is None:
            self._move_block(old, new, found.text, new_path)
        else:
            self._move_fact(found.fact, new, new_path)
        return f"Successfully renamed {old_path} to {new_path}"

    def _move_fact(self, fact: Fact, new: Place, new_path: str) -> None:
        if new.area == CORE:
            block = self._shelf.block_named(new)
            self._writable.core_write(block, fact.text, actor=self._actor)
            self._writable.forget(fact.id, f"moved to the core block {block}", actor=self._actor)
            return
        self._put(new, fact.text, new_path, tags=fact.tags)
        self._writable.forget(fact.id, f"renamed to {new_path}", actor=self._actor)

    def _move_block(self, old: Place, new: Place, text: str, new_path: str) -> None:
        block = self._shelf.block_named(old)
        if not text.strip():
            raise RejectedError(f"The core block {block} is empty: there is nothing to move to {new_path}.")
        if new.area == CORE:
            target = self._shelf.block_named(new)
            self._writable.core_write(block, "", actor=self._actor)
            self._writable.core_write(target, text, actor=self._actor)
            return
        self._check_new(new, new_path)
        self._writable.move_to_archive(block, text, key=new.name, actor=self._actor)

    def _rename_directory(self, old: Place, new: Place, new_path: str) -> None:
        if new.area != ARCHIVE:
            raise RejectedError(f"a directory cannot become {new_path}: only {ROOT}/{ARCHIVE} holds directories.")
        if new.name.startswith(f"{old.name}/"):
            raise RejectedError(f"{path_of(old)} cannot be renamed into itself.")
        for fact in self._shelf.facts_below(old):
            assert fact.key is not None
            inner = Place(ARCHIVE, new.name + fact.key[len(old.name) :])
            self._move_fact(fact, inner, path_of(inner))


_ARGUMENTS: dict[str, dict[str, type | None]] = {
    "view": {"path": str, "view_range": None},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


def _checked(name: str, command: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a command; one that is missing or of another kind is told."""
    given: dict[str, Any] = {}
    for argument, kind in _ARGUMENTS[name].items():
        value = command.get(argument)
        if kind is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            what = "missing" if value is None else f"{value!r:.100}"
            raise RejectedError(
                f"{name}: `{argument}` is {what}; it has to be a {'number' if kind is int else 'text'}."
            )
        given[argument] = value
    return given
