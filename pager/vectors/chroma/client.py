"""One Chroma collection in one directory. The only file that calls Chroma's index.

Every failure of chromadb, its Rust panics included, is raised as IndexUnavailableError. chromadb is imported when the
first directory is opened, because that takes a second.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pager.vectors.index import IndexUnavailableError

if TYPE_CHECKING:
    from chromadb.api.client import Client

    from pager.vectors.index import Vectors

DATABASE_FILE = "chroma.sqlite3"
_NAME = "vectors"
# Twice the default number of candidates of a query, for 0.1 ms; and each upsert is flushed, so nothing is replayed.
_HNSW: Any = {"hnsw": {"space": "cosine", "ef_search": 200, "sync_threshold": 1}}
_MAX_UPSERT = 5_000  # Chroma refuses more than 5,461 at once


class Collection:
    """An open directory. `close` releases its files; after that the object is of no use."""

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        with _foreign("open"):
            self._client = client = _connect(directory)
            try:
                if create:
                    self._collection = client.create_collection(_NAME, configuration=_HNSW, embedding_function=None)
                else:
                    self._collection = client.get_collection(_NAME, embedding_function=None)
            except BaseException:
                client.close()
                raise

    def close(self) -> None:
        """Release its files."""
        with _foreign("close"):
            self._client.close()

    def upsert(self, ids: Sequence[int], vectors: Vectors) -> None:
        """Write vectors, replacing those with the same ids."""
        with _foreign("write to"):
            for start in range(0, len(ids), _MAX_UPSERT):
                rows = slice(start, start + _MAX_UPSERT)
                self._collection.upsert(ids=[str(each) for each in ids[rows]], embeddings=vectors[rows])

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Return (id, cosine similarity), best first."""
        with _foreign("search"):
            found: Any = self._collection.query(
                query_embeddings=vector.reshape(1, -1), n_results=limit, include=["distances"]
            )
            ids, distances = cast("list[str]", found["ids"][0]), cast("list[float]", found["distances"][0])
            return [(int(each), 1.0 - distance) for each, distance in zip(ids, distances, strict=True)]

    def count(self) -> int:
        """Return the number of ids. Requests are answered in order: what was written before is flushed then."""
        with _foreign("count"):
            return self._collection.count()


def _connect(directory: Path) -> Client:
    import chromadb
    from chromadb.config import Settings

    # All of them, because what is left out comes from environment variables.
    settings = Settings(
        anonymized_telemetry=False,
        allow_reset=False,
        chroma_api_impl="chromadb.api.rust.RustBindingsAPI",
        migrations="apply",
        migrations_hash_algorithm="md5",
    )
    return cast("Client", chromadb.PersistentClient(path=directory, settings=settings))


@contextmanager
def _foreign(doing: str) -> Generator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, IndexUnavailableError):
        raise
    except BaseException as error:  # a Rust panic is no Exception
        raise IndexUnavailableError(f"Chroma could not {doing} the index: {type(error).__name__}: {error}") from error
