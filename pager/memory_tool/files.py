"""The six commands of the provider's memory tool over the tiers. `pager.memory_tool.tree` says what lies where.

Answers and errors are worded as the SDK's own local tool words them, except where the tiers differ from a disk: the
directories of the tiers and the core blocks always exist, and no other block can be made; any other directory exists as
long as a file is in it; a file of the archive is a fact, and one without a key (f12) is renamed before it is edited;
/memories/recall is read-only. What is too long for one part of the prompt is shown in pieces.

    >>> with Memory.open(directory, embedder=None) as memory:
    ...     MemoryFiles(memory).run({"command": "create", "path": "/memories/archive/seat", "file_text": "aisle"})
    ...     memory.search_archive("aisle")[0].page_id
    'File created successfully at: /memories/archive/seat'
    'f1'
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pager.blocks import clean
from pager.errors import RejectedError, brief
from pager.memory import Memory
from pager.memory_tool import text as texts
from pager.memory_tool.tree import ARCHIVE, AREAS, CORE, RECALL, ROOT, MemoryTree, Place, path_of, place_of
from pager.reader import MemoryReader
from pager.types import Fact

LISTED = f"Here're the files and directories up to {texts.LEVELS} levels deep in {{path}}, excluding hidden items:"
LISTED_FLAT = "Here're the files and directories in {path}, excluding hidden items. View one to see what is in it:"
READ_FACT = "read it in pieces as /memories/recall/{page}"
READ_BLOCK = "its beginning is shown"
ACTOR = "agent"
DEFINITION = {"type": "memory_20250818", "name": "memory"}  # for the tools of a request
COMMANDS: dict[str, dict[str, type | None]] = {  # command -> the types of its arguments
    "view": {"path": str, "view_range": None},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


class MemoryFiles:
    """The tiers of one memory as files. Of a `MemoryReader` they can only be viewed."""

    def __init__(self, memory: Memory | MemoryReader) -> None:
        self._memory = memory
        self._writer = memory if isinstance(memory, Memory) else None
        self._tree = MemoryTree(memory)

    def run(self, command: Mapping[str, Any]) -> str:
        """Execute a command as the model gave it, in one transaction. Raises RejectedError if it is refused."""
        name = command.get("command")
        if not isinstance(name, str) or name not in COMMANDS:
            raise RejectedError(f"Unknown command: {brief(name)}. There are: {', '.join(COMMANDS)}.")
        arguments = clean(_checked(name, command))
        with self._writer.transaction() if self._writer else self._memory.read_snapshot():
            if name == "view":
                return self._view(**arguments)
            if self._writer is None:
                raise RejectedError("this memory is read-only here: nothing in it can be changed.")
            return getattr(_Edit(self._writer, self._tree), name)(**arguments)

    @property
    def _limit(self) -> int:
        return self._memory.limits.max_part_tokens // 2

    def _view(self, path: str, view_range: Any) -> str:
        place = place_of(path)
        file = self._tree.file(place)
        if file is None:
            return self._list(path, place, view_range)
        lines = file.text.split("\n")
        shown, first = texts.lines_in_range(lines, view_range)
        read_whole = READ_FACT.format(page=file.pages[0][1]) if place.area == ARCHIVE else READ_BLOCK
        body, last = texts.body(shown, first, self._limit, len(lines), read_whole)
        if body and self._writer:
            for page in file.pages_in(first, last):
                self._writer.page_in(page, actor=ACTOR)  # so that the ledger shows what was read
        return f"Here's the content of {path} with line numbers:\n" + "\n".join(body)

    def _list(self, path: str, place: Place, view_range: Any) -> str:
        if not self._tree.is_directory(place):
            raise texts.not_found(path)
        folders = AREAS if not place.area else ()
        files = self._tree.files(place)
        lines = texts.listing(path, files, folders)
        if self._writer:
            self._writer.show_sources(self._tree.sources_below(place), actor=ACTOR)  # of the names
        if not view_range and len(self._fitting(lines)) < len(lines):
            flat = texts.listing(path, files, folders, levels=1)
            if len(flat) < len(lines):
                return "\n".join((LISTED_FLAT.format(path=path), *self._fitting(flat)))
        shown, first = texts.lines_in_range(lines, view_range)
        fit = self._fitting(shown)
        if len(fit) < len(shown):
            end = first + len(fit) - 1
            which = f"{first} to {end} of {len(lines)}"
            fit.append(f"(Entries {which} are shown; read on with view_range [{end + 1}, -1].)")
        return "\n".join((LISTED.format(path=path), *fit))

    def _fitting(self, lines: Sequence[str]) -> list[str]:
        return texts.fitting(lines, self._limit) or list(lines[:1])


class _Edit:
    """The commands that change something. Each method is one, with the command's arguments."""

    def __init__(self, memory: Memory, tree: MemoryTree) -> None:
        self._memory = memory
        self._tree = tree

    def create(self, path: str, file_text: str) -> str:
        place = place_of(path)
        if self._is_taken(place):
            raise RejectedError(f"File {path} already exists")
        self._write(place, file_text, path)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        place, content, fact = self._existing(path)
        changed, around = texts.replaced(content, old_str, new_str, path)
        self._write(place, changed, path, old=fact)
        head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return f"{head}\n{around}"

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        place, content, fact = self._existing(path)
        self._write(place, texts.inserted(content, insert_line, insert_text), path, old=fact)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        place = place_of(path)
        self._refuse_directory_of_tier(place, "delete")
        file = self._tree.file(place)
        self._refuse_recall(place, path)
        if place.area == CORE and file is not None:
            self._memory.core_write(self._tree.block_name(place), "", actor=ACTOR)
            return f"Successfully deleted {path}"
        facts = [file.fact] if file and file.fact else self._tree.facts_below(place)
        if not facts:
            raise RejectedError(f"The path {path} does not exist")
        for fact in facts:
            self._memory.forget(fact.id, f"deleted as {path}", actor=ACTOR)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        old, new = place_of(old_path), place_of(new_path)
        self._refuse_directory_of_tier(old, "rename")
        if self._is_taken(new):
            raise RejectedError(f"The destination {new_path} already exists")
        self._refuse_recall(new, new_path)
        file = self._tree.file(old)
        if file is None and not self._tree.is_directory(old):
            raise RejectedError(f"The path {old_path} does not exist")
        self._refuse_recall(old, old_path)
        if file is None:
            self._rename_directory(old, new, new_path)
        elif file.fact is None:
            self._move_block(old, new, file.text, new_path)
        else:
            self._move_fact(file.fact, new, new_path)
        return f"Successfully renamed {old_path} to {new_path}"

    def _is_taken(self, place: Place) -> bool:
        file = self._tree.file(place)
        return bool(file.text) or place.area != CORE if file else self._tree.is_directory(place)

    def _existing(self, path: str) -> tuple[Place, str, Fact | None]:
        place = place_of(path)
        file = self._tree.file(place)
        if file is None and self._tree.is_directory(place):
            raise RejectedError(f"The path {path} is not a file.")
        if file is None:
            raise texts.not_found(path)
        self._refuse_recall(place, path)
        if file.fact is not None and file.fact.key != place.name:
            raise RejectedError(f"{path} has no name yet, only its id. Rename it, then edit it under its new name.")
        return place, file.text, file.fact

    def _write(self, place: Place, text: str, path: str, *, old: Fact | None = None, moved: Fact | None = None) -> None:
        """Write a file. `old` is the fact that is edited, `moved` one that gets another name."""
        self._refuse_recall(place, path)
        if place.area == CORE:
            self._memory.core_write(self._tree.block_name(place), text, actor=ACTOR)
            return
        if old is None:
            self._tree.check_new(place, path)
        if not text.strip():
            raise RejectedError(f"{path} would be blank, and a file of the archive needs a text; delete removes it.")
        before = old or moved
        tags, via = (before.tags, before.via) if before else ((), ())
        self._memory.archive(text, key=place.name, tags=tags, actor=ACTOR, via=via)

    def _refuse_recall(self, place: Place, path: str) -> None:
        if place.area == RECALL:
            other = f"Files can be made in {ROOT}/{ARCHIVE}."
            raise RejectedError(f"{path} is read-only: what was said stays as it was. {other}")

    def _refuse_directory_of_tier(self, place: Place, what: str) -> None:
        if not place.name:
            raise RejectedError(f"Cannot {what} the {path_of(place)} directory itself")

    def _move_fact(self, fact: Fact, new: Place, new_path: str) -> None:
        if new.area == CORE:
            block = self._tree.block_name(new)
            self._memory.core_write(block, fact.text, actor=ACTOR, via=fact.via)
            self._memory.forget(fact.id, f"moved to the core block {block}", actor=ACTOR)
            return
        self._write(new, fact.text, new_path, moved=fact)
        self._memory.forget(fact.id, f"renamed to {new_path}", actor=ACTOR)

    def _move_block(self, old: Place, new: Place, text: str, new_path: str) -> None:
        block = self._tree.block_name(old)
        if not text.strip():
            raise RejectedError(f"The core block {block} is empty: there is nothing to move to {new_path}.")
        if new.area == CORE:
            target, via = self._tree.block_name(new), self._tree.block_sources(old)
            self._memory.core_write(block, "", actor=ACTOR)
            self._memory.core_write(target, text, actor=ACTOR, via=via)
            return
        self._tree.check_new(new, new_path)
        self._memory.move_to_archive(block, text, key=new.name, actor=ACTOR)

    def _rename_directory(self, old: Place, new: Place, new_path: str) -> None:
        if new.area != ARCHIVE:
            raise RejectedError(f"a directory cannot become {new_path}: only {ROOT}/{ARCHIVE} holds directories.")
        if new.name.startswith(f"{old.name}/"):
            raise RejectedError(f"{path_of(old)} cannot be renamed into itself.")
        for fact in self._tree.facts_below(old):
            assert fact.key is not None
            inner = Place(ARCHIVE, new.name + fact.key[len(old.name) :])
            self._move_fact(fact, inner, path_of(inner))


def _checked(name: str, command: Mapping[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for argument, kind in COMMANDS[name].items():
        value = command.get(argument)
        if kind is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            problem = "missing" if value is None else f"{brief(value)}"
            wanted = "number" if kind is int else "text"
            raise RejectedError(f"{name}: `{argument}` is {problem}; it has to be a {wanted}.")
        arguments[argument] = value
    return arguments
