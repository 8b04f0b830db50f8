"""One Chroma collection in one directory. The only file that calls Chroma's index.

Every failure of chromadb, its Rust panics included, is raised as IndexUnavailableError. chromadb is imported when the
first directory is opened, because that takes a second.

    collection = Collection.create(directory)    # flushes with every upsert
    collection.upsert([1, 2], vectors)
    collection.never_flush()                     # from its next opening on
    collection.close()
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pager.vectors.index import IndexUnavailableError

if TYPE_CHECKING:
    from chromadb import Collection as ChromaCollection
    from chromadb.api.client import Client

    from pager.vectors.index import Vectors

DATABASE_FILE = "chroma.sqlite3"
FLUSH_ALWAYS = 1
FLUSH_NEVER = 1_000_000
_NAME = "vectors"
_EF_SEARCH = 200  # candidates of a query; twice the default, for 0.1 ms
_MAX_UPSERT = 5_000  # Chroma refuses more than 5,461 at once


class Collection:
    """An open directory. `close` releases its files; after that the object is of no use."""

    def __init__(self, client: Client, collection: ChromaCollection) -> None:
        self._client = client
        self._collection = collection

    @classmethod
    def create(cls, directory: Path) -> Collection:
        """Make a collection that is flushed with every upsert. The directory must be empty, and nobody may read it."""
        hnsw = {"space": "cosine", "ef_search": _EF_SEARCH, "sync_threshold": FLUSH_ALWAYS}
        with _foreign("create"):
            client = _connect(directory)
            with _closing_on_failure(client):
                configuration: Any = {"hnsw": hnsw}
                return cls(
                    client,
                    client.create_collection(_NAME, configuration=configuration, embedding_function=None),
                )

    @classmethod
    def open(cls, directory: Path) -> Collection:
        """Open the collection of a directory. A damaged one may end the process: see pager.vectors.chroma.probe."""
        with _foreign("open"):
            client = _connect(directory)
            with _closing_on_failure(client):
                return cls(client, client.get_collection(_NAME, embedding_function=None))

    def close(self) -> None:
        """Release its files."""
        with _foreign("close"):
            self._client.close()

    def upsert(self, ids: Sequence[int], vectors: Vectors) -> None:
        """Write vectors, replacing those with the same ids."""
        with _foreign("write to"):
            for start in range(0, len(ids), _MAX_UPSERT):
                some = slice(start, start + _MAX_UPSERT)
                self._collection.upsert(ids=[str(each) for each in ids[some]], embeddings=vectors[some])

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Return (id, cosine similarity), best first."""
        with _foreign("search"):
            found: Any = self._collection.query(
                query_embeddings=vector.reshape(1, -1), n_results=limit, include=["distances"]
            )
            ids, distances = cast("list[str]", found["ids"][0]), cast("list[float]", found["distances"][0])
            return [(int(each), 1.0 - distance) for each, distance in zip(ids, distances, strict=True)]

    def count(self) -> int:
        """Return the number of ids. The first call after opening replays the log and purges its flushed part."""
        with _foreign("count"):
            return self._collection.count()

    def sync_threshold(self) -> int:
        """Return the number of entries after which Chroma flushes."""
        with _foreign("read the settings of"):
            settings: Any = self._collection.configuration_json
            return int(settings["hnsw"]["sync_threshold"])

    def never_flush(self) -> None:
        """Store this setting. It holds from the next opening on."""
        with _foreign("change"), warnings.catch_warnings():
            # It warns that the collection has no embedding function of its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._collection.modify(configuration={"hnsw": {"sync_threshold": FLUSH_NEVER}})
            # The log is purged in the background, in the order of requests: a count is answered after it.
            self._collection.count()


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
def _closing_on_failure(client: Client) -> Generator[None]:
    try:
        yield
    except BaseException:
        client.close()
        raise


@contextmanager
def _foreign(doing: str) -> Generator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, IndexUnavailableError):
        raise
    except BaseException as error:  # a Rust panic is no Exception
        raise IndexUnavailableError(f"Chroma could not {doing} the index: {type(error).__name__}: {error}") from error
