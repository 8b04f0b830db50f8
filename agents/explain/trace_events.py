"""The events in the life of a text as sentences: what happened, to which page, by whom, and why."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.explain import AnyMemory
from agents.explain.scores import rounded
from pager.clock import format_minute
from pager.inspect import CoreVersion, SaidPart, compose_accents, normalize_text
from pager.types import Fact, Movement, Residency

QUOTED_CHARS = 160
AROUND_CHARS = 60
MOST_SEARCHES = 400
MOST_WORDS = 8
MOST_HITS = 2  # of a search that are told with their scores
WORD = re.compile(r"\w{3,}")
ENDS = (".", *(f"{mark}\u201d" for mark in ".?!\u2026"))
PAGE_FIRST = re.compile(r"[sfx]\d+\b")
RESIDENCIES = {  # how a page is in a request -> the part of the window, and in words
    "step": ("steps", "a step of the conversation"),
    "request": ("request", "the request under way"),
    "pinned": ("pinned", "a pinned page"),
    "recalled": ("recalled", "a recalled page"),
    "paged_in": ("steps", "a page that was read"),
}


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One event. `step` is the newest step then, empty before the first; `text` is a sentence. `found` is set for a
    search: True if it found the page."""

    at: datetime
    step: str
    event: str
    page_id: str | None
    text: str
    found: bool | None = None


def said(reader: AnyMemory, page_id: str, parts: Sequence[SaidPart], wanted: str) -> TraceEvent:
    """Return how a step came to hold a text, with the words around it."""
    row = reader.inspect.step(page_id)
    who = "the user" if row.who == "user" else row.who
    if row.kind == "record":
        how = f"{page_id} was recorded from elsewhere: {who} said it"
    elif {part.slot for part in parts} == {"result"}:
        how = f"it came with a tool's result, in {page_id}"
    else:
        how = f"{'the agent' if row.kind == 'assistant' else who} said it, in {page_id}"
    turn = f", turn {row.turn}" if row.kind != "record" and row.turn != page_id else ""
    words = parts[0].text if parts and not row.purged else ""
    quote = ", and was purged since" if row.purged else ""
    if words:  # those around the text; the beginning if its place is not known
        line = compose_accents(" ".join(words.split()))
        place = max(0, line.casefold().find(wanted)) if wanted else 0
        start = max(0, place - AROUND_CHARS)
        end = min(len(line), place + len(wanted) + AROUND_CHARS)
        before, after = "\u2026" if start else "", "\u2026" if end < len(line) else ""
        quote = f": \u201c{before}{line[start:end]}{after}\u201d"
    return TraceEvent(row.at, page_id, "said", page_id, _sentence(f"{how}{turn}{quote}"))


def moved(reader: AnyMemory, page_id: str) -> Iterator[TraceEvent]:
    """Yield the movements of a page, in order."""
    for row in reader.ledger(page=page_id):
        write = SENTENCES.get(row.event)
        text = write(row, reader) if write else f"{row.event} of {row.page_id}: {row.reason}"
        yield TraceEvent(row.at, _shown_step(row.step), row.event, row.page_id, _sentence(text))


def has_ended(reader: AnyMemory, fact: Fact) -> bool:
    """Return True if a fact is over, whatever ended it. One that begins later is not."""
    return fact.valid_until is not None and fact.valid_until <= max(fact.valid_from, reader.inspect.present())


def expired(reader: AnyMemory, fact: Fact) -> Iterator[TraceEvent]:
    """Yield the end of a fact that came by itself. Nothing is written at that moment: the fact has had its end since it
    was stored."""
    if fact.valid_until is not None and fact.valid_until == fact.expires and has_ended(reader, fact):
        text = f"{fact.id} expired; searches find it for earlier moments alone"
        yield TraceEvent(fact.valid_until, "", "expire", fact.id, _sentence(text))


def left(reader: AnyMemory, residency: Residency) -> TraceEvent:
    """Return the end of a residency that was not that of a step: a step that leaves has its row in the ledger."""
    step = residency.until_step or ""
    why = f": {residency.reason}" if residency.reason else ""
    text = f"{residency.page_id} was no longer in the prompt as {RESIDENCIES[residency.how][1]}{why}"
    return TraceEvent(reader.inspect.step(step).at, step, "left", residency.page_id, _sentence(text))


def core_changes(history: Sequence[CoreVersion], wanted: str) -> Iterator[TraceEvent]:
    """Yield the versions of a core block with which a text entered or left it."""
    was_there = False
    for version in history:
        block = version.block
        is_there = bool(wanted) and wanted in normalize_text(block.value)
        if is_there != was_there:
            verb = "wrote it into" if is_there else "removed" if block.retired else "took it out of"
            text = f"{by(block.actor)} {verb} the core block {quoted(block.name)} (version {version.ordinal})"
            yield TraceEvent(block.at, _shown_step(version.step), "core", None, _sentence(text))
        was_there = is_there


def searches(reader: AnyMemory, texts: Mapping[str, str], subject: str) -> Iterator[TraceEvent]:
    """Yield the newest searches that found one of the pages, or asked for it and missed it, or asked for `subject`,
    oldest first. `texts` are those of the pages."""
    words = sorted(set(WORD.findall(subject)), key=len, reverse=True)[:MOST_WORDS]
    rows = reader.inspect.searches(list(texts), words, MOST_SEARCHES)
    queries = [str(row.detail.get("query", "")) for row in rows]
    asked_for = reader.inspect.asked_for(queries, [*texts.values(), subject])
    for row, query, asked in zip(rows, queries, asked_for, strict=True):
        found, missed = _ranked(row.detail.get("found")), _ranked(row.detail.get("missed"))
        wanted = {page for page, is_asked in zip(texts, asked, strict=False) if is_asked}
        found_here = [page for page in found if page in texts]
        missed_here = [page for page in missed if page in wanted]
        ordinals = {1: "1st", 2: "2nd", 3: "3rd"}
        ranks = {page: ordinals.get(rank, f"{rank}th") for rank, page in enumerate([*found, *missed], start=1)}
        results = [
            f"{page} came back {ranks[page]} of {len(found)}{_scores(found[page])}" for page in found_here[:MOST_HITS]
        ]
        if len(found_here) > MOST_HITS:
            results.append(f"so did {', '.join(found_here[MOST_HITS:])}")
        last = next(reversed(found.values()))[0] if found else 0.0
        for page in missed_here[: MOST_HITS - len(results)]:
            margin = f", {last - missed[page][0]:.2f} below the last that came back" if found else ""
            rank = f"{ranks[page]}, with {len(found)} asked for"
            results.append(f"{page} was missed: {rank}{margin}{_scores(missed[page])}")
        if not results:
            if not asked[-1]:
                continue  # it asked for something else
            results = [f"it was not among the {len(found) + len(missed)} best" if found else "nothing came back"]
        if why := row.detail.get("without_meaning"):
            results.append(f"words alone answered, for the embedder had failed ({str(why).rstrip('.')})")
        tier = {"archive": "archive", "memory": "memory"}.get(str(row.detail.get("tier")), "conversation")
        text = _sentence(f"{by(row.actor)} searched the {tier} for {quoted(query)}: {'; '.join(results)}")
        first = next(iter([*found_here, *missed_here]), None)
        yield TraceEvent(row.at, _shown_step(row.step), "search", first, text, found=bool(found_here))


def _ranked(rows: Any) -> dict[str, tuple[float, dict[str, float]]]:
    return {str(page): (float(score), dict(parts)) for page, score, parts in rows or ()}


def _scores(scored: tuple[float, Mapping[str, float]]) -> str:
    score, parts = rounded(*scored)
    shown = " + ".join(f"{name} {value:.2f}" for name, value in parts.items())
    return f" (score {score:.2f} = {shown})" if shown else f" (score {score:.2f})"


def _shown_step(step: str) -> str:
    return "" if step == "s0" else step


def _sentence(text: str) -> str:
    """Return a text with a full stop, and with a capital unless it begins with a page id."""
    text = text if PAGE_FIRST.match(text) else text[:1].upper() + text[1:]
    return text if text.endswith(ENDS) else f"{text}."


def by(actor: str) -> str:
    """Return an actor in words."""
    return {"agent": "the agent", "person": "a person", "pager": "the memory", "file": "a file"}.get(actor, actor)


def quoted(text: str) -> str:
    """Return a text in quotation marks, on one line and shortened."""
    line = " ".join(text.split())
    if len(line) > QUOTED_CHARS:
        line = f"{line[: QUOTED_CHARS - 1]}\u2026"
    return f"\u201c{line}\u201d"


def _archived(row: Movement, reader: AnyMemory) -> str:
    assert row.page_id
    fact = reader.fact(row.page_id)
    key = f" under the key {quoted(fact.key)}" if fact.key else ""
    replaced = f"; it superseded {fact.supersedes}" if fact.supersedes else ""
    text = "" if fact.purged else f": {quoted(fact.text)}"
    came = f", from {', '.join(map(str, fact.sources))}" if fact.via else ""
    until = f", to be true until {format_minute(fact.expires)}" if fact.expires else ""
    return f"{by(row.actor)} archived it as {row.page_id}{key}{came}{until}{replaced}{text}"


def _superseded(row: Movement, reader: AnyMemory) -> str:
    new, text = row.detail.get("by"), ""
    if isinstance(new, str):
        fact = reader.fact(new)
        text = "" if fact.purged else f", which says {quoted(fact.text)}"
    return f"{row.page_id} was superseded by {new or 'another'}{text}; searches now find only that one"


def _recalled(row: Movement, _: AnyMemory) -> str:
    return f"{row.page_id} was put behind the user's message unasked, {row.reason}{recalled_because(row)}"


def recalled_because(row: Movement) -> str:
    """Return why a page was put behind a message: how the message was judged, and the score of the page."""
    detail = row.detail
    if "needed" not in detail:  # an imported row may hold anything
        return ""
    nearest = {"cosine": "the nearest page has a cosine of", "coverage": "the best page holds a share of its words of"}
    judged = f"{nearest[detail['measure']]} {detail['value']:.2f}, and {detail['needed']:.2f} was needed"
    return f": {judged}{_scores((detail['score'], detail['parts']))}"


SENTENCES: dict[str, Callable[[Movement, AnyMemory], str]] = {
    "archive": _archived,
    "repeat": lambda row, _: f"{by(row.actor)} archived it again; it was there already",
    "supersede": _superseded,
    "recall": _recalled,
    "page_in": lambda row, _: (
        f"{by(row.actor)} paged {row.page_id} in"
        + (f" from character {row.detail['offset']:,}" if row.detail.get("offset") else "")
        + f", {row.tokens:,} tokens"
    ),
    "evict": lambda row, _: f"{row.page_id} left the prompt with {row.tokens:,} tokens, because {row.reason}",
    "branch": lambda row, _: f"the conversation went back behind {row.page_id or 'its beginning'}: {row.reason}",
    "drop": lambda row, _: f"{row.page_id} was taken out of the prompt: {row.reason}",
    "reopen": lambda row, _: f"{row.page_id} is true as before: {row.reason}",
    "sleep": lambda row, _: f"{row.actor}: {row.reason}",
    "restore": lambda row, _: f"{row.page_id} says again what {row.detail.get('of')} said, because {row.reason}",
    "end": lambda row, _: f"{row.page_id} ends again when it did before, because {row.reason}",
    "source": lambda row, _: f"{row.page_id} lost a source: {row.reason}",
    "withdraw": lambda row, _: f"{by(row.actor)} withdrew the turn of {row.page_id}: no search finds it any more",
    "forget": lambda row, _: (
        f"{by(row.actor)} {'took the message' if row.detail.get('session') else 'ended the fact'} "
        f"{row.page_id}{' back' if row.detail.get('session') else ''}: {row.reason}"
    ),
    "pin": lambda row, _: f"{by(row.actor)} pinned {row.page_id} ({row.tokens:,} tokens), {row.reason}",
    "unpin": lambda row, _: f"{row.page_id} was unpinned: {row.reason}; it leaves with the next epoch",
    "page_out": lambda row, _: f"{by(row.actor)} moved it {row.reason} into the archive, as {row.page_id}",
    "spill": lambda row, _: (
        f"its part {row.page_id} was too large: its ends stayed ({row.tokens:,} tokens), "
        f"the whole is the page {row.page_id}, because {row.reason}"
    ),
    "purge": lambda row, _: f"{by(row.actor)} purged {row.page_id}: its text is gone for good",
    "done": lambda row, _: f"the request in {row.page_id} was marked as done",
    "interrupted": lambda row, _: f"a call of {row.reason} in {row.page_id} was cut off and may have run",
}
