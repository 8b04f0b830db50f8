"""The moments of a text's life as sentences: what happened, to which page, by whom, and why. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from agents.explain.trace_parts import Told
from pager import blocks
from pager.inspect.lists import composed, normal
from pager.reader import MemoryReader
from pager.store.rows import CoreVersion, Piece, StepRow
from pager.types import Movement, Residency

QUOTED_CHARS = 160
AROUND_CHARS = 60
ENDS = (".", *(f"{mark}\u201d" for mark in ".?!\u2026"))
PAGE_FIRST = re.compile(r"[sfx]\d+\b")


def said(row: StepRow, held: Sequence[Piece], wanted: str) -> Told:
    """How a step came to hold the text, with what stands around it."""
    who = "the user" if row.who == "user" else row.who
    slots = {piece.slot for piece in held}
    if row.kind == "record":
        how = f"{row.page_id} was recorded from elsewhere: {who} said it"
    elif slots == {"result"}:
        how = f"it came with a tool's result, in {row.page_id}"
    elif row.kind == "assistant":
        how = f"the agent said it, in {row.page_id}"
    else:
        how = f"{who} said it, in {row.page_id}"
    turn = f", turn s{row.turn}" if row.kind != "record" and f"s{row.turn}" != row.page_id else ""
    words = blocks.text_of(held[0].block) if held and not row.purged else ""
    quote = f": {around(words, wanted)}" if words else ", and was purged since" if row.purged else ""
    return Told(row.at, row.page_id, "said", row.page_id, sentence(f"{how}{turn}{quote}"))


def left(stay: Residency, at: datetime) -> Told:
    """The end of a stay that was not that of a step of the conversation."""
    how = {
        "pinned": "was no longer carried as a pinned page",
        "request": "was no longer carried as the request under way",
        "recalled": "was no longer in view as a recalled fact",
        "paged_in": "was no longer in view as a page that was read",
    }.get(stay.how, "left the prompt")
    why = f": {stay.reason}" if stay.reason else ""
    return Told(at, f"s{stay.until_step}", "left", stay.page_id, sentence(f"{stay.page_id} {how}{why}"))


def moved(row: Movement, reading: MemoryReader) -> Told:
    """A row of the ledger about one page."""
    tell = SENTENCES.get(row.event)
    text = tell(row, reading) if tell else f"{row.event} of {row.page_id}: {row.reason}"
    return Told(row.at, step_of(row.step), row.event, row.page_id, sentence(text))


def step_of(number: int) -> str:
    """The newest step at a moment; nothing before the first."""
    return f"s{number}" if number else ""


def sentence(text: str) -> str:
    """With a full stop, and a capital unless it begins with a page id."""
    named = PAGE_FIRST.match(text)
    text = text if named else text[:1].upper() + text[1:]
    return text if text.endswith(ENDS) else f"{text}."


def by(actor: str) -> str:
    return {"agent": "the agent", "person": "a person", "pager": "the memory", "file": "a file"}.get(actor, actor)


def quoted(text: str) -> str:
    line = " ".join(text.split())
    if len(line) > QUOTED_CHARS:
        line = f"{line[: QUOTED_CHARS - 1]}\u2026"
    return f"\u201c{line}\u201d"


def around(text: str, wanted: str) -> str:
    """What stands around the place where the text stands, quoted; the beginning where that is not known."""
    line = composed(" ".join(text.split()))
    place = max(0, line.casefold().find(wanted)) if wanted else 0
    start = max(0, place - AROUND_CHARS)
    end = min(len(line), place + len(wanted) + AROUND_CHARS)
    before, after = "\u2026" if start else "", "\u2026" if end < len(line) else ""
    return f"\u201c{before}{line[start:end]}{after}\u201d"


def _archived(row: Movement, reading: MemoryReader) -> str:
    assert row.page_id
    fact = reading.fact(row.page_id)
    key = f" under the key {quoted(fact.key)}" if fact.key else ""
    took = f"; it took the place of f{fact.supersedes}" if fact.supersedes else ""
    says = "" if fact.purged else f": {quoted(fact.text)}"
    return f"{by(row.actor)} archived it as {row.page_id}{key}{took}{says}"


def _superseded(row: Movement, reading: MemoryReader) -> str:
    new = row.detail.get("by")
    says = ""
    if isinstance(new, str):
        fact = reading.fact(new)
        says = "" if fact.purged else f", which says {quoted(fact.text)}"
    return f"{row.page_id} was superseded by {new or 'another'}{says}; searches now bring back only that one"


def _recalled(row: Movement, _: MemoryReader) -> str:
    score = row.detail.get("score")
    told = f" (score {score:.3f})" if isinstance(score, int | float) else ""
    return f"{row.page_id} was put behind the user's message unasked, {row.reason}{told}"


def _read(row: Movement, _: MemoryReader) -> str:
    where = f" from character {row.detail['offset']:,}" if row.detail.get("offset") else ""
    return f"{by(row.actor)} paged {row.page_id} in{where}, {row.tokens:,} tokens"


SENTENCES: dict[str, Callable[[Movement, MemoryReader], str]] = {
    "archive": _archived,
    "supersede": _superseded,
    "recall": _recalled,
    "page_in": _read,
    "evict": lambda row, _: f"{row.page_id} left the prompt with {row.tokens:,} tokens, because {row.reason}",
    "drop": lambda row, _: f"{row.page_id} was taken out of the prompt: {row.reason}",
    "forget": lambda row, _: f"{by(row.actor)} ended the fact {row.page_id}: {row.reason}",
    "pin": lambda row, _: f"{by(row.actor)} pinned {row.page_id} ({row.tokens:,} tokens), {row.reason}",
    "unpin": lambda row, _: f"{row.page_id} was unpinned: {row.reason}; it leaves with the next epoch",
    "page_out": lambda row, _: f"{by(row.actor)} moved it {row.reason} into the archive, as {row.page_id}",
    "spill": lambda row, _: (
        f"its part {row.page_id} was too large: its ends stayed ({row.tokens:,} tokens), the whole "
        f"is to be read as {row.page_id}, because {row.reason}"
    ),
    "purge": lambda row, _: f"{by(row.actor)} purged {row.page_id}: its text is gone for good",
    "done": lambda row, _: f"what {row.page_id} asked for was marked as done",
    "interrupted": lambda row, _: f"a call of {row.reason} in {row.page_id} was cut off and may have run",
}


def core(history: Sequence[CoreVersion], wanted: str) -> Iterator[Told]:
    """When a text came into a core block, and when it left it."""
    held = False
    for version in history:
        block = version.block
        holds = bool(wanted) and wanted in normal(block.value)
        if holds != held:
            verb = "wrote it into" if holds else "removed" if block.retired else "took it out of"
            text = f"{by(block.actor)} {verb} the core block {quoted(block.name)} (version {version.ordinal})"
            yield Told(block.at, step_of(version.step), "core", None, sentence(text))
        held = holds
