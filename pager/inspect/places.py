"""The places that hold a text: parts of steps, facts and core blocks.

Texts are compared regardless of case, white space and the form of accents.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pager.arguments import normalize
from pager.store import Store
from pager.store.rows import Row, SaidPart
from pager.types import FOREVER, Fact, number_of, read_page_id

BATCH = 200
LONGEST_CHARS = 1_000  # of a text that is looked for; a longer one is looked for by its beginning
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": " ", "t": " ", "r": " "}


@dataclass(frozen=True, slots=True)
class Places:
    """The places that hold a text: parts of steps, facts, core blocks by name. `more` is True if there are others."""

    parts: tuple[SaidPart, ...]
    facts: tuple[Fact, ...]
    core: tuple[str, ...]
    more: bool

    def __bool__(self) -> bool:
        return bool(self.parts or self.facts or self.core)


def find_places(store: Store, text: str, most: int) -> Places:
    """Return the places that hold a text, newest first, at most `most` of each kind. Reads every text once at most."""
    wanted, pattern = normalize_text(text), like_pattern(text)
    lists = store.lists
    said = _batches(lambda before: lists.pieces_like(pattern, before, BATCH), lambda part: part.page_id)
    parts = (part for part in said if contains_text(part.text, wanted) and not _is_of_own_tool(store, part))
    stored = _batches(lambda before: lists.facts_like(pattern, before, BATCH), lambda fact: fact.id)
    facts = (fact for fact in stored if wanted in normalize_text(fact.text))
    versions = ((name, version) for name in lists.core_like(pattern) for version in lists.core_versions(name))
    core = dict.fromkeys(name for name, version in versions if wanted in normalize_text(version.block.value))
    found_parts, found_facts = list(islice(parts, most + 1)), list(islice(facts, most + 1))
    more = max(len(found_parts), len(found_facts)) > most
    return Places(tuple(found_parts[:most]), tuple(found_facts[:most]), tuple(core), more)


def _is_of_own_tool(store: Store, part: SaidPart) -> bool:
    if part.searchable or (part.slot != "result" and part.block.get("type") != "tool_use"):
        return False
    if part.slot == "result":
        return True
    own = [each for each in store.lists.pieces_of(read_page_id(part.step)) if not each.searchable]
    return part.block.get("id") in {each.block.get("tool_use_id") for each in own if each.slot == "result"}


def _batches(load: Callable[[int], Sequence[Row]], page_id: Callable[[Row], str]) -> Iterator[Row]:
    before = FOREVER
    while rows := load(before):
        yield from rows
        before = number_of(page_id(rows[-1]))


def normalize_text(text: str) -> str:
    """Return a text in the form in which texts are compared: casefolded, with single spaces and joined accents."""
    return compose_accents(compose_accents(" ".join(text.split())).casefold())


def compose_accents(text: str) -> str:
    """Return a text with its accents joined to their letters, however they were typed."""
    return normalize("NFC", text)


def contains_text(text: str, wanted: str) -> bool:
    """Return True if a text contains a normal one, as it stands or as JSON, in which tool inputs are stored."""
    return wanted in normalize_text(text) or (
        "\\" in text and wanted in normalize_text(_ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), text))
    )


def like_pattern(text: str) -> str:
    """Return a pattern of SQL's LIKE for every text with `text`, and more: what has several forms is a wildcard."""
    shown = " ".join(compose_accents(text).split())[:LONGEST_CHARS]
    fixed = "".join(char if _has_one_form(char) else "\0" for char in shown)
    return "%" + "".join(f"{word}%" for word in fixed.split("\0") if word)


def _has_one_form(char: str) -> bool:
    """Return True if LIKE finds it in any case: an ASCII letter, or what has one case and cannot be decomposed."""
    caseless = char.lower() == char.upper() == char.casefold() and unicodedata.is_normalized("NFD", char)
    return char.isalnum() and (char.isascii() or caseless)
