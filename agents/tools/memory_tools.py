"""The tools with which an agent moves its own memory. Their texts are what a model reads: short and exact.

Each is a method with type hints; its docstring is the description. What a tool refuses (a full block, an ambiguous
text) is an error result that names the value, the limit and the way out.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from agents.tools.functions import Json, Output, Tool, definitions_of
from pager import Block, Clock, Hit, Memory, MemoryReader, PageText, RejectedError, SkillSpec, count_tokens, one_line
from pager.clock import format_minute
from pager.errors import brief
from pager.memory_tool.files import DEFINITION, MemoryFiles
from pager.safety.sources import label
from pager.types import kind_of

MAX_HITS = 20
ACTOR = "agent"


MemoryT = TypeVar("MemoryT", bound=Memory | MemoryReader)


class ReadingTools(Generic[MemoryT]):
    """The three tools that change no fact and no block, over one memory. A reader's tools write nothing at all."""

    NAMES: tuple[str, ...] = ("search_archive", "search_recall", "page_in")

    def __init__(
        self, memory: MemoryT, clock: Clock, *, actor: str = ACTOR, source: Callable[[], str] | None = None
    ) -> None:
        self._memory = memory
        self._clock = clock
        self._actor = actor
        self._source = source
        self._options: dict[str, str] = {"actor": actor} if isinstance(memory, Memory) else {}  # for the ledger

    @property
    def _who(self) -> dict[str, Any]:
        """Return who writes, and from where."""
        return {"actor": self._actor, "source": self._source() if self._source else None}

    @classmethod
    def definitions(cls) -> list[Json]:
        """Return the definitions of the tools, with which their memory has to be opened."""
        return definitions_of(cls, cls.NAMES)

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [Tool.of(getattr(self, name), memory=True, idempotent=True) for name in self.NAMES]

    def search_archive(
        self, query: str, tags: list[str] | None = None, as_of: str | None = None, after: str | None = None,
        before: str | None = None, limit: int = 5,
    ) -> str:  # fmt: skip
        """Find facts in the archive by meaning and by words.

        Args:
            as_of: Only for a question about the past: a date. Leave it out for what is true now.
            after: Only if a person names a time: what was stored since that date. `before` likewise.
        """
        hits = self._memory.search_archive(
            query, tags=tags, as_of=as_of, after=after, before=before, limit=_within(limit), **self._options
        )
        if not hits:
            return "Nothing in the archive fits. Try other words, or search_recall."
        return self._bounded([self._line(hit) for hit in hits])

    def search_recall(self, query: str, after: str | None = None, before: str | None = None, limit: int = 10) -> str:
        """Find steps of this conversation by words and meaning, also those that have left the prompt.

        Args:
            after: Only if a person names a time: what was said since that date. `before` likewise.
        """
        hits = self._memory.search_recall(query, after=after, before=before, limit=_within(limit), **self._options)
        if not hits:
            return "Nothing was said that fits. Try other words, or search_archive."
        return self._bounded([self._line(hit) for hit in hits])

    def page_in(self, page_id: str, *, pin: bool = False, offset: int = 0) -> Output:
        """Read a fact, a step, a spilled part or a skill verbatim, by the id that the prompt or a search shows.

        Args:
            pin: Keep it in the prompt across evictions until page_out.
            offset: Where to read on in a long page.
        """
        self._refuse_block(page_id)
        self._refuse_skill_name(page_id)
        if isinstance(self._memory, Memory):
            page = self._memory.page_in(page_id, pin=pin, offset=offset, actor=self._actor)
        elif pin:
            raise RejectedError("this memory is read-only here, so nothing can be pinned. Read the page without pin.")
        else:
            page = self._memory.read_page(page_id, offset)
        if page.where and self._actor == ACTOR:  # only the agent sees what is in its prompt
            return f"{page.where}." + (" It is pinned now." if pin else "")
        text = _read(page)
        return [{"type": "text", "text": text}, *page.media] if page.media else text

    def _refuse_block(self, page_id: str) -> None:
        if any(block.name == page_id for block in self._memory.core()):
            skills = [skill.id for skill in self._memory.inspect.skills() if skill.name == page_id]
            also = f" The skill of that name is {skills[0]}." if skills else ""
            why = f"{page_id} is a core block, which is always in view; use core_replace to change it."
            raise RejectedError(why + also)

    def _refuse_skill_name(self, page_id: str) -> None:
        for skill in self._memory.inspect.skills():
            if skill.name == page_id:
                raise RejectedError(f"{page_id} is the name of a skill. Its page is {skill.id}.")

    def _line(self, hit: Hit) -> str:
        if kind_of(hit.page_id) == "s":
            return one_line(f"{hit.page_id}{label(hit.via)} {hit.at:%Y-%m-%d %H:%M} {hit.who}: {hit.text}")
        tagged = f" [{one_line(', '.join(hit.tags))}]" if hit.tags else ""
        until = f" until {_day(hit.valid_until)}" if hit.valid_until else ""
        since = _day(hit.valid_from) if hit.valid_from else ""
        replaced = f", supersedes {hit.supersedes}" if hit.supersedes is not None else ""
        stored = _ago(self._clock.now() - hit.at)
        head = f"{hit.page_id}{label(hit.via)}{tagged} since {since}{until}{replaced}"
        return f"{head}, stored {stored}: {one_line(hit.text)}"

    def _bounded(self, lines: Sequence[str]) -> str:
        """Return as many lines as a part may hold: what a memory tool answers is never spilled."""
        left = self._memory.limits.max_part_tokens // 2
        for number, line in enumerate(lines):
            left -= count_tokens(line) + 1
            if left < 0:
                other = ", or page_in by id" if "page_in" in self.NAMES else ""
                more = f"({len(lines) - number} more do not fit; ask more narrowly{other}.)"
                return "\n".join([*lines[:number], more])
        return "\n".join(lines)


class MemoryTools(ReadingTools[Memory]):
    """All of them. Whatever they change is in the ledger as done by `actor`."""

    NAMES = ("core_append", "core_replace", "archive", *ReadingTools.NAMES, "page_out", "forget")

    def core_append(self, block: str, text: str) -> str:
        """Add a line to a core block, which is always in view. For what every turn needs."""
        for found in self._memory.core():
            if found.name == block and text.strip() in found.value.splitlines():
                return f"It is there already. {_size(found)}"
        return f"Added. {_size(self._memory.core_append(block, text, **self._who))}"

    def core_replace(self, block: str, old_text: str, new_text: str) -> str:
        """Replace an exact and unique piece of a core block. An empty new_text deletes it."""
        done = "Replaced." if new_text else "Deleted."
        return f"{done} {_size(self._memory.core_replace(block, old_text, new_text, **self._who))}"

    def archive(
        self, text: str, key: str | None = None, tags: list[str] | None = None, valid_from: str | None = None,
        valid_until: str | None = None,
    ) -> str:  # fmt: skip
        """Store a fact for good, one per call, as a sentence that stands by itself.

        Args:
            key: What it is about, such as "seat". A new fact with the same key supersedes the old one.
            valid_from: When it began to be true, if not now (2026-05-03).
            valid_until: The last day on which it is true, if that is known.
        """
        fact = self._memory.archive(
            text, key=key, tags=tags or (), valid_from=valid_from, valid_until=valid_until, **self._who
        )
        [last] = self._memory.ledger(page=fact.id, limit=1)
        lines = [f"It is there already, as {fact.id}." if last.event == "repeat" else f"Stored as {fact.id}."]
        if fact.supersedes is not None:
            lines.append(f"It supersedes {fact.supersedes}: {one_line(self._memory.fact(fact.supersedes).text)}")
        if fact.superseded_by is not None:
            successor = self._memory.fact(fact.superseded_by)
            lines.append(f"It is part of the past: {successor.id} holds since {_day(successor.valid_from)}.")
        elif fact.valid_until is not None:
            is_over = fact.valid_until <= self._clock.now()
            lines.append(f"It {'was' if is_over else 'is'} true until {format_minute(fact.valid_until)}.")
        near = self._memory.similar_facts(fact.id, actor=self._actor)
        lines += [f"Close to it: {hit.page_id}{label(hit.via)}: {one_line(hit.text)}" for hit in near]
        return self._bounded(lines)

    def page_out(
        self, page_id: str | None = None, block: str | None = None, text: str | None = None, key: str | None = None,
        tags: list[str] | None = None,
    ) -> str:  # fmt: skip
        """Unpin a page (page_id), or move text from a core block to the archive (block and text)."""
        if page_id and not block and not text:
            self._refuse_block(page_id)
            self._memory.page_out(page_id, actor=self._actor)
            return f"{page_id} is no longer pinned; it leaves the prompt at the next eviction."
        if block and text and not page_id:
            fact = self._memory.move_to_archive(block, text, key=key, tags=tags or (), **self._who)
            changed = next(other for other in self._memory.core() if other.name == block)
            return f"Moved to the archive as {fact.id}. {_size(changed)}"
        raise RejectedError("page_out takes either page_id, or block and text.")

    def forget(self, page_id: str, reason: str) -> str:
        """End a fact's validity: it is no longer true. It stays findable with as_of."""
        self._refuse_block(page_id)
        fact = self._memory.forget(page_id, reason, **self._who)
        return f"{fact.id} no longer holds: {one_line(fact.text)}"


ANSWER_NOW = "Answer the person now, in your own words."


class FewTools(ReadingTools[Memory]):
    """Two tools, for models that would choose badly among eight."""

    NAMES = ("remember", "search_memory")

    def remember(self, text: str, about: str | None = None) -> str:
        """Keep a fact for good, one per call, as a sentence that stands by itself.

        Args:
            about: What it is about, in a word or two. It replaces what you remembered about the same before.
        """
        fact = self._memory.archive(text, key=about or None, **self._who)
        replaced = self._memory.fact(fact.supersedes).text if fact.supersedes is not None else ""
        # Small models copy an id into their next call, repeat a call that answers the same again, and fall silent.
        if [row.event for row in self._memory.ledger(limit=1)] == ["repeat"]:
            return f"You know this already, so nothing was changed. {ANSWER_NOW}"
        lines = [f"Remembered: {one_line(fact.text)}", *([f"It replaces: {one_line(replaced)}"] if replaced else ())]
        return self._bounded([*lines, ANSWER_NOW])

    def search_memory(self, query: str) -> str:
        """Find what you remembered and what was said, also long ago, by words and meaning."""
        hits = self._memory.search(query, actor=self._actor)
        return self._bounded([self._line(hit) for hit in hits]) if hits else "Nothing fits. Try other words."


class SharedTools:
    """The tool that writes into memories that other agents read, too."""

    NAMES: tuple[str, ...] = ("share",)

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @classmethod
    def definitions(cls, memories: Sequence[str]) -> list[Json]:
        """Return the definition of the tool for these memories; none without any."""
        [definition] = definitions_of(cls, cls.NAMES)
        return [_with_choices(definition, "memory", memories)] if memories else []

    def tools(self) -> list[Tool]:
        """Return the tool."""
        return [Tool.of(self.share, memory=True, idempotent=True)]

    def share(self, text: str, memory: str, key: str | None = None, tags: list[str] | None = None) -> str:
        """Store a fact for others as well, in a shared memory: what they need, as a sentence that stands by itself.

        Args:
            memory: The shared memory.
            key: What it is about, such as "opening hours". A new fact with the same key supersedes the old one.
        """
        given = {"text": text, **({"key": key} if key else {}), **({"tags": tags} if tags else {})}
        return self._memory.write_shared(memory, "archive", given, actor=ACTOR)


class SkillTools:
    """The tool that reads a skill, for agents whose tools read no page."""

    NAMES: tuple[str, ...] = ("read_skill",)

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @classmethod
    def definitions(cls, skills: Sequence[SkillSpec]) -> list[Json]:
        """Return the definition of the tool for these skills."""
        [definition] = definitions_of(cls, cls.NAMES)
        return [_with_choices(definition, "name", [skill.name for skill in skills])]

    def tools(self) -> list[Tool]:
        """Return the tool."""
        return [Tool.of(self.read_skill, memory=True, idempotent=True)]

    def read_skill(self, name: str, offset: int = 0) -> str:
        """Read the instructions of a skill before you do what it is for.

        Args:
            offset: Where to read on in a long one.
        """
        skills = self._memory.inspect.skills()
        page = next((skill.id for skill in skills if skill.name == name), None)
        if page is None:
            raise RejectedError(
                f"there is no skill {brief(name, 80)}; there are {', '.join(each.name for each in skills)}."
            )
        return _read(self._memory.page_in(page, offset=offset, actor=ACTOR))


def _read(page: PageText) -> str:
    end = page.offset + len(page.text)
    on = f"; read on with offset {page.next_offset}" if page.next_offset is not None else ""
    return f"{page.page_id}{label(page.via)}, characters {page.offset} to {end} of {page.length}{on}:\n{page.text}"


def memory_file_tool(memory: Memory) -> Tool:
    """Return the provider's own memory tool over one memory. The provider defines it, we carry out its commands."""
    run = MemoryFiles(memory).run
    return Tool(DEFINITION["name"], "", {}, run, memory=True, idempotent=True, of_provider=DEFINITION)


def for_blocks(definitions: Sequence[Json], blocks: Sequence[str]) -> list[Json]:
    """Return definitions in which an argument `block` takes these names alone. Without any, what needs one is left
    out."""
    made = list[Json]()
    for definition in definitions:
        schema: Json = definition.get("input_schema") or {}
        properties: Json = schema.get("properties") or {}
        if "block" in properties and blocks:
            definition = _with_choices(definition, "block", blocks)  # noqa: PLW2901
        if blocks or "block" not in schema.get("required", ()):
            made.append(definition)
    return made


def _with_choices(definition: Json, argument: str, choices: Sequence[str]) -> Json:
    """Return a definition in which an argument takes these values alone."""
    schema: Json = definition["input_schema"]
    chosen = {**schema["properties"][argument], "enum": [*choices]}
    return {**definition, "input_schema": {**schema, "properties": {**schema["properties"], argument: chosen}}}


def _size(block: Block) -> str:
    return f"{block.name} holds {block.used_tokens} of {block.limit_tokens} tokens."


def _within(limit: int) -> int:
    if not 1 <= limit <= MAX_HITS:
        raise RejectedError(f"limit is {limit}; it has to be between 1 and {MAX_HITS}.")
    return limit


def _day(at: datetime) -> str:
    return at.strftime("%Y-%m-%d")


def _ago(age: timedelta) -> str:
    for name, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(age.total_seconds() // seconds)
        if count:
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
