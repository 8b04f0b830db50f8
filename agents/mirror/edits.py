"""The differences between a mirror and a memory: what a person edited, or errors that name file and line.

A file may be older than the memory. What the memory itself has changed since is no edit: a fact's text, key, tags and
beginning never change, the versions of a block and the ends that a fact was given are all stored. What was edited both
here and there is a conflict. What was taken back by an earlier import is no edit either.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from agents.mirror import folder
from agents.mirror.forms import (
    VERSION,
    MalformedError,
    Parsed,
    instant,
    parse,
    plain,
    plain_name,
    refuse_conflict,
    same_text,
)
from pager import Block, Fact, Memory, MemoryReader
from pager.errors import RejectedError, brief

MOST_ERRORS = 10
OUTDATED = "Export again to see it, and edit that"
AnyMemory = Memory | MemoryReader


@dataclass(frozen=True, slots=True)
class BlockEdit:
    """Another text for a core block."""

    where: str
    block: Block
    text: str


@dataclass(frozen=True, slots=True)
class FactEdit:
    """A fact to be stored, in place of another one or as a new one (`old` is None); without a text the old one ends."""

    where: str
    old: Fact | None
    text: str | None
    key: str | None = None
    tags: tuple[str, ...] = ()
    valid_from: str | None = None
    valid_until: str | None = None


@dataclass(slots=True)
class Edits:
    """All that a person did to a mirror, or what is wrong with it."""

    blocks: list[BlockEdit] = field(default_factory=list[BlockEdit])
    facts: list[FactEdit] = field(default_factory=list[FactEdit])
    errors: list[str] = field(default_factory=list[str])

    def __len__(self) -> int:
        return len(self.blocks) + len(self.facts)

    def refuse_twice(self) -> None:
        """Note an error for a key that two edits give to two facts: only one of them could stay."""
        places: dict[str, str] = {}
        for edit in self.facts:
            if edit.key is not None and edit.text is not None:
                first = places.setdefault(edit.key, edit.where)
                if first != edit.where:
                    self.errors.append(
                        f"{edit.where}: {first} has the key {brief(edit.key, 60)}, too. A key has one fact."
                    )

    def refuse_errors(self, what: str) -> None:
        """Raise RejectedError if anything is wrong."""
        if self.errors:
            more = [f"and {len(self.errors) - MOST_ERRORS} more"] if len(self.errors) > MOST_ERRORS else []
            raise RejectedError("\n".join((*self.errors[:MOST_ERRORS], *more, what)))


def name_in(base: Path) -> str:
    """Return of which agent a folder is the mirror."""
    return str(_about(base, folder.read_file(base / folder.ABOUT))["agent"])


def _about(base: Path, text: str) -> Mapping[str, Any]:
    try:
        found = parse(text).fields
    except MalformedError as error:
        raise RejectedError(f"{base / folder.ABOUT}:{error.line}: {error}.") from None
    if found.get("mirror") != VERSION or not isinstance(found.get("agent"), str) or type(found.get("facts")) is not int:
        raise RejectedError(f"{base / folder.ABOUT}:1: this is no mirror that this selfpager reads.")
    return found


def find(memory: AnyMemory, base: Path, days: Mapping[str, str]) -> Edits:
    """Return the edits in a folder. `days` are the files of what was said, as they should read."""
    texts = folder.read_all(base)
    made, facts = Edits(), facts_of(memory)
    finder = _Finder(memory, base, made, facts)
    seen: set[str] = set()
    for name, text in texts.items():
        room = name.partition("/")[0]
        try:
            if room == folder.CORE:
                finder.block(name, parse(text))
            elif room == folder.FACTS:
                seen.add(finder.fact(name, parse(text)))
            elif room == folder.RECALL:
                finder.day(name, text, days.get(name))
        except MalformedError as error:
            made.errors.append(f"{base / name}:{error.line}: {error}.")
    made.refuse_twice()
    last, newest = int(_about(base, texts[folder.ABOUT])["facts"]), max((int(page[1:]) for page in facts), default=0)
    if not 0 <= last <= newest:
        there = f"it is of a memory with {last} facts, and this one has {newest}"
        made.errors.append(f"{base / folder.ABOUT}:1: {there}. Take the file back as it was, or export again.")
    current = [fact for fact in facts.values() if _is_current(memory, fact) and int(fact.id[1:]) <= last]
    missing = [fact for fact in current if fact.id not in seen]
    if missing and len(missing) == len(current) > 1:
        none = f"none of the {len(current)} current facts is there"
        made.errors.append(f"{base / folder.FACTS}: {none}. A mirror is imported whole; export it again.")
    for fact in missing:
        made.facts.append(FactEdit(str(base / folder.fact_path(int(fact.id[1:]))), fact, None))
    return made


def facts_of(memory: AnyMemory) -> dict[str, Fact]:
    """Return all facts by their ids, in their order."""
    found: dict[str, Fact] = {}
    offset, rows = 0, memory.inspect.facts(limit=500)
    while rows.rows:
        found |= {row.fact.id: row.fact for row in rows.rows}
        offset += len(rows.rows)
        rows = memory.inspect.facts(offset=offset, limit=500)
    return dict(sorted(found.items(), key=lambda each: int(each[0][1:])))


def _is_current(memory: AnyMemory, fact: Fact) -> bool:
    """Return True for a fact that can be edited: it is true now, or begins later."""
    if fact.purged or fact.superseded_by is not None or fact.forgotten is not None:
        return False
    return fact.valid_until is None or fact.valid_until > memory.inspect.present()


class _Finder:
    def __init__(self, memory: AnyMemory, base: Path, made: Edits, facts: Mapping[str, Fact]) -> None:
        self._memory = memory
        self._base = base
        self._made = made
        self._facts = facts
        self._blocks = {block.name: block for block in memory.core()}
        self._current = {
            (plain(fact.text), fact.key, fact.tags) for fact in facts.values() if _is_current(memory, fact)
        }

    def block(self, name: str, file: Parsed) -> None:
        """Note the edit of a core block."""
        block = self._blocks.get(str(file.fields.get("block")))
        if block is None or name != f"{folder.CORE}/{block.name}.md":
            blocks = ", ".join(self._blocks) or "none"
            raise MalformedError(1, f"there is no such core block; the agent's YAML names them, and there are {blocks}")
        if same_text(file.body, block.value):
            return
        versions = self._memory.history.core_versions(block.name)
        base = next((each for each in versions if each.ordinal == file.fields.get("version")), None)
        if base is None:
            raise MalformedError(file.lines.get("version", 1), f"{block.name} never had this version")
        if same_text(file.body, base.block.value):
            return  # older than the memory
        if base.block.version != block.version:
            raise MalformedError(file.body_line, f"the block was edited here, and in the memory since. {OUTDATED}")
        refuse_conflict(file)
        self._made.blocks.append(BlockEdit(f"{self._base / name}:{file.body_line}", block, file.body.rstrip("\n")))

    def fact(self, name: str, file: Parsed) -> str:
        """Note the edit of a fact. Return its id; of a new one an empty text."""
        own = folder.OWN_FILE.fullmatch(Path(name).name)
        if not own:
            self._new_fact(name, file)
            return ""
        fact = self._facts.get(own[1])
        if fact is None:
            raise MalformedError(1, f"there is no fact {own[1]} in this memory; give a new fact another file name")
        place = folder.fact_path(int(fact.id[1:]))
        if name != place or file.fields.get("id") != fact.id:
            raise MalformedError(
                file.lines.get("id", 1), f"the id of this file has to be {fact.id}, and its place {place}"
            )
        for field_name, value in (("stored", instant(fact.at)), ("from", instant(fact.valid_from))):
            if file.fields.get(field_name) != value:
                line = file.lines.get(field_name, 1)
                raise MalformedError(line, f"{field_name} cannot be edited; of {fact.id} it is {value} in this memory")
        if not fact.purged:
            self._edited(fact, name, file)
        return fact.id

    def _edited(self, fact: Fact, name: str, file: Parsed) -> None:
        text, key, tags = _said(file)
        until = _text(file, "until")
        is_same = same_text(text, fact.text) and key == fact.key and tags == fact.tags
        if is_same and (until == instant(fact.valid_until) or until in self._ends(fact)):
            return
        if not _is_current(self._memory, fact):
            if is_same or (plain(text), key, tags) in self._current:
                return  # what ended it, or moved its end, is newer than the file, or this edit was taken back already
            raise MalformedError(file.body_line, f"{fact.id} is a fact of the past and cannot be edited. {OUTDATED}")
        if until is None and fact.expires is not None:
            way = "it can be moved, but not taken away. Delete the file and add a new one instead"
            raise MalformedError(1, f"{fact.id} has an end: {way}")
        if is_same or same_text(text, fact.text):
            text = fact.text
        else:
            refuse_conflict(file)
            text = text.rstrip("\n")
        begins_later = fact.valid_from > self._memory.inspect.present()
        is_stated = fact.valid_from != fact.at and (is_same or begins_later)
        start = instant(fact.valid_from) if is_stated else None
        where = f"{self._base / name}:{file.lines.get('until', 1) if is_same else file.body_line}"
        self._made.facts.append(FactEdit(where, fact, text, key, tags, start, until))

    def _ends(self, fact: Fact) -> set[str | None]:
        """Return the ends that a fact was given so far, and None where it had none."""
        rows = self._memory.ledger(page=fact.id, events=["archive", "restore", "repeat"])
        return {_instant(row.detail.get("until")) for row in rows}

    def _new_fact(self, name: str, file: Parsed) -> None:
        if "id" in file.fields:
            page = brief(file.fields["id"], 30)
            way = (
                f"The file of {page} has its name: give that back, or take id and what is below it out, for a new fact"
            )
            raise MalformedError(file.lines["id"], f"this file was renamed or copied. {way}")
        text, key, tags = _said(file)
        refuse_conflict(file)
        if not text.strip():
            raise MalformedError(file.body_line, "a new fact needs a text below its front matter")
        if other := set(file.fields) - {"key", "tags", "from", "until"}:
            name = min(other)
            raise MalformedError(file.lines[name], f"a new fact has key, tags, from and until, not {name}")
        if (plain(text), key, tags) not in self._current:
            where, validity = f"{self._base / name}:1", (_text(file, "from"), _text(file, "until"))
            self._made.facts.append(FactEdit(where, None, text.rstrip("\n"), key, tags, *validity))

    def day(self, name: str, text: str, expected: str | None) -> None:
        """Compare a day with what was said. Later steps of it may be missing."""
        if expected is not None and expected.startswith(text.rstrip("\n")):
            return
        was = (expected or "").split("\n")
        lines = enumerate(text.split("\n"), start=1)
        line = next((number for number, each in lines if each not in was[number - 1 : number]), 1)
        way = "What was said cannot be edited: export again to restore it"
        raise MalformedError(line, f"this is not what was said. {way}")


def _said(file: Parsed) -> tuple[str, str | None, tuple[str, ...]]:
    tags: Any = file.fields.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in cast("list[Any]", tags)):
        raise MalformedError(file.lines["tags"], 'tags is a list of texts, such as ["travel", "seats"]')
    key = _text(file, "key")
    key = None if key is None else plain_name(key, file.lines["key"])
    return file.body, key, tuple(plain_name(tag, file.lines["tags"]) for tag in cast("list[str]", tags))


def _text(file: Parsed, name: str) -> str | None:
    value = file.fields.get(name)
    if value is not None and not isinstance(value, str):
        raise MalformedError(file.lines[name], f"{name} is a text in double quotes, not {brief(value, 60)}")
    return value


def _instant(text: Any) -> str | None:
    try:
        return instant(datetime.fromisoformat(text)) if isinstance(text, str) else None
    except ValueError:
        return None
