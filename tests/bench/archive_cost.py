"""What archive() costs against one bare insert of the same text: both commit at synchronous=FULL, into a WAL.

The bare side is a table of an id and a text in a database of its own. Embedding is left out: the vectors were made
before, and are free. Three ways to archive, each in an agent of few facts and one of many:

- words only: no embedder;
- with a vector: as archive() is called by default; its neighbours are searched for when somebody looks at them;
- and a look at its neighbours: the same and the search, with Chroma behind it once there are enough facts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pager import Memory
from tests.bench.figures import Figure, Pair, pair, timed
from tests.bench.grown import Known, archive_all, fill_log, text_like_vectors
from tests.bench.texts import Texts

ROUNDS = {100: 120, 10_000: 400}  # facts: rounds. A hundred stay few enough to be searched without Chroma
WARM_UP = 20
WAYS = {"words only": (False, 0), "with a vector": (True, 0), "and a look at its neighbours": (True, 3)}


def figures(work: Path) -> list[Figure]:
    texts = Texts().facts(max(ROUNDS) + 2 * (WARM_UP + max(ROUNDS.values())))  # each side takes new ones
    known = text_like_vectors(texts)
    found: list[Figure] = []
    for size in ROUNDS:
        for way, (vectors, neighbours) in WAYS.items():
            directory = work / f"{size} {way}"
            measured = _measured(directory, texts, size, known if vectors else None, neighbours)
            what = f"archive() at {size:,} facts, {way}, against a bare insert"
            # To look for neighbours is more than to archive: only reported.
            found.append(Figure(what, measured.told("archive()", "bare"), measured.ratio, None if neighbours else 3.0))
    return found


def _measured(directory: Path, texts: list[str], size: int, known: Known | None, neighbours: int) -> Pair:
    new = iter(texts[size:])
    with Memory.open(directory, embedder=known) as memory:
        archive_all(memory, texts[:size])
        if neighbours:
            memory.search_archive(texts[0])  # opens the index
        fill_log(memory, directory)
        bare = _bare(directory / "bare.db", texts[:size])
        return pair(
            lambda: timed(partial(_archive, memory, next(new), neighbours)),
            lambda: timed(partial(bare, next(new))),
            rounds=ROUNDS[size], warm_up=WARM_UP,
        )  # fmt: skip


def _archive(memory: Memory, text: str, neighbours: int) -> None:
    fact = memory.archive(text, tags=["travel"], neighbours=neighbours)
    if neighbours:
        _ = fact.neighbours


def _bare(path: Path, texts: list[str]) -> Callable[[str], object]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
    insert = "INSERT INTO facts (text) VALUES (?)"
    connection.execute("BEGIN")
    connection.executemany(insert, [(text,) for text in texts])
    connection.execute("COMMIT")
    for number in range(1_100):  # the log reaches its full length, as on the other side
        connection.execute("UPDATE facts SET text = ? WHERE id = 1", (f"version {number}",))
    return lambda text: connection.execute(insert, (text,))
