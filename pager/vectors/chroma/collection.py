"""A connection to Chroma, and a collection in it. The only file that imports chromadb's index.

Every failure of chromadb, its Rust panics included, is raised as IndexUnavailableError, or as IndexDamagedError where
building anew is the way out. chromadb is imported when the first connection is made, because that takes a second.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pager.vectors.index import ChromaServer, IndexDamagedError, IndexUnavailableError

if TYPE_CHECKING:
    from pager.vectors.index import Vectors

DATABASE_FILE = "chroma.sqlite3"
COLLECTION = "archive"
TIMEOUT_S = 10  # of a request to a server
# Each call to `add` is flushed, so nothing has to be replayed.
_HNSW: Any = {"hnsw": {"space": "cosine", "max_neighbors": 32, "sync_threshold": 1}}


class Connection:
    """Chroma in a directory, or a Chroma server."""

    def __init__(self, place: Path | ChromaServer) -> None:
        self._is_local = isinstance(place, Path)
        self._at = "" if isinstance(place, Path) else f" at {place.host}:{place.port}"
        self._home: dict[str, str] = {}
        if not isinstance(place, Path):
            self._home = {"tenant": place.tenant, "database": place.database}
        with self.translated("open"):
            from chromadb.api import ServerAPI
            from chromadb.config import System

            self._system = System(_settings(place))
            self._api: Any = self._system.instance(ServerAPI)
            if not self._is_local:
                self._api._session.timeout = TIMEOUT_S  # or it would wait for ever
            self._system.start()

    def create(self, name: str) -> Collection:
        """Create a collection."""
        with self.translated("create"):
            return self._wrapped(self._api.create_collection(name=name, configuration=dict(_HNSW), **self._home))

    def get(self, name: str) -> Collection:
        """Return a collection that exists."""
        with self.translated("open"):
            return self._wrapped(self._api.get_collection(name=name, **self._home))

    def delete(self, name: str) -> None:
        """Delete a collection, if it exists."""
        if name in self.names(name):
            with self.translated("delete"):
                self._api.delete_collection(name=name, **self._home)

    def names(self, prefix: str) -> list[str]:
        """Return the names of the collections that begin with a prefix."""
        with self.translated("list"):
            return [each.name for each in self._api.list_collections(**self._home) if each.name.startswith(prefix)]

    def close(self) -> None:
        """Release its files."""
        with self.translated("close"):
            if not self._is_local:
                self._api._session.close()
            self._system.stop()

    def _wrapped(self, model: Any) -> Collection:
        from chromadb.api.models.Collection import Collection as Wrapped  # pyright: ignore[reportMissingTypeStubs]

        return Collection(self, Wrapped(client=self._api, model=model, embedding_function=None))

    @contextmanager
    def translated(self, doing: str) -> Generator[None]:
        """Raise what chromadb raises as an error of the index."""
        try:
            yield
        except (KeyboardInterrupt, SystemExit, GeneratorExit, IndexUnavailableError):
            raise
        except BaseException as error:  # a Rust panic is no Exception
            kind = type(error).__name__
            is_damage = self._is_local or kind == "NotFoundError"
            message = f"Chroma{self._at} could not {doing} the index: {kind}: {error}"
            if not self._is_local and re.search(r"Auth|Forbidden|\b40[13]\b", message):
                message = f"{message}. Its headers have no token, or a wrong one: set the right one"
            raise (IndexDamagedError if is_damage else IndexUnavailableError)(message) from error


class Collection:
    """An open collection. `close` closes its connection."""

    def __init__(self, connection: Connection, collection: Any) -> None:
        self._connection = connection
        self._collection = collection

    def add(
        self, facts: Sequence[int], vectors: Vectors, texts: Sequence[str], metadata: Sequence[dict[str, Any]]
    ) -> None:
        """Write facts."""
        ids = [f"f{fact}" for fact in facts]
        with self._connection.translated("write"):
            self._collection.add(ids=ids, embeddings=vectors, documents=texts, metadatas=metadata)

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Return facts near a vector and their cosines, best first."""
        with self._connection.translated("search"):
            found = self._collection.query(
                query_embeddings=vector.reshape(1, -1), n_results=limit, include=["distances"]
            )
            [ids], [distances] = found["ids"], found["distances"]
            return [(int(each[1:]), 1.0 - distance) for each, distance in zip(ids, distances, strict=True)]

    def count(self) -> int:
        """Return the number of facts. Requests are answered in order: what was written before is flushed then."""
        with self._connection.translated("count"):
            return self._collection.count()

    def search_wider(self, candidates: int) -> None:
        """Let a query look at so many candidates, once the collection is opened anew: slower, and it misses less."""
        with self._connection.translated("configure"):
            self._collection.modify(configuration={"hnsw": {"ef_search": candidates}})

    def close(self) -> None:
        """Release its files."""
        self._connection.close()


def _settings(place: Path | ChromaServer) -> Any:
    from chromadb.config import Settings

    # All of them, because what is left out comes from environment variables.
    ours: dict[str, Any] = {"anonymized_telemetry": False, "allow_reset": False}
    if isinstance(place, Path):
        return Settings(
            **ours, chroma_api_impl="chromadb.api.rust.RustBindingsAPI", migrations="apply",
            migrations_hash_algorithm="md5", is_persistent=True, persist_directory=str(place),
        )  # fmt: skip
    return Settings(
        **ours, chroma_api_impl="chromadb.api.fastapi.FastAPI", chroma_server_host=place.host,
        chroma_server_http_port=place.port, chroma_server_ssl_enabled=place.ssl,
        chroma_server_headers=dict(place.headers),
    )  # fmt: skip
