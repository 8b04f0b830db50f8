"""Measure a search of messages against a bare full-text match of the same words, and what indexing a new one costs.

The bare side is a second connection to the same database that asks the same index of words for its ten best by its own
rank. Both get the same questions alternately: as people ask them, and of three words that hardly any message holds.
With the default embedder most of a search is the embedding of its question, which is reported by itself and not in the
ratios. The rest looks at every vector, however few messages hold the words: where those are rare there is no limit. The
messages' own vectors are random, which costs the same. What the comparison of word pieces adds to a search is measured
by two readers of one memory; the embedder of one has no token vectors. Messages are indexed one at a time in a
transaction of many, so that the work is compared, and not the disk's own time for a commit. What word pieces add to the
embedding of a message is measured against the model's run and a mean. The bytes on disk are those of the five talks
(`question_sets.talks`), of which a message has 133 bytes of text, with words, vectors and all else.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import tee
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np

from pager import Memory, MemoryReader
from pager.search.words import words
from pager.vectors import minilm, quantized
from pager.vectors.embedder import Embedder, TokenVectors
from pager.vectors.embedding import AT_ONCE
from pager.vectors.minilm import MiniLM
from pager.vectors.quantized import TOKEN_DIMENSION
from tests.bench import question_sets
from tests.bench.figures import Figure, Timed, alternately, pair, size_mb, timed, with_each
from tests.bench.finders import record_texts
from tests.bench.texts import Texts

SIZES = {10_000: 7.0, 100_000: 15.0}  # messages: how many times a bare match
PIECES = {10_000: 1.25}  # messages: how many times a search that compares no word pieces
NEW, EMBEDDED, KILOBYTES = 1.2, 1.15, 1.7  # a new message, embedding one, one on disk
SMALL, LARGE = 1_000, 100_000
NAMES = ("Ana", "Ben")
PER_DAY = 40
ROUNDS, WARM_UP, LIMIT = 200, 20, 10
RECORDED, RECORDED_AT_ONCE = 30, 100
RARE = range(2, 13)  # how many messages hold a rare word
MATCH = f"SELECT rowid, rank FROM said_words WHERE said_words MATCH ? ORDER BY rank LIMIT {LIMIT}"


def figures(work: Path) -> list[Figure]:
    work.mkdir(parents=True, exist_ok=True)
    figures = [figure for size, limit in SIZES.items() for figure in _searches(work / str(size), size, limit)]
    return [*figures, _new_message(work), _embedding(), _on_disk(work / "talks")]


class _RandomVectors:
    """Vectors without a meaning, under the name of the default embedder."""

    def __init__(self) -> None:
        default = MiniLM()
        self.fingerprint, self.dimension = default.fingerprint, default.dimension
        self.token_fingerprint = default.token_fingerprint
        self._random = np.random.default_rng(1)

    def embed(self, texts: Sequence[str]) -> Any:
        return self._random.standard_normal((len(texts), self.dimension), dtype=np.float32)

    def embed_tokens(self, texts: Sequence[str]) -> tuple[Any, list[TokenVectors]]:
        return self.embed(texts), [self._tokens(text.split()) for text in texts]

    def _tokens(self, words: list[str]) -> TokenVectors:
        rows = self._random.standard_normal((len(words), TOKEN_DIMENSION), dtype=np.float32)
        return TokenVectors(words, rows / np.linalg.norm(rows, axis=1, keepdims=True))


class _Timed:
    """The default embedder, and the seconds that it took."""

    def __init__(self) -> None:
        self._embedder = MiniLM()
        self.fingerprint, self.dimension = self._embedder.fingerprint, self._embedder.dimension
        self.token_fingerprint = self._embedder.token_fingerprint
        self.calls: list[float] = []

    def embed(self, texts: Sequence[str]) -> Any:
        return self.embed_tokens(texts)[0]

    def embed_tokens(self, texts: Sequence[str]) -> tuple[Any, list[TokenVectors]]:
        found: list[tuple[Any, list[TokenVectors]]] = []
        self.calls.append(timed(lambda: found.append(self._embedder.embed_tokens(texts))))
        return found[0]


class _WithoutTokens:
    """The default embedder without its token vectors."""

    def __init__(self) -> None:
        self._embedder = MiniLM()
        self.fingerprint, self.dimension, self.embed = MiniLM.fingerprint, MiniLM.dimension, self._embedder.embed


def _grow(directory: Path, size: int, texts: Texts, embedder: Embedder | None = None) -> list[str]:
    messages = [texts.said(2) for _ in range(size)]
    with Memory.open(directory, embedder=embedder) as memory:
        memory.record_many(
            {"role": "user", "name": NAMES[number % 2], "text": text, "at": _day(number // PER_DAY)}
            for number, text in enumerate(messages)
        )
    return messages


def _day(number: int) -> str:
    return f"{2000 + number // 336}-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}"


def _searches(directory: Path, size: int, limit: float) -> Iterator[Figure]:
    texts = Texts()
    messages = _grow(directory, size, texts, _RandomVectors())
    kinds = {"a question": lambda: texts.questions(messages), "three rare words": lambda: _rare(messages)}
    embedder = _Timed()
    for is_embedded, name in ((False, "no embedder"), (True, "MiniLM")):
        with (
            Memory.open(directory, embedder=embedder if is_embedded else None) as memory,
            closing(sqlite3.connect(directory / "pager.db")) as database,
        ):
            first = timed(memory.search_recall, "the first one reads all vectors")
            for kind, questions in kinds.items():
                same = tee(questions())
                search = with_each(same[0], partial(memory.search_recall, limit=LIMIT))
                sides = _without(embedder.calls, search), with_each(same[1], partial(_match, database))
                both = pair(*sides, ("search_recall", "bare"), rounds=ROUNDS, warm_up=WARM_UP)
                what = f"search_recall at {size:,} messages, {kind}, {name}, against a bare full-text match"
                yield both.medians(what, None if is_embedded and kind != "a question" else limit)
        yield Figure(f"the first search of a process at {size:,} messages, {name}", "", first, None, " s")
    yield Figure("beside that, embedding the question", "MiniLM", 1000 * median(embedder.calls), None, " ms")
    with (
        MemoryReader.open(directory, embedder="default") as reader,
        MemoryReader.open(directory, embedder=_WithoutTokens()) as plain,
    ):
        same = tee(texts.questions(messages))
        with_pieces = with_each(same[0], partial(reader.search_recall, limit=LIMIT))
        without = with_each(same[1], partial(plain.search_recall, limit=LIMIT))
        both = pair(with_pieces, without, ("with word pieces", "without"), rounds=ROUNDS, warm_up=WARM_UP)
        what = f"search_recall at {size:,} messages, embedding included, with word pieces against without"
        yield both.medians(what, PIECES.get(size))


def _rare(messages: Sequence[str]) -> Iterator[str]:
    """The same ones every time."""
    random, holding = Random(1), Counter(word for text in messages for word in set(text.lower().split()))
    rare_words = [word for word, count in holding.items() if count in RARE and word.isalpha()]
    while True:
        yield " ".join(random.sample(rare_words, 3))


def _match(database: sqlite3.Connection, question: str) -> object:
    return database.execute(MATCH, (" OR ".join(f'"{word}"' for word in words(question)),)).fetchall()


def _without(calls: Sequence[float], side: Timed) -> Timed:
    """The side's seconds, but for those of the calls that it makes."""

    def seconds() -> float:
        before = len(calls)
        return side() - sum(calls[before:])

    return seconds


def _new_message(work: Path) -> Figure:
    """The same new messages in a small and in a large memory, alternately."""
    texts = Texts()
    _grow(work / str(SMALL), SMALL, texts)
    new = [
        [{"role": "user", "name": NAMES[number % 2], "text": texts.said(2)} for number in range(RECORDED_AT_ONCE)]
        for _ in range(RECORDED + WARM_UP)
    ]
    with (
        Memory.open(work / str(SMALL), embedder=None) as small,
        Memory.open(work / str(LARGE), embedder=None) as large,
    ):
        sides = [with_each(iter(new), memory.record_many) for memory in (large, small)]
        in_large, in_small = map(sum, alternately(*sides, rounds=RECORDED, warm_up=WARM_UP))
    per_message = [1000 * seconds / (RECORDED * RECORDED_AT_ONCE) for seconds in (in_large, in_small)]
    measured = f"{per_message[0]:.3f} ms at {LARGE:,}, {per_message[1]:.3f} ms at {SMALL:,}"
    ratio = in_large / in_small  # of the sums: merging the index is dear and rare
    return Figure(f"a new message at {LARGE:,} messages against at {SMALL:,}", measured, ratio, NEW)


class _Means:
    """The default embedder as it is without word pieces: a run of the model, and its mean."""

    def __init__(self) -> None:
        self._loaded = MiniLM()._load()

    def embed(self, texts: Sequence[str]) -> None:
        pieces = [self._loaded.tokenizer.encode(text).ids for text in texts]
        for rows in minilm._equally_long(pieces):
            ids = np.array([pieces[row] for row in rows], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            means = self._loaded.session.run(None, inputs)[0].mean(axis=1)
            quantized.quantize(means / np.linalg.norm(means, axis=1, keepdims=True))


def _embedding() -> Figure:
    """Embed the talks in batches as they are embedded in the background, to what is stored."""
    texts = [text for talk in question_sets.talks() for text in talk.texts]
    batches = [texts[start : start + AT_ONCE] for start in range(0, len(texts) - AT_ONCE, AT_ONCE)]
    embedder, means = MiniLM(), _Means()

    def embed(batch: Sequence[str]) -> None:
        vectors, tokens = embedder.embed_tokens(batch)
        quantized.quantize(vectors)
        for each in tokens:
            quantized.pack(each)

    sides = with_each(iter(batches), embed), with_each(iter(batches), means.embed)
    both = pair(*sides, ("with word pieces", "without"), rounds=len(batches) - 2, warm_up=2)
    return both.rounds(f"embedding {AT_ONCE} messages, with word pieces against without", EMBEDDED)


def _on_disk(directory: Path) -> Figure:
    count = 0
    with Memory.open(directory) as memory:
        for talk in question_sets.talks():
            count += len(record_texts(memory, talk))
        assert memory.count_unembedded() == 0
    size_kb = 1000 * size_mb(directory) / count
    return Figure("a message on disk, closed", f"{count:,} messages of five talks", size_kb, KILOBYTES, " KB")
