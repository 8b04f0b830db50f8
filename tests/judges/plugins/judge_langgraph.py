"""Puts our store in the place of SqliteStore and AsyncSqliteStore before LangGraph's tests import them."""

import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import langgraph.store.sqlite as theirs  # pyright: ignore[reportMissingImports] -- of the judges' environment
import numpy as np
from langgraph.store.sqlite import aio  # pyright: ignore[reportMissingImports]

from pager import Memory
from pager.adapters.langgraph import PagerStore


class Embedder:
    """Their embeddings, as ours."""

    def __init__(self, embed: Any) -> None:
        self._embed = embed
        self.fingerprint = f"judge-{embed.dims}"
        self.dimension = embed.dims

    def embed(self, texts: Sequence[str]) -> Any:
        rows = np.array(self._embed.embed_documents(list(texts)), dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1)


class Store(PagerStore):
    """Our store, made as SqliteStore is."""

    index_config: Any = None
    embeddings: Any = None

    @classmethod
    @contextmanager
    def from_conn_string(cls, _: str, *, index: Any = None, ttl: Any = None) -> Iterator["Store"]:
        embedder = Embedder(index["embed"]) if index else None
        with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=embedder) as memory:
            store = cls(memory, ttl=ttl)
            store.index_config, store.embeddings = index, index and index["embed"]
            yield store

    def setup(self) -> None:
        """Make nothing: the memory has all tables."""

    def sweep_ttl(self) -> int:
        """Sweep nothing: an item that is over is no item."""
        return 0

    start_ttl_sweeper = stop_ttl_sweeper = setup


class AsyncStore(Store):
    """Our store, made as AsyncSqliteStore is."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, name: str, **options: Any) -> AsyncIterator["Store"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        with super().from_conn_string(name, **options) as store:
            yield store

    async def setup(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Make nothing."""

    sweep_ttl = start_ttl_sweeper = stop_ttl_sweeper = setup  # pyright: ignore[reportAssignmentType]


theirs.SqliteStore = Store
theirs.AsyncSqliteStore = aio.AsyncSqliteStore = AsyncStore


def pytest_configure(config: Any) -> None:
    """Name the mark of a plugin that runs a test again: their limits of time are tight."""
    config.addinivalue_line("markers", "flaky: run again")
