"""The core tier: named blocks that are always in the prompt, each with a limit, and one limit over all.

Every change is a new version. A change that the agent did not make itself is `unseen` until the prompt has told it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pager import markup, tokens
from pager.arguments import path_of, text_of_person, text_or_none, whole_number
from pager.blocks import clean
from pager.clock import Clock
from pager.errors import NotFoundError, RejectedError
from pager.store import Store
from pager.store.ledger import Ledger
from pager.types import Block, BlockSpec

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def appended(value: str, text: str) -> str:
    """`value` with `text` as a new last line."""
    return f"{value}\n{text}" if value else text


def replaced(block: Block, old_text: str, new_text: str) -> str:
    """The block's value with the one place of `old_text` exchanged; an empty `new_text` deletes it."""
    if not old_text:
        raise RejectedError(f"old_text is empty; give the exact text in {block.name!r} to replace, or use core_append.")
    places = len(re.findall(f"(?={re.escape(old_text)})", block.value))  # overlapping ones, too: "aa" in "aaa"
    if places == 0:
        raise RejectedError(f"{old_text!r} does not stand in the block {block.name!r}, which reads:\n{block.value}")
    if places > 1:
        raise RejectedError(
            f"{old_text!r} stands {places} times in the block {block.name!r}; give more of the text around the one "
            f"you mean. It reads:\n{block.value}"
        )
    start = block.value.index(old_text)
    before, after = block.value[:start], block.value[start + len(old_text) :]
    if not new_text and before.endswith("\n") and (after.startswith("\n") or not after):
        before = before[:-1]  # deleting a whole line takes its line break with it
    elif not new_text and not before and after.startswith("\n"):
        after = after[1:]
    return before + new_text + after


class Core:
    def __init__(self, store: Store, clock: Clock, ledger: Ledger, limit_tokens: int) -> None:
        self._store = store
        self._clock = clock
        self._ledger = ledger
        self.limit_tokens = limit_tokens

    def blocks(self) -> list[Block]:
        return self._store.core.blocks()

    def block(self, name: str) -> Block:
        found = self._store.core.block(text_of_person(name, "block"))
        if found is None or found[0].retired:
            names = ", ".join(block.name for block in self.blocks())
            raise NotFoundError(
                f"there is no core block {name!r}; " + (f"there are: {names}." if names else "there is none.")
            )
        return found[0]

    def append(self, name: str, text: str, actor: str) -> Block:
        block = self.block(name)
        if not text_of_person(text, "text").strip():
            raise RejectedError(f"there is nothing to append to {name!r}; core_replace with an empty new_text deletes.")
        return self._edit(block, appended(block.value, clean(text)), actor, f"append: {text}")

    def replace(self, name: str, old_text: str, new_text: str, actor: str) -> Block:
        block = self.block(name)
        text_of_person(old_text, "old_text")
        text_of_person(new_text, "new_text")
        value = replaced(block, clean(old_text), clean(new_text))
        return self._edit(block, value, actor, f"replace: {old_text} -> {new_text}")

    def remove(self, name: str, text: str, actor: str) -> Block:
        """Take a text out of a block because it goes somewhere else."""
        return self.replace(name, text, "", actor)

    def rewrite(self, name: str, value: str, actor: str) -> Block:
        """Another text for the whole block."""
        return self._edit(self.block(name), clean(text_of_person(value, "value")), actor, "written anew")

    def _edit(self, block: Block, value: str, actor: str, reason: str) -> Block:
        if block.read_only or block.file:
            how = "read-only" if block.read_only else "read from a file"
            way = f"change {block.file}" if block.file else "only its configuration changes it"
            raise RejectedError(f"the block {block.name!r} is {how}; {way}. Use another block, or the archive.")
        return self._write(replace(block, value=value), actor, reason)

    def _write(self, block: Block, actor: str, reason: str) -> Block:
        """A new version, if it keeps the limits and differs from the newest."""
        used = tokens.total(block.value)
        block = replace(block, used_tokens=used, actor=actor, at=self._clock.now())
        known = self._store.core.block(block.name)
        if known and _same(known[0], block):
            return known[0]
        if not (known and _eases(known[0], block)):
            self._check_limits(block)
        place = known[1] if known and not known[0].retired else self._store.core.last_place() + 1
        with self._store.transaction():
            step = self._store.conversation.last_step()
            self._store.core.append(block, step, place, unseen=actor != "agent")
            self._ledger.write("core", reason=reason, actor=actor, tokens=used, block=block.name)
        return self.block(block.name)

    def _check_limits(self, block: Block) -> None:
        if not _NAME.fullmatch(block.name):
            raise RejectedError(
                f"{block.name!r} is no name for a core block; use letters, digits, _ and -, beginning with a "
                f"letter, at most 64."
            )
        if block.used_tokens > block.limit_tokens:
            way = _way_out(block, "it", "its limit")
            raise RejectedError(
                f"the block {block.name!r} would hold {block.used_tokens} of {block.limit_tokens} tokens. {way}"
            )
        others = sum(other.used_tokens for other in self.blocks() if other.name != block.name)
        if others + block.used_tokens > self.limit_tokens:
            way = _way_out(block, "a block", "the limit of core")
            raise RejectedError(f"core would hold {others + block.used_tokens} of {self.limit_tokens} tokens. {way}")

    # configuration

    def configure(self, specs: Mapping[str, BlockSpec]) -> None:
        """Make the blocks what a configuration says. A writable block keeps what it holds; one that is no longer named
        is retired (its versions stay)."""
        with self._store.transaction():
            for block in self.blocks():
                if block.name not in specs:
                    self._retire(block)
            self._write_all([self._configured(name, spec) for name, spec in specs.items()], "configured")

    def _configured(self, name: str, spec: BlockSpec) -> Block:
        text_of_person(name, "the name of a core block")
        if not isinstance(spec, BlockSpec):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"the core block {name!r} is configured as {spec!r:.100}; give a BlockSpec.")
        for field in ("value", "description"):
            text_of_person(getattr(spec, field), f"{field} of the core block {name!r}")
        text_or_none(spec.file, f"file of the core block {name!r}")
        whole_number(spec.limit_tokens, f"limit_tokens of the core block {name!r}")
        found = self._store.core.block(name)
        known = found[0] if found and not found[0].retired else None
        owned = spec.read_only or spec.file is not None
        # Absolute: the next process may work somewhere else.
        file = str(path_of(spec.file, f"file of the core block {name!r}").absolute()) if spec.file else None
        value = _read(name, file) if file else spec.value
        if known and not owned:
            value = known.value
        return Block(
            name,
            clean(value),
            clean(spec.description),
            spec.limit_tokens,
            0,
            spec.read_only,
            file,
            0,
            "",
            self._clock.now(),
        )

    def _write_all(self, blocks: Sequence[Block], reason: str) -> None:
        """Those that do not grow come first: they make the room that others take."""
        held = {block.name: block.used_tokens for block in self.blocks()}
        for block in sorted(blocks, key=lambda each: tokens.total(each.value) > held.get(each.name, -1)):
            why = reason or f"read {block.file}"
            self._write(block, "file" if block.file else "person", why)

    def _retire(self, block: Block) -> None:
        gone = replace(block, value="", used_tokens=0, retired=True, actor="person", at=self._clock.now())
        found = self._store.core.block(block.name)
        step = self._store.conversation.last_step()
        self._store.core.append(gone, step, found[1] if found else 0, unseen=True)
        self._ledger.write("core", reason="no longer configured", actor="person", block=block.name)

    def reread_files(self) -> None:
        """Blocks from files read them again (at the start of a run)."""
        read = [replace(each, value=clean(_read(each.name, each.file))) for each in self.blocks() if each.file]
        self._write_all(read, "")

    def rendered(self) -> str:
        return markup.core(self.blocks())


def _same(known: Block, block: Block) -> bool:
    return replace(known, version=0, actor="", at=block.at) == replace(block, version=0, actor="")


def _eases(known: Block, block: Block) -> bool:
    """Whether a block that may hold more than a limit that was lowered since at least does not grow."""
    owned = block.read_only or block.file is not None
    return not owned and not known.retired and block.used_tokens <= known.used_tokens


def _way_out(block: Block, what: str, limit: str) -> str:
    """What brings a block under its limit. What stands in a file or in the configuration is changed there alone."""
    if block.file:
        return f"Shorten the file {block.file}, or raise {limit} in the configuration."
    if block.read_only:
        return f"Shorten its value, or raise {limit}, in the configuration."
    return f"Shorten {what}, or move text from it to the archive."


def _read(name: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\n")
    except FileNotFoundError:
        raise RejectedError(
            f"the core block {name!r} reads {file}, which does not exist. Create it, or correct the path in "
            f"the configuration."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RejectedError(
            f"the core block {name!r} cannot read {file}: {error}. It has to be a text file in UTF-8."
        ) from None
