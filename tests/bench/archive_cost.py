"""What archive() costs against one bare insert of the same text: both commit at synchronous=FULL, into a WAL.

The bare side is a table of an id and a text in a database of its own. Embedding is left out: the vectors were made
before, and are free. The plain call is what has to hold its limit, in an agent of few facts and in one of many:

- words only: no embedder;
- with a vector: as it is called by default.

Beside it stands what more costs: a key that another fact had and two tags, and a look at the neighbours (a search).
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
LIMIT = 3.0
Way = Callable[[Memory, str], object]
WAYS: dict[str, tuple[bool, Way, float | None]] = {  # whether there is an embedder, the call, its limit
    "words only": (False, lambda memory, text: memory.archive(text), LIMIT),
    "with a vector": (True, lambda memory, text: memory.archive(text), LIMIT),
    "with a key and 2 tags": (
        True,
        lambda memory, text: memory.archive(text, key="seat", tags=["travel", "home"]),
        None,
    ),
    "and its neighbours": (True, lambda memory, text: memory.similar_facts(memory.archive(text).id), None),
}


def figures(work: Path) -> list[Figure]:
    texts = Texts().facts(max(ROUNDS) + 2 * (WARM_UP + max(ROUNDS.values())))  # each side takes new ones
    known = text_like_vectors(texts)
    found: list[Figure] = []
    for size in ROUNDS:
        for name, (embedded, way, limit) in WAYS.items():
            measured = _measured(work / f"{size} {name}", texts, size, known if embedded else None, way)
            what = f"archive() at {size:,} facts, {name}, against a bare insert"
            found.append(Figure(what, measured.told("archive()", "bare"), measured.ratio, limit))
    return found


def _measured(directory: Path, texts: list[str], size: int, known: Known | None, way: Way) -> Pair:
    new = iter(texts[size:])
    with Memory.open(directory, embedder=known) as memory:
        archive_all(memory, texts[:size])
        memory.search_archive(texts[0])  # opens the index, if there is one
        fill_log(memory, directory)
        bare = _bare(directory / "bare.db", texts[:size])
        return pair(
            lambda: timed(partial(way, memory, next(new))),
            lambda: timed(partial(bare, next(new))),
            rounds=ROUNDS[size], warm_up=WARM_UP,
        )  # fmt: skip


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
