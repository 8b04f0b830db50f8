"""Chroma, in a directory or on a server. The only file that imports chromadb's index.

Every failure of chromadb, its Rust panics included, is raised as IndexUnavailableError, or as IndexDamagedError where
building anew is the way out. chromadb takes half a second and 65 MB to import, which its native part does not: a
directory is read with that alone.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pager.safety import address_space
from pager.vectors.index import ChromaServer, IndexDamagedError, IndexUnavailableError

if TYPE_CHECKING:
    from pager.vectors.index import Vectors

DATABASE_FILE = "chroma.sqlite3"
COLLECTION = "archive"
TIMEOUT_S = 10  # of a request to a server
_HOME = ("default_tenant", "default_database")  # of every collection in a directory
_OPEN_FILES = 16  # that Chroma may keep open: a generation has five
# Each call to `add` is flushed, so nothing has to be replayed.
_HNSW: Any = {"hnsw": {"space": "cosine", "max_neighbors": 32, "ef_construction": 80, "sync_threshold": 1}}


class LocalCollection:
    """A generation in a directory, opened to read it."""

    def __init__(self, directory: Path) -> None:
        if lack := address_space.lacking("the vector index", address_space.INDEX_MB):
            raise IndexUnavailableError(lack)
        with _translated("open"):
            import chromadb_rust_bindings  # pyright: ignore[reportMissingTypeStubs]

            native: Any = chromadb_rust_bindings
            database = native.SqliteDBConfig(
                url=str(directory / DATABASE_FILE), hash_type=native.MigrationHash.MD5,
                migration_mode=native.MigrationMode.Validate,
            )  # fmt: skip
            self._native: Any = native.Bindings(
                allow_reset=False, sqlite_db_config=database, persist_path=str(directory), hnsw_cache_size=_OPEN_FILES
            )
            self._id = str(self._native.get_collection(COLLECTION, *_HOME).id)

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Return facts near a vector and their cosines, best first."""
        with _translated("search"):
            found = self._native.query(self._id, None, [vector], limit, None, None, ["distances"], *_HOME)
            return _facts(found.ids[0], found.distances[0])

    def close(self) -> None:
        """Release its files."""
        self._native = None


class Connection:
    """The whole of chromadb over a directory or a server, to write and to ask a server."""

    def __init__(self, place: Path | ChromaServer) -> None:
        from chromadb.api import ServerAPI
        from chromadb.config import System

        self._home = {} if isinstance(place, Path) else {"tenant": place.tenant, "database": place.database}
        self._system = System(_settings(place))
        self._api: Any = self._system.instance(ServerAPI)
        if not isinstance(place, Path):
            self._api._session.timeout = TIMEOUT_S  # or it would wait for ever
        self._system.start()

    def check(self) -> None:
        """Ask for something. Nothing was asked before."""
        self._api.list_collections(limit=1, **self._home)

    def create(self, name: str) -> Any:
        """Create a collection. Return chromadb's object."""
        return self._wrapped(self._api.create_collection(name=name, configuration=dict(_HNSW), **self._home))

    def get(self, name: str) -> Any:
        """Return chromadb's object of a collection."""
        return self._wrapped(self._api.get_collection(name=name, **self._home))

    def _wrapped(self, model: Any) -> Any:
        from chromadb.api.models.Collection import Collection  # pyright: ignore[reportMissingTypeStubs]

        return Collection(client=self._api, model=model, embedding_function=None)

    def delete_all(self, prefix: str, keep: str = "") -> None:
        """Delete the collections whose names begin like that, but one."""
        for name in [each.name for each in self._api.list_collections(**self._home)]:
            if name.startswith(prefix) and name != keep:
                self._api.delete_collection(name=name, **self._home)

    def close(self) -> None:
        """Release its files, or its connections."""
        if self._home:
            self._api._session.close()
        self._system.stop()


@contextmanager
def connected(server: ChromaServer, doing: str) -> Generator[Connection]:
    """Connect to a server for the length of the block, whose errors are those of the index."""
    with _translated(doing, server):
        connection = Connection(server)
        try:
            yield connection
        finally:
            connection.close()


class ServerCollection:
    """A generation on a server, opened to read it."""

    def __init__(self, server: ChromaServer, name: str, facts: int) -> None:
        self._server = server
        with _translated("open", server):
            self._connection = Connection(server)
            try:
                self._collection = self._connection.get(name)
                if (count := self._collection.count()) != facts:
                    raise IndexDamagedError(f"the index holds {count} facts where {facts} were written")
            except BaseException:
                self._connection.close()
                raise

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Return facts near a vector and their cosines, best first."""
        with _translated("search", self._server):
            found = self._collection.query(query_embeddings=[vector], n_results=limit, include=["distances"])
            return _facts(found["ids"][0], found["distances"][0])

    def close(self) -> None:
        """Close its connections."""
        with _translated("close", self._server):
            self._connection.close()


def _facts(ids: list[str], distances: list[float]) -> list[tuple[int, float]]:
    return [(int(each[1:]), 1.0 - distance) for each, distance in zip(ids, distances, strict=True)]


@contextmanager
def _translated(doing: str, server: ChromaServer | None = None) -> Generator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, IndexUnavailableError):
        raise
    except BaseException as error:  # a Rust panic is no Exception
        kind, at = type(error).__name__, f" at {server.host}:{server.port}" if server else ""
        raised = IndexDamagedError if server is None or kind == "NotFoundError" else IndexUnavailableError
        message = f"Chroma{at} could not {doing} the index: {kind}: {error}"
        if server and re.search(r"Auth|Forbidden|\b40[13]\b", message):
            message = f"{message}. Its headers have no token, or a wrong one: set the right one"
        raise raised(message) from error


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
