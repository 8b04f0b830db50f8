"""Ways to find: the simple ones that ours is compared with, and ours. Each gives places, best first."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pager import Memory
from pager.search.words import words
from pager.vectors.embedder import default_embedder
from tests.bench.question_sets import Told

DEEP = 100  # places a simple way gives
FUSED_BY = 60  # the usual constant of reciprocal rank fusion
Find = Callable[[str], list[int]]
Maker = Callable[[Told, Path, ExitStack], Find]
_EMBEDDED = 64


def words_alone(told: Told, place: Path, opened: ExitStack) -> Find:
    """SQLite's full-text search as it comes, with stems; where it is known, of who said it and when, too."""
    database = sqlite3.connect(":memory:")
    opened.callback(database.close)
    database.execute("CREATE VIRTUAL TABLE t USING fts5 (text, tokenize='porter unicode61 remove_diacritics 2')")
    database.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(_dated(told)))
    sql = f"SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT {DEEP}"

    def find(question: str) -> list[int]:
        asked = " OR ".join(f'"{word}"' for word in words(question))
        return [row[0] for row in database.execute(sql, (asked,))] if asked else []

    return find


def meaning_alone(told: Told, place: Path, opened: ExitStack) -> Find:
    embedder = default_embedder()
    rows = _embedded([f"{name}: {text}" for (name, _), text in zip(told.said, told.texts, strict=True)]
                     if told.said else told.texts)  # fmt: skip
    return lambda question: np.argsort(-(rows @ embedder.embed([question])[0]), kind="stable")[:DEEP].tolist()


def simply_fused(told: Told, place: Path, opened: ExitStack) -> Find:
    """Both by reciprocal ranks."""
    sides = [words_alone(told, place, opened), meaning_alone(told, place, opened)]

    def find(question: str) -> list[int]:
        scores: dict[int, float] = {}
        for side in sides:
            for rank, found in enumerate(side(question), start=1):
                scores[found] = scores.get(found, 0.0) + 1 / (FUSED_BY + rank)
        return sorted(scores, key=lambda found: -scores[found])

    return find


def ours(told: Told, place: Path, opened: ExitStack, *, tier: str, embedder: Any) -> Find:
    memory = opened.enter_context(Memory.open(place, embedder=embedder))
    if tier == "recall":
        memory.record_many(_turns(told))
    else:
        with memory.transaction():
            for text in told.texts:
                memory.archive(text)
    search = memory.search_recall if tier == "recall" else memory.search_archive
    search("warm up", limit=1)
    return lambda question: [int(hit.page_id[1:]) - 1 for hit in search(question, limit=DEEP)]


def _dated(told: Told) -> list[str]:
    if told.said is None:
        return told.texts
    days = [datetime.fromisoformat(at).strftime("%d %B %Y") for _, at in told.said]
    return [f"{day} {name}: {text}" for day, (name, _), text in zip(days, told.said, told.texts, strict=True)]


def _turns(told: Told) -> Iterator[dict[str, str]]:
    for place, (text, session) in enumerate(zip(told.texts, told.sessions, strict=True)):
        name, at = told.said[place] if told.said else (None, None)
        known = {"name": name, "at": at} if name and at else {}
        yield {"role": "user", "text": text, "session": session, **known}


SIMPLE: dict[str, Maker] = {
    "words alone": words_alone, "meaning alone": meaning_alone, "simply fused": simply_fused,
}  # fmt: skip


def all_of(tier: str) -> dict[str, Maker]:
    return {
        **SIMPLE,
        "ours, no embedder": partial(ours, tier=tier, embedder=None),
        "ours": partial(ours, tier=tier, embedder="default"),
    }


def _embedded(texts: Sequence[str]) -> NDArray[np.float32]:
    embedder = default_embedder()
    starts = range(0, len(texts), _EMBEDDED)
    return np.concatenate([embedder.embed(texts[start : start + _EMBEDDED]) for start in starts])
