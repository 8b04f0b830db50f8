"""Puts our store in the place of SqliteStore before LangGraph's tests import that."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import langgraph.store.sqlite as theirs  # pyright: ignore[reportMissingImports] -- of the judges' environment
import numpy as np

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
        pass


theirs.SqliteStore = Store
