"""The core tier: named blocks that are always in the prompt, each with a limit, and one limit over all of them.

A block that is full makes room by itself where it is a checklist: its finished items become facts.
Every change is a new version. A change that the agent did not make itself is `unseen` until the prompt has shown it.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from pager import checklist, markup, tokens
from pager.arguments import optional_text, require_int, require_path, require_text
from pager.blocks import clean
from pager.clock import Clock
from pager.errors import BlockFullError, NeedsApprovalError, NotFoundError, RejectedError, brief
from pager.safety import foreign_files
from pager.safety.sources import Source, union
from pager.store import Store
from pager.tiers.archive import Archive
from pager.types import Block, BlockSpec, Fact, UntrustedWrites

UNTRUSTED_WRITES: tuple[UntrustedWrites, ...] = get_args(UntrustedWrites)
MOVED_FROM = "from the core block "  # in the ledger, the reason of a fact that was moved out of a block
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Core:
    """Reads and edits the core blocks of one agent."""

    def __init__(self, store: Store, clock: Clock, limit_tokens: int, archive: Archive) -> None:
        self._store = store
        self._archive = archive
        self._clock = clock
        self._limit_tokens = limit_tokens
        self.approved = False  # True while a person's approval holds for what blocks ask about

    def block(self, name: str) -> Block:
        """Return a block as it reads now."""
        found = self._store.core.block(require_text(name, "block"))
        if found is None or found[0].retired:
            names = ", ".join(block.name for block in self._store.core.blocks())
            which = f"there are: {names}." if names else "this memory has no blocks."
            raise NotFoundError(f"there is no core block {name!r}; {which}")
        return found[0]

    def rendered(self) -> str:
        """Return all blocks as the prompt shows them."""
        return markup.core(self._store.core.blocks())

    def sources(self) -> tuple[str, ...]:
        """Return the untrusted sources of all blocks."""
        return union(*(block.via for block in self._store.core.blocks()))

    def append(self, name: str, text: str, actor: str, source: Source) -> Block:
        """Add a line to a block."""
        block = self.block(name)
        if not require_text(text, "text").strip():
            raise RejectedError(f"there is nothing to append to {name!r}; core_replace with an empty new_text deletes.")
        value = f"{block.value}\n{clean(text)}" if block.value else clean(text)
        return self._edit(block, value, actor, f"append: {text}", source, block.via)

    def replace(self, name: str, old_text: str, new_text: str, actor: str, source: Source) -> Block:
        """Replace an exact and unique text in a block; an empty `new_text` deletes it."""
        block = self.block(name)
        require_text(old_text, "old_text")
        require_text(new_text, "new_text")
        value = replaced(block, clean(old_text), clean(new_text))
        return self._edit(block, value, actor, f"replace: {old_text} -> {new_text}", source, block.via)

    def rewrite(self, name: str, value: str, actor: str, source: Source) -> Block:
        """Give a whole block another text. A person's text has nothing of the old one's sources."""
        block = self.block(name)
        kept = () if actor == "person" else block.via
        return self._edit(block, clean(require_text(value, "value")), actor, "written anew", source, kept)

    def _edit(self, block: Block, value: str, actor: str, reason: str, source: Source, kept: Sequence[str]) -> Block:
        """Write a new value. What is left of the old one has the sources `kept`."""
        if block.read_only or block.file:
            how = "read-only" if block.read_only else "read from a file"
            way = f"change {block.file}" if block.file else "only its configuration changes it"
            raise RejectedError(f"the block {block.name!r} is {how}; {way}. Use another block, or the archive.")
        if source.untrusted:
            self._guard(block, source.untrusted)
        # Nothing is left to be labelled, but who emptied it may be taken back.
        via, emptied_by = (union(kept, source.untrusted), ()) if value.strip() else ((), source.untrusted)
        edited = replace(block, value=value, via=via, emptied_by=emptied_by)
        try:
            return self._write(edited, actor, reason)
        except BlockFullError:
            value, finished = checklist.without_finished(value)
            if not finished:
                raise
        with self._store.transaction():
            # The agent is told: this is not what it wrote.
            written = self._write(replace(edited, value=value), actor, reason, unseen=True)
            origin = replace(source, via=union(source.via, kept))
            for item in finished:
                self.move_to_archive(block.name, item, None, (block.name,), actor, origin)
        return written

    def move_to_archive(
        self, block: str, text: str, key: str | None, tags: Sequence[str], actor: str, source: Source
    ) -> Fact:
        """Store a text that was taken out of a block as a fact, in a transaction of the caller."""
        fact = self._archive.archive(text, key=key, tags=tags, valid_from=None, actor=actor, source=source)
        reason, size = f"{MOVED_FROM}{block}", tokens.total(text)
        self._store.ledger.write("page_out", fact.id, reason=reason, actor=actor, tokens=size)
        return fact

    def _guard(self, block: Block, untrusted: Sequence[str]) -> None:
        """Raise unless a block takes text that was written after something untrusted was read."""
        names = markup.attribute(", ".join(untrusted))
        if block.untrusted_writes == "refuse":
            why = f"the block {block.name!r} takes nothing that is written after untrusted text was read ({names})"
            way = "Nothing was changed. Ask the person to make the change, or archive it as a fact"
            raise RejectedError(f"{why}. {way}.")
        if block.untrusted_writes == "ask" and not self.approved:
            what = f"what is written to the block {block.name!r} after untrusted text was read"
            why = f"a person has to approve {what} ({names})"
            raise NeedsApprovalError(f"{why}. Nobody did, and nothing was changed. Archive it as a fact.", why)

    def restore(self, block: Block, value: str, via: tuple[str, ...], actor: str, reason: str) -> None:
        """Give a block an earlier value, in a transaction of the caller, whatever its limit is now."""
        used, now = tokens.total(value), self._clock.now()
        newest = self._store.core.block(block.name)
        block = replace(block, value=value, via=via, emptied_by=(), used_tokens=used, actor=actor, at=now)
        self._store.core.append(block, newest[1] if newest else 0, unseen=True)
        self._store.ledger.write("core", reason=reason, actor=actor, tokens=used, block=block.name, via=list(via))

    def _write(self, block: Block, actor: str, reason: str, *, unseen: bool = False) -> Block:
        used = tokens.total(block.value)
        block = replace(block, used_tokens=used, actor=actor, at=self._clock.now())
        newest = self._store.core.block(block.name)
        if newest and replace(newest[0], version=0, actor="", at=block.at) == replace(block, version=0, actor=""):
            return newest[0]
        is_configured = block.read_only or block.file is not None
        may_stay = newest and not (is_configured or newest[0].retired) and used <= newest[0].used_tokens
        if not may_stay:  # a block that does not grow may be larger than a limit that was lowered since
            self._check_limits(block)
        place = newest[1] if newest and not newest[0].retired else self._store.core.last_place() + 1
        with self._store.transaction():
            self._store.core.append(block, place, unseen=unseen or actor != "agent")
            via = list(block.via)
            self._store.ledger.write("core", reason=reason, actor=actor, tokens=used, block=block.name, via=via)
        return self.block(block.name)

    def _check_limits(self, block: Block) -> None:
        if not _NAME.fullmatch(block.name):
            way = "use letters, digits, _ and -, beginning with a letter, at most 64"
            raise RejectedError(f"{block.name!r} is no name for a core block; {way}.")
        if block.used_tokens > block.limit_tokens:
            way = _way_out(block, "it", "its limit")
            used = f"{block.used_tokens} of {block.limit_tokens} tokens"
            raise BlockFullError(f"the block {block.name!r} would hold {used}. {way}")
        total = sum(other.used_tokens for other in self._store.core.blocks() if other.name != block.name)
        total += block.used_tokens
        if total > self._limit_tokens:
            way = _way_out(block, "a block", "the limit of core")
            raise BlockFullError(f"core would hold {total} of {self._limit_tokens} tokens. {way}")

    def follow(self, shared: Mapping[str, Block | None]) -> dict[str, str]:
        """Let blocks of shared memories read as they do there; None for those that are not there any more. Return by
        name why some do not."""
        failures: dict[str, str] = {}
        with self._store.transaction():
            for name, block in shared.items():
                newest = self._store.core.block(name) if block is None else None
                if newest and newest[0].file and not newest[0].retired:
                    self._retire(newest[0], "mount", "no longer in the shared memory")
            for block in self._growing_last([block for block in shared.values() if block]):
                try:
                    self._write(replace(block, version=0, emptied_by=()), "mount", "as in the shared memory")
                except BlockFullError as error:
                    failures[block.name] = str(error)
        return failures

    def add(self, specs: Mapping[str, BlockSpec]) -> None:
        """Make the blocks that are not there."""
        with self._store.transaction():
            there = {block.name for block in self._store.core.blocks()}
            self._write_all([self._configured(name, spec) for name, spec in specs.items() if name not in there])

    def configure(self, specs: Mapping[str, BlockSpec], shared: Collection[str] = ()) -> None:
        """Make the blocks what a configuration says. Writable ones keep their texts, those from files are read, and
        those of shared memories stay.

        Only here is a file read: one that the database names may be anybody's choice.
        """
        with self._store.transaction():
            for block in self._store.core.blocks():
                if block.name not in specs and block.name not in shared:
                    self._retire(block, "person", "no longer configured")
            self._write_all([self._configured(name, spec) for name, spec in specs.items()])

    def _retire(self, block: Block, actor: str, reason: str) -> None:
        now, newest = self._clock.now(), self._store.core.block(block.name)
        retired = replace(block, value="", via=(), emptied_by=(), used_tokens=0, retired=True, actor=actor, at=now)
        self._store.core.append(retired, newest[1] if newest else 0, unseen=True)
        self._store.ledger.write("core", reason=reason, actor=actor, block=block.name)

    def _configured(self, name: str, spec: BlockSpec) -> Block:
        where = f"of the core block {name!r}"
        require_text(name, "the name of a core block")
        if not isinstance(spec, BlockSpec):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"the core block {name!r} is configured as {brief(spec)}; give a BlockSpec.")
        require_text(spec.value, f"value {where}")
        require_text(spec.description, f"description {where}")
        optional_text(spec.file, f"file {where}")
        require_int(spec.limit_tokens, f"limit_tokens {where}")
        # Absolute: the next process may work in another directory.
        file = str(require_path(spec.file, f"file {where}").absolute()) if spec.file else None
        value = _read(name, file) if file else spec.value
        if spec.untrusted_writes not in UNTRUSTED_WRITES:
            ways = ", ".join(UNTRUSTED_WRITES)
            raise RejectedError(f"untrusted_writes {where} is {brief(spec.untrusted_writes)}; give one of {ways}.")
        newest, via, emptied_by = self._store.core.block(name), (), ()
        if newest and not newest[0].retired and not (spec.read_only or spec.file is not None):
            value, via, emptied_by = newest[0].value, newest[0].via, newest[0].emptied_by
        now, limit, description = self._clock.now(), spec.limit_tokens, clean(spec.description)
        return Block(
            name, clean(value), description, limit, 0, spec.read_only, file, version=0, actor="", at=now,
            untrusted_writes=spec.untrusted_writes, via=via, emptied_by=emptied_by,
        )  # fmt: skip

    def _write_all(self, blocks: Sequence[Block]) -> None:
        for block in self._growing_last(blocks):
            self._write(block, "file" if block.file else "person", "configured")

    def _growing_last(self, blocks: Sequence[Block]) -> list[Block]:
        """Return blocks, first those that do not grow: they make the room that others need."""
        used = {block.name: block.used_tokens for block in self._store.core.blocks()}
        return sorted(blocks, key=lambda each: tokens.total(each.value) > used.get(each.name, -1))


def replaced(block: Block, old_text: str, new_text: str) -> str:
    """Return the block's value with the one place of `old_text` replaced; an empty `new_text` deletes it."""
    if not old_text:
        raise RejectedError(f"old_text is empty; give the exact text in {block.name!r} to replace, or use core_append.")
    start = block.value.find(old_text)
    if start < 0:
        raise RejectedError(f"{old_text!r} is not in the block {block.name!r}, which reads:\n{block.value}")
    if block.value.find(old_text, start + 1) >= 0:  # overlapping ones, too: "aa" in "aaa"
        way = f"give more of the text around the one you mean. It reads:\n{block.value}"
        raise RejectedError(f"{old_text!r} occurs more than once in the block {block.name!r}; {way}")
    before, after = block.value[:start], block.value[start + len(old_text) :]
    if not new_text and before.endswith("\n") and (after.startswith("\n") or not after):
        before = before[:-1]  # deleting a whole line takes its line break with it
    elif not new_text and not before and after.startswith("\n"):
        after = after[1:]
    return before + new_text + after


def _way_out(block: Block, what: str, limit: str) -> str:
    """Say what brings a block under its limit. Only the file or the configuration changes what comes from there."""
    if block.file:
        return f"Shorten the file {block.file}, or raise {limit} in the configuration."
    if block.read_only:
        return f"Shorten its value, or raise {limit}, in the configuration."
    return f"Shorten {what}, or move text from it to the archive."


def _read(name: str, file: str) -> str:
    try:
        return foreign_files.read_text(Path(file)).rstrip("\n")
    except FileNotFoundError:
        way = "Create it, or correct the path in the configuration"
        raise RejectedError(f"the core block {name!r} reads {file}, which does not exist. {way}.") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        why = f"{reason}. It has to be a text file in UTF-8."
        raise RejectedError(f"the core block {name!r} cannot read {file}: {why}") from None
