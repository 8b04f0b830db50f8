"""Ways to find: the simple ones that ours is compared with, and ours. Each gives places, best first."""

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pager import Memory
from pager.search.words import words
from pager.tiers import default_embedder
from tests.bench.grown import embed_all
from tests.bench.question_sets import QuestionSet

DEEP = 100  # places a simple way gives
FUSED_BY = 60  # the usual constant of reciprocal rank fusion
Find = Callable[[str], list[int]]
Maker = Callable[[QuestionSet, Path, ExitStack], Find]


def words_alone(asked: QuestionSet, place: Path, opened: ExitStack) -> Find:
    """SQLite's full-text search as it comes, with stems; where it is known, of who said it and when, too."""
    database = sqlite3.connect(":memory:")
    opened.callback(database.close)
    database.execute("CREATE VIRTUAL TABLE t USING fts5 (text, tokenize='porter unicode61 remove_diacritics 2')")
    texts = asked.texts
    if asked.said:
        days = [datetime.fromisoformat(at).strftime("%d %B %Y") for _, at in asked.said]
        texts = [f"{day} {name}: {text}" for day, (name, _), text in zip(days, asked.said, texts, strict=True)]
    database.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(texts))
    sql = f"SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT {DEEP}"

    def find(question: str) -> list[int]:
        query = " OR ".join(f'"{word}"' for word in words(question))
        return [row[0] for row in database.execute(sql, (query,))] if query else []

    return find


def meaning_alone(asked: QuestionSet, place: Path, opened: ExitStack) -> Find:
    embedder, texts = default_embedder(), asked.texts
    if asked.said:
        texts = [f"{name}: {text}" for (name, _), text in zip(asked.said, texts, strict=True)]
    rows = embed_all(embedder, texts)
    return lambda question: np.argsort(-(rows @ embedder.embed([question])[0]), kind="stable")[:DEEP].tolist()


def simply_fused(asked: QuestionSet, place: Path, opened: ExitStack) -> Find:
    """Both by reciprocal ranks."""
    sides = [words_alone(asked, place, opened), meaning_alone(asked, place, opened)]

    def find(question: str) -> list[int]:
        scores: dict[int, float] = {}
        for side in sides:
            for rank, found in enumerate(side(question), start=1):
                scores[found] = scores.get(found, 0.0) + 1 / (FUSED_BY + rank)
        return sorted(scores, key=lambda found: -scores[found])

    return find


def ours(asked: QuestionSet, place: Path, opened: ExitStack, *, tier: str, embedder: Any) -> Find:
    memory = opened.enter_context(Memory.open(place, embedder=embedder))
    if tier == "recall":
        search, places = memory.search_recall, record_texts(memory, asked)
    else:
        search, places = memory.search_archive, archive_texts(memory, asked.texts)
    search("warm up", limit=1)
    return lambda question: [places[hit.page_id] for hit in search(question, limit=DEEP)]


def record_texts(memory: Memory, asked: QuestionSet) -> dict[str, int]:
    """Record texts as messages. Return the place of each page."""
    messages = [
        {"role": "user", "text": text, "session": session}
        for text, session in zip(asked.texts, asked.sessions, strict=True)
    ]
    for message, (name, at) in zip(messages, asked.said or (), strict=False):
        message |= {"name": name, "at": at}
    return {page: place for place, page in enumerate(memory.record_many(messages))}


def archive_texts(memory: Memory, texts: list[str]) -> dict[str, int]:
    """Archive texts as facts. Return the place of each page: of a text that is there twice, the first."""
    places: dict[str, int] = {}
    with memory.transaction():
        for place, text in enumerate(texts):
            places.setdefault(memory.archive(text).id, place)
    return places


SIMPLE: dict[str, Maker] = {"words alone": words_alone, "meaning alone": meaning_alone, "simply fused": simply_fused}


def all_of(tier: str) -> dict[str, Maker]:
    return {
        **SIMPLE,
        "ours, no embedder": partial(ours, tier=tier, embedder=None),
        "ours": partial(ours, tier=tier, embedder="default"),
    }
