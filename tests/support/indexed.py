"""Memories with a vector index, the processes that build it, and what is found by meaning alone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pager import Memory, MemoryReader
from pager.clock import to_micros
from pager.store.rows import FactFilter
from pager.vectors.chroma.collection import LocalCollection, ServerCollection
from pager.vectors.embedder import Meaning
from pager.vectors.indexing import Indexing
from tests.support.clock import START, HandClock
from tests.support.embedders import Words, vector

if TYPE_CHECKING:
    from pager.vectors.facts import FactVectors
    from pager.vectors.index import Vectors

FACTS = 300
_days = count()


def text(number: int) -> str:
    return f"word{number} stands in fact number{number}"


def open_memory(directory: Path, **changes: Any) -> Memory:
    """Each opening is a day after the one before."""
    return Memory.open(directory, **{"embedder": Words(), "clock": next_day(), **changes})


def open_reader(directory: Path, **changes: Any) -> MemoryReader:
    return MemoryReader.open(directory, **{"embedder": Words(), "clock": next_day(), **changes})


def next_day() -> HandClock:
    return HandClock(START + timedelta(days=next(_days)))


def archive(memory: Memory, first: int, last: int, **how: Any) -> None:
    with memory.transaction():
        for number in range(first, last + 1):
            memory.archive(text(number), **how)


def vectors_of(memory: Memory | MemoryReader) -> FactVectors:
    assert memory._tiers.archive.vectors is not None
    return memory._tiers.archive.vectors


def indexing_of(memory: Memory | MemoryReader) -> Indexing:
    return vectors_of(memory).indexing


def nearest(memory: Memory | MemoryReader, wanted: str | Vectors, limit: int = 10) -> list[tuple[int, float]]:
    """What is true now and nearest in meaning, as a search takes it."""
    facts = vectors_of(memory)
    asked = vector(facts, wanted) if isinstance(wanted, str) else wanted
    now = FactFilter(to_micros(memory._tiers.archive.present()))
    return list(memory._tiers.archive._by_meaning(facts, asked, now, limit).items())[:limit]


def lost(memory: Memory | MemoryReader, numbers: Iterable[int] = range(1, FACTS + 1, 7)) -> list[int]:
    """Facts that are not the nearest to their own text."""
    return [each for each in numbers if [found for found, _ in nearest(memory, text(each), 1)] != [each]]


def build(memory: Memory) -> None:
    """Embed and build all that is due."""
    while memory.embed_pending():
        pass


def is_asked(memory: Memory | MemoryReader) -> bool:
    """Return True if searches ask a generation now."""
    return indexing_of(memory).open() is not None


def told(memory: Memory) -> list[str]:
    """What the ledger says of the index, oldest first."""
    return [row.reason for row in memory.ledger(events=["index"])]


def files_in(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} if directory.is_dir() else set()


def unit_vectors(count: int, dimension: int = 16, *, seed: int = 0) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def store_vectors(memory: Memory, vectors: Vectors, texts: Sequence[str], key: str | None = None) -> None:
    """Archive texts with vectors of their own."""
    facts = vectors_of(memory)
    with memory.transaction():
        facts.embedding.embed_all(texts[:1])  # so that it knows their length
        for one, row in zip(texts, vectors, strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(facts.embedding, "embed", lambda _, row=row: Meaning(row, None))
                memory.archive(one, key=key)


def count_queries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the limit of each query of Chroma."""
    limits = list[int]()
    kind: Any
    for kind in (LocalCollection, ServerCollection):

        def counted(collection: Any, asked: Vectors, limit: int, query: Any = kind.query) -> list[tuple[int, float]]:
            limits.append(limit)
            return query(collection, asked, limit)

        monkeypatch.setattr(kind, "query", counted)
    return limits


class Children:
    """The processes that build, noted as they start. While `is_frozen` a new one stands still until `go_on`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_frozen: bool = False) -> None:
        self.all: list[subprocess.Popen[bytes]] = []
        self.at_work, self.is_frozen = Event(), is_frozen
        popen: Any = subprocess.Popen

        def start(*args: Any, **how: Any) -> subprocess.Popen[bytes]:
            self.all.append(popen(*args, **how))
            assert os.getsid(self.all[-1].pid) == self.all[-1].pid, "a Ctrl-C at the terminal would end it"
            if self.is_frozen:
                self.all[-1].send_signal(signal.SIGSTOP)
            self.at_work.set()
            return self.all[-1]

        monkeypatch.setattr("pager.vectors.chroma.build.subprocess.Popen", start)

    def go_on(self) -> None:
        self.is_frozen = False
        for child in self.all:
            child.send_signal(signal.SIGCONT)
