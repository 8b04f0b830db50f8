"""Measure the memory: `python -m tests.bench.bench_memory [turn archive search disk start]`

Every figure is a ratio of two sides that alternate in this process (or an absolute bound, where that was required),
the median of hundreds of rounds after a warm-up. Disk and clock are the machine's own: set TMPDIR to choose the disk.
Exits with 1 when a limit does not hold.

- turn: at 10,000 turns against at 10. With the default window the old agent's holds hundreds of turns and the young
  one's is nearly empty; the rounds are as many as the old one needs from one eviction to the next, so every fill of
  its window is among them. With a window that ten turns fill both evict every few turns, and only the age differs.
- archive: against one bare insert of the same text, committed as durably. Vectors are free. Two calls have no limit:
  with a key that another fact had and two tags, and with a look at the neighbours (a search).
- search: against a bare Chroma query for as many ids, of the same vectors in a graph of the same settings, and the
  embedding of its text by the default MiniLM.
- disk: what 1,000 short turns take, with the write-ahead log and without.
- start: importing pager, and opening a large agent, each in processes of its own, without Python's own start.
"""

import sqlite3
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from itertools import tee
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pager import Limits, Memory
from pager.tiers import default_embedder
from pager.vectors.chroma.collection import COLLECTION, Connection
from tests.bench import grown
from tests.bench.figures import Figure, pair, printed_by, run, size_mb, with_each
from tests.bench.grown import INSTRUCTIONS, Talk, archive_all, fill_log
from tests.bench.texts import Texts

OLD_TURNS, TURN_ROUNDS, WARM_UP = 10_000, 800, 20
SMALL_WINDOW_TOKENS = 1_400
ARCHIVE_ROUNDS = {100: 120, 10_000: 400}  # by facts. A hundred stay few enough to be searched without Chroma
MOST_ARCHIVE = 3.0
WAYS: dict[str, tuple[bool, Callable[[Memory, str], object], float | None]] = {  # with an embedder, the call, its limit
    "words only": (False, lambda memory, text: memory.archive(text), MOST_ARCHIVE),
    "with a vector": (True, lambda memory, text: memory.archive(text), MOST_ARCHIVE),
    "with a key and 2 tags": (
        True,
        lambda memory, text: memory.archive(text, key="seat", tags=["travel", "home"]),
        None,
    ),
    "and its neighbours": (True, lambda memory, text: memory.similar_facts(memory.archive(text).id), None),
}
LARGE, SEARCH_ROUNDS, SEARCH_LIMIT = 10_000, 300, 5
DISK_TURNS, STARTS = 1_000, 15
HEAVY = ("chromadb", "tiktoken", "onnxruntime", "numpy", "tokenizers")
IMPORT = """
import json, sys, time
start = time.perf_counter()
import pager
print(json.dumps({"import": time.perf_counter() - start, "loaded": sorted(sys.modules)}))
"""
OPEN = """
import json, sys, time
moments = [time.perf_counter()]
from pager import BlockSpec, Memory
moments.append(time.perf_counter())
core = {"human": BlockSpec(description="who the user is"), "plans": BlockSpec(description="what is to be done")}
memory = Memory.open(sys.argv[1], instructions=sys.argv[2], core=core)
moments.append(time.perf_counter())
memory.append_user("Good morning. What did I plan for today?")
moments.append(time.perf_counter())
request = memory.request()
moments.append(time.perf_counter())
names = ("import", "open", "append", "request")
seconds = dict(zip(names, (end - start for start, end in zip(moments, moments[1:]))))
print(json.dumps({"seconds": seconds, "messages": len(request.messages)}))
memory.append_assistant("You wanted to call the dentist.")
memory.close()
"""


def turn(work: Path) -> list[Figure]:
    plain = _two_ages(work / "plain", Limits.for_window(), "a turn at 10,000 turns against one at 10")
    small = Limits.for_window(SMALL_WINDOW_TOKENS)
    return [*plain, *_two_ages(work / "full", small, "... both in a window that 10 turns fill")]


def _two_ages(work: Path, limits: Limits, what: str) -> list[Figure]:
    def opened(directory: Path) -> Memory:
        return Memory.open(directory, limits=limits, instructions=INSTRUCTIONS, embedder=None)

    def start(directory: Path, opening: ExitStack) -> Callable[[], float]:
        memory = opening.enter_context(opened(directory))
        fill_log(memory, directory)  # as the old one's is: the two shall differ in nothing but their turns
        return Talk(memory, Texts(3)).turn

    with opened(work / "seed") as memory:
        Talk(memory, Texts(2)).turns_in_batches(grown.YOUNG)
    with opened(work / "old") as memory, closing(grown.Young(work / "seed", start)) as young:
        talk = Talk(memory, Texts(1))
        talk.turns_in_batches(OLD_TURNS)
        both = pair(talk.turn, young.turn, ("at 10,000", "at 10"), rounds=TURN_ROUNDS, warm_up=WARM_UP)
    return [both.medians(what, 1.2), both.means("... the mean of all, evictions among them")]


def archive(work: Path) -> list[Figure]:
    texts = Texts().facts(
        max(ARCHIVE_ROUNDS) + 2 * (WARM_UP + max(ARCHIVE_ROUNDS.values()))
    )  # each side takes new ones
    vectors = grown.text_like_vectors(texts)
    figures: list[Figure] = []
    for size, rounds in ARCHIVE_ROUNDS.items():
        for name, (is_embedded, way, limit) in WAYS.items():
            directory, new = work / f"{size} {name}", iter(texts[size:])
            with Memory.open(directory, embedder=vectors if is_embedded else None) as memory:
                archive_all(memory, texts[:size])
                memory.search_archive(texts[0])  # opens the index, if there is one
                fill_log(memory, directory)
                ours, bare = with_each(new, partial(way, memory)), with_each(new, _bare_insert(directory, texts[:size]))
                both = pair(ours, bare, ("archive()", "bare"), rounds=rounds, warm_up=WARM_UP)
            figures.append(both.medians(f"archive() at {size:,} facts, {name}, against a bare insert", limit))
    return figures


def _bare_insert(directory: Path, texts: list[str]) -> Callable[[str], object]:
    """A table of an id and a text in a database of its own, which commits at synchronous=FULL into a WAL."""
    connection = sqlite3.connect(directory / "bare.db", isolation_level=None)
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


def search(work: Path) -> list[Figure]:
    texts, embedder, directory = Texts(), default_embedder(), work / "searched"
    facts = texts.facts(LARGE)
    vectors = grown.embed_all(embedder, facts)
    cached = grown.CachedVectors(dict(zip(facts, vectors, strict=True)), embedder.fingerprint)
    with Memory.open(directory, embedder=cached) as memory:
        archive_all(memory, facts)
        memory.compact()
    questions, same_questions = tee(texts.questions(facts))
    with Memory.open(directory, embedder=embedder) as memory, closing(_BareChroma(work / "bare", vectors)) as bare:
        both = pair(
            with_each(questions, lambda text: memory.search_archive(text, limit=SEARCH_LIMIT)),
            with_each(same_questions, lambda text: bare.query(embedder.embed([text])[0], SEARCH_LIMIT)),
            ("search_archive", "bare"),
            rounds=SEARCH_ROUNDS,
            warm_up=WARM_UP,
        )
    return [both.medians("search_archive at 10,000 facts against embedding and a bare query", 2.0)]


class _BareChroma:
    """Flushed and opened again, as the other side's is."""

    def __init__(self, directory: Path, vectors: NDArray[np.float32]) -> None:
        directory.mkdir()
        with closing(Connection(directory)) as connection:
            collection = connection.create(COLLECTION)
            for start in range(0, len(vectors), 5_000):
                rows = vectors[start : start + 5_000]
                ids = [f"f{number}" for number in range(start, start + len(rows))]
                collection.add(ids, rows, documents=[f"fact {each}" for each in ids])
        self._connection = Connection(directory)
        self._collection = self._connection.get(COLLECTION)

    def query(self, vector: NDArray[np.float32], limit: int) -> object:
        return self._collection.query(query_embeddings=[vector], n_results=limit)

    def close(self) -> None:
        self._connection.close()


def disk(work: Path) -> list[Figure]:
    directory = work / "turns"
    with Memory.open(directory, limits=Limits.for_window(), instructions=INSTRUCTIONS, embedder=None) as memory:
        talk = Talk(memory)
        for _ in range(DISK_TURNS):
            talk.turn()
        text_bytes = sum(len(hit.text.encode()) for hit in memory.search_recall("", limit=2 * DISK_TURNS + 1))
        open_mb = size_mb(directory)
    measured = f"{text_bytes / DISK_TURNS:.0f} bytes of text per turn"
    return [
        Figure("1,000 short turns on disk, closed", measured, size_mb(directory), 3.0, " MB"),
        Figure("... while open, with the write-ahead log", measured, open_mb, None, " MB"),
    ]


def start(work: Path) -> list[Figure]:
    directory, texts = work / "large", Texts()
    facts = texts.facts(LARGE)
    with Memory.open(directory, instructions=INSTRUCTIONS, embedder=grown.text_like_vectors(facts)) as memory:
        archive_all(memory, facts)
        memory.compact()
        Talk(memory, texts).turns_in_batches(LARGE)
    imports, opened = _starts(IMPORT), _starts(OPEN, directory, INSTRUCTIONS)
    seconds = [each["seconds"] for each in opened]
    parts = ", ".join(f"{name} {1000 * median(each[name] for each in seconds):.0f} ms" for name in seconds[0])
    whole = median(sum(each.values()) for each in seconds)
    loaded = [name for name in HEAVY if name in imports[0]["loaded"]]
    what, measured = (
        "open 10,000 facts and 10,000 turns, to the first request",
        f"{parts}; {opened[0]['messages']} messages",
    )
    return [
        Figure("import pager", "", median(each["import"] for each in imports), 0.25, " s"),
        Figure("... modules among " + ", ".join(HEAVY), ", ".join(loaded) or "none loaded", len(loaded), 0, ""),
        Figure(what, measured, whole, 0.3, " s"),
    ]


def _starts(program: str, *arguments: object) -> list[Any]:
    """Without the first one, which only warms the disk's cache."""
    return [printed_by(program, *arguments) for _ in range(STARTS + 1)][1:]


if __name__ == "__main__":
    sys.exit(
        run(
            {"turn": turn, "archive": archive, "search": search, "disk": disk, "start": start}, sys.argv[1:], "chromadb"
        )
    )
