"""What a search of turns costs against a bare full-text match of the same words, and what a new turn's words cost.

The bare side is a second connection to the same database that asks the same index of words for its ten best by its own
rank. Both get the same questions in turns: as people ask them, and of three words that hardly any turn holds. With the
default embedder most of a search is the embedding of its question, which is told by itself and not in the ratios: it
alone takes longer than what is compared. The rest looks at every vector, however few turns hold the words: where those
are rare there is no limit. The turns' own vectors stand there by chance, which costs the same.

Turns are indexed one at a time in a transaction of many, so that what is compared is the work, and not the disk's own
time for a commit.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, tee
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np

from pager import Memory
from pager.search.words import words
from pager.vectors.embedder import Embedder, default_embedder
from tests.bench.figures import Figure, in_turns, pair, timed
from tests.bench.texts import Texts

SIZES = {10_000: 5.0, 100_000: 15.0}  # turns: how many times a bare match
SMALL = 1_000
NAMES = ("Ana", "Ben")
PER_DAY = 40
ROUNDS, WARM_UP, LIMIT = 200, 20, 10
RECORDED, RECORDED_AT_ONCE = 30, 100
RARE = range(2, 13)  # how many turns hold a rare word


def figures(work: Path) -> list[Figure]:
    work.mkdir(parents=True, exist_ok=True)
    found = [figure for turns, limit in SIZES.items() for figure in _searches(work / str(turns), turns, limit)]
    return [*found, _new_turn(work)]


class _ByChance:
    """Vectors without a meaning, under the name of the default embedder."""

    def __init__(self) -> None:
        known = default_embedder()
        self.fingerprint, self.dimension = known.fingerprint, known.dimension
        self._random = np.random.default_rng(1)

    def embed(self, texts: Sequence[str]) -> Any:
        return self._random.standard_normal((len(texts), self.dimension), dtype=np.float32)


class _Timed:
    """The default embedder, and the seconds that it took."""

    def __init__(self) -> None:
        self._embedder = default_embedder()
        self.fingerprint, self.dimension = self._embedder.fingerprint, self._embedder.dimension
        self.calls: list[float] = []

    def embed(self, texts: Sequence[str]) -> Any:
        start = time.perf_counter()
        rows = self._embedder.embed(texts)
        self.calls.append(time.perf_counter() - start)
        return rows


def _grown(directory: Path, turns: int, texts: Texts, embedder: Embedder | None = None) -> list[str]:
    said = [texts.said(2) for _ in range(turns)]
    with Memory.open(directory, embedder=embedder) as memory:
        memory.record_many(
            {"role": "user", "name": NAMES[number % 2], "text": text, "at": _day(number // PER_DAY)}
            for number, text in enumerate(said)
        )
    return said


def _day(number: int) -> str:
    return f"{2000 + number // 336}-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}"


def _searches(directory: Path, turns: int, limit: float) -> Iterator[Figure]:
    texts = Texts()
    said = _grown(directory, turns, texts, _ByChance())
    kinds = {"a question": lambda: texts.questions(said), "three rare words": lambda: _rare(said)}
    timed_embedder = _Timed()
    for embedder, told in ((None, "no embedder"), (timed_embedder, "MiniLM")):
        with Memory.open(directory, embedder=embedder) as memory:
            first = timed(partial(memory.search_recall, "the first one reads what is known of all turns"))
            for kind, questions in kinds.items():
                what = f"search_recall at {turns:,} turns, {kind}, {told}, against a bare full-text match"
                is_limited = embedder is None or kind == "a question"
                yield _search(memory, directory, questions(), what, limit if is_limited else None, embedder)
        yield Figure(f"the first search of a process at {turns:,} turns, {told}", "", first, None, " s")
    yield Figure("beside that, embedding the question", "MiniLM", 1000 * median(timed_embedder.calls), None, " ms")


def _rare(said: Sequence[str]) -> Iterator[str]:
    """The same ones every time."""
    random, held = Random(1), Counter(word for text in said for word in set(text.lower().split()))
    words_held = [word for word, turns in held.items() if turns in RARE and word.isalpha()]
    while True:
        yield " ".join(random.sample(words_held, 3))


def _search(
    memory: Memory, directory: Path, questions: Iterator[str], what: str, limit: float | None, embedder: _Timed | None
) -> Figure:  # fmt: skip
    asked, asked_too = tee(questions)
    bare = sqlite3.connect(directory / "pager.db")
    both = pair(
        _each(asked, partial(memory.search_recall, limit=LIMIT), embedder.calls if embedder else []),
        _each(asked_too, partial(_match, bare)), rounds=ROUNDS, warm_up=WARM_UP,
    )  # fmt: skip
    bare.close()
    return Figure(what, both.told("search_recall", "bare"), both.ratio, limit)


def _match(database: sqlite3.Connection, question: str) -> object:
    asked = " OR ".join(f'"{word}"' for word in words(question))
    sql = f"SELECT rowid, rank FROM said_words WHERE said_words MATCH ? ORDER BY rank LIMIT {LIMIT}"
    return database.execute(sql, (asked,)).fetchall()


def _each(
    questions: Iterator[str], ask: Callable[[str], object], apart: Sequence[float] = ()
) -> Callable[[], float]:  # fmt: skip
    """The seconds of the next question, without what is counted `apart` meanwhile."""

    def ask_next() -> float:
        before = len(apart)
        seconds = timed(partial(ask, next(questions)))
        return seconds - sum(apart[before:])

    return ask_next


def _new_turn(work: Path) -> Figure:
    """The same new turns in a small and in a large memory, in turns."""
    texts, numbers = Texts(), count()
    large = work / str(max(SIZES))
    _grown(work / str(SMALL), SMALL, texts)
    new = [[texts.said(2) for _ in range(RECORDED_AT_ONCE)] for _ in range(RECORDED + WARM_UP)]
    with Memory.open(work / str(SMALL), embedder=None) as few, Memory.open(large, embedder=None) as many:

        def record(memory: Memory, said: Iterator[list[str]]) -> float:
            turns = [{"role": "user", "name": NAMES[next(numbers) % 2], "text": text} for text in next(said)]
            return timed(partial(memory.record_many, turns))

        sides = [partial(record, memory, iter(new)) for memory in (many, few)]
        in_many, in_few = in_turns(*sides, rounds=RECORDED, warm_up=WARM_UP)
    ratio = sum(in_many) / sum(in_few)  # of the sums: merging the index is dear and rare
    per_turn = [1000 * sum(side) / (RECORDED * RECORDED_AT_ONCE) for side in (in_many, in_few)]
    what = f"a new turn at {max(SIZES):,} turns against at {SMALL:,}"
    return Figure(what, f"{per_turn[0]:.3f} ms at {max(SIZES):,}, {per_turn[1]:.3f} ms at {SMALL:,}", ratio, 1.3)
