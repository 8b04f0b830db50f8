"""The searches in the life of a text, read from the ledger: those that found it, those that just missed it, and those
that used its words and did not find it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.explain import AnyMemory
from agents.explain.trace_events import TraceEvent, by, quoted, sentence, shown_step
from pager.inspect import normal
from pager.types import Movement

MOST_SEARCHES = 1_000
MOST_WORDS = 8
WORD = re.compile(r"\w{3,}")
Ranked = Mapping[str, tuple[float, Mapping[str, float]]]  # page -> score and its parts, best first


def searches(reader: AnyMemory, pages: Sequence[str], subject: str) -> Iterator[TraceEvent]:
    """Yield the newest searches that found or missed one of the pages, or asked for `subject`, oldest first."""
    words = sorted(set(WORD.findall(subject)), key=len, reverse=True)[:MOST_WORDS]
    for row in reader.inspect.searches(pages, words, MOST_SEARCHES):
        if event := _event(row, pages, subject):
            yield event


def _event(row: Movement, pages: Sequence[str], subject: str) -> TraceEvent | None:
    """Return what one search meant for these pages, if anything."""
    found, missed = _ranked(row.detail.get("found")), _ranked(row.detail.get("missed"))
    query = str(row.detail.get("query", ""))
    found_here = [page for page in found if page in pages]
    missed_here = [page for page in missed if page in pages]
    results = [
        f"{page} came back {_ordinal(list(found).index(page) + 1)} of {len(found)}{_scores(found[page])}"
        for page in found_here
    ]
    results += [_missed(found, missed, page) for page in missed_here]
    if not results:
        asked = WORD.findall(normal(query))
        if not asked or 2 * sum(word in subject for word in asked) < len(asked):
            return None  # it asked for something else
        results = [f"it was not among the {len(found) + len(missed)} best" if found else "nothing came back"]
    if why := row.detail.get("without_meaning"):
        results.append(f"words alone answered, for the embedder had failed ({str(why).rstrip('.')})")
    tier = "archive" if row.detail.get("tier") == "archive" else "conversation"
    text = sentence(f"{by(row.actor)} searched the {tier} for {quoted(query)}: {'; '.join(results)}")
    page = next(iter([*found_here, *missed_here]), None)
    return TraceEvent(row.at, shown_step(row.step), "search", page, text, found=bool(found_here))


def _ranked(rows: Any) -> Ranked:
    return {str(page): (float(score), dict(parts)) for page, score, parts in rows or ()}


def _missed(found: Ranked, missed: Ranked, page: str) -> str:
    rank = _ordinal(len(found) + list(missed).index(page) + 1)
    margin = ""
    if found:
        last = list(found.values())[-1][0]
        margin = f", {last - missed[page][0]:.3f} below the last that came back"
    return f"{page} was missed: {rank}, with {len(found)} asked for{margin}{_scores(missed[page])}"


def _ordinal(rank: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(rank, f"{rank}th")


def _scores(scored: tuple[float, Mapping[str, float]]) -> str:
    score, parts = scored
    shown = ", ".join(f"{name} {value:.3g}" for name, value in parts.items())
    return f" (score {score:.3g}: {shown})" if shown else f" (score {score:.3g})"
