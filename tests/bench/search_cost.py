"""What search_archive costs at 10,000 facts against a bare Chroma query and the embedding of its text.

Both sides hold the same vectors in a flushed HNSW graph of the same settings, and embed each question with the default
MiniLM; the same question goes to both in turns. The bare side asks Chroma for as many ids as the search answers with,
and for nothing else: no texts, no words, no validity, no ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import tee
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pager import Memory
from pager.vectors.chroma.client import Collection
from pager.vectors.embedder import Embedder, default_embedder
from tests.bench.figures import Figure, Timed, pair, timed
from tests.bench.grown import Known, archive_all
from tests.bench.texts import Texts

FACTS, LIMIT = 10_000, 5
ROUNDS, WARM_UP = 300, 20
EMBEDDED_AT_ONCE = 256


def figures(work: Path) -> list[Figure]:
    texts = Texts()
    facts = texts.facts(FACTS)
    embedder = default_embedder()
    vectors = _embedded(embedder, facts)
    directory = work / "searched"
    with Memory.open(directory, embedder=Known(dict(zip(facts, vectors, strict=True)), embedder.fingerprint)) as memory:
        archive_all(memory, facts)
        memory.compact()
    bare = _bare(work / "bare", vectors)
    asked, asked_too = tee(texts.questions(facts))
    with Memory.open(directory, embedder=embedder) as memory:
        whole = pair(
            _each(asked, lambda text: memory.search_archive(text, limit=LIMIT)),
            _each(asked_too, lambda text: bare.query(embedder.embed([text])[0], LIMIT)),
            rounds=ROUNDS, warm_up=WARM_UP,
        )  # fmt: skip
    bare.close()
    return [
        Figure(
            "search_archive at 10,000 facts against embedding and a bare query",
            whole.told("search_archive", "bare"),
            whole.ratio,
            2.0,
        )
    ]


def _each(questions: Iterator[str], ask: Callable[[str], object]) -> Timed:
    return lambda: timed(partial(ask, next(questions)))


def _embedded(embedder: Embedder, texts: list[str]) -> NDArray[np.float32]:
    starts = range(0, len(texts), EMBEDDED_AT_ONCE)
    return np.concatenate([embedder.embed(texts[start : start + EMBEDDED_AT_ONCE]) for start in starts])


def _bare(directory: Path, vectors: NDArray[np.float32]) -> Collection:
    """Flushed and opened again, as the other side's is."""
    directory.mkdir()
    collection = Collection(directory, create=True)
    collection.upsert(range(1, len(vectors) + 1), vectors)
    collection.count()
    collection.close()
    return Collection(directory)
