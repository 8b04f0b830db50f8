"""The searches in the life of a text: those that brought it back, those that just missed it and by how much, and those
that asked for it in its own words and did not get it. Read from the ledger alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.explain.trace_parts import Told
from agents.explain.trace_words import by, quoted, sentence, step_of
from pager.inspect.lists import normal
from pager.reader import MemoryReader
from pager.types import Movement

MOST_SEARCHES = 1_000
MOST_WORDS = 8
WORD = re.compile(r"\w{3,}")
ORDINALS = {1: "1st", 2: "2nd", 3: "3rd"}


def searches(reading: MemoryReader, pages: Sequence[str], subject: str) -> Iterator[Told]:
    """Oldest first, at most the newest `MOST_SEARCHES`. `subject` is the text, as `normal` gives it."""
    words = sorted(set(WORD.findall(subject)), key=len, reverse=True)[:MOST_WORDS]
    for row in reading.inspect.searches(pages, words, MOST_SEARCHES):
        told = tell(row, pages, subject)
        if told:
            yield told


def tell(row: Movement, pages: Sequence[str], subject: str) -> Told | None:
    """What one search meant for these pages, if anything."""
    found, missed = _ranked(row.detail.get("found")), _ranked(row.detail.get("missed"))
    tier = "archive" if row.detail.get("tier") == "archive" else "conversation"
    asked = f"{by(row.actor)} searched the {tier} for {quoted(str(row.detail.get('query', '')))}"
    back = [page for page in found if page in pages]
    near = [page for page in missed if page in pages]
    lines = [f"{page} came back {_rank(found, page)} of {len(found)}{_scores(found[page])}" for page in back]
    lines += [_missed(found, missed, page) for page in near]
    if not lines and not _asks_for(str(row.detail.get("query", "")), subject):
        return None
    if not lines:
        lines = [f"it was not among the {len(found) + len(missed)} best" if found else "nothing came back"]
    if why := row.detail.get("without_meaning"):
        lines.append(f"words alone answered, for the embedder had failed ({str(why).rstrip('.')})")
    page = (back or near or [None])[0]
    return Told(row.at, step_of(row.step), "search", page, sentence(f"{asked}: {'; '.join(lines)}"), found=bool(back))


def _missed(found: Mapping[str, Any], missed: Mapping[str, Any], page: str) -> str:
    rank = len(found) + list(missed).index(page) + 1
    margin = ""
    if found:
        last = list(found.values())[-1][0]
        margin = f", {last - missed[page][0]:.3f} below the last that came back"
    return f"{page} was missed: {_ordinal(rank)}, with {len(found)} asked for{margin}{_scores(missed[page])}"


def _ranked(rows: Any) -> dict[str, tuple[float, Mapping[str, float]]]:
    """page -> (score, its parts), best first."""
    return {str(page): (float(score), dict(parts)) for page, score, parts in rows or ()}


def _rank(found: Mapping[str, Any], page: str) -> str:
    return _ordinal(list(found).index(page) + 1)


def _ordinal(rank: int) -> str:
    return ORDINALS.get(rank, f"{rank}th")


def _scores(known: tuple[float, Mapping[str, float]]) -> str:
    score, parts = known
    told = ", ".join(f"{name} {value:.3g}" for name, value in parts.items())
    return f" (score {score:.3g}: {told})" if told else f" (score {score:.3g})"


def _asks_for(query: str, subject: str) -> bool:
    """Whether at least half of the query's words stand in the subject."""
    words = WORD.findall(normal(query))
    return bool(words) and 2 * sum(word in subject for word in words) >= len(words)
