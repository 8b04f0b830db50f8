"""Where the generations of an archive are: in a directory of their own, or on a Chroma server."""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pager.errors import StorageError
from pager.store import Store
from pager.vectors.chroma.collection import COLLECTION, Collection, Connection
from pager.vectors.index import ChromaServer, Generation, Index, IndexDamagedError, IndexUnavailableError

STATE, OWNER = "index", "index_owner"  # settings of a memory whose index is on a server


class Directory(Index):
    """Generations in a directory.

    DIRECTORY/state.json    what was published last; replacing it is what publishes
    DIRECTORY/g<n>/         a generation: a directory of Chroma's own
    """

    def __init__(self, directory: Path, store: Store) -> None:
        super().__init__(store)
        self._directory = directory
        self._state = directory / "state.json"

    def newest(self) -> Generation | None:
        """Return what was published last, and what is known of it."""
        with suppress(OSError):
            found = Generation.from_json(self._state.read_bytes())
            return found if found and re.fullmatch(r"g\d+|", found.name) else None
        return None

    def next_name(self) -> str:
        """Return a name for the next generation."""
        newest = self.newest()
        return f"g{int(newest.name[1:]) + 1 if newest and newest.name else 1}"

    def open(self, generation: Generation) -> Collection:
        """Open a generation to read it, if its files are as they were built."""
        directory = self._directory / generation.name
        with _disk("open the index"):
            for name, (size, digest) in generation.files.items():
                path = directory / name
                # The size first: a torn file may have grown to terabytes.
                if not path.is_file() or path.stat().st_size != size or _digest(path) != digest:
                    raise IndexDamagedError(f"{name} of the index is not as it was written")
        return Connection(directory).get(COLLECTION)

    def described(self, built: Generation) -> Generation:
        """Return it with the sizes and digests of its files."""
        directory = self._directory / built.name
        with _disk("read the index"):
            paths = sorted(path for path in directory.rglob("*") if path.is_file())
            files = {path.relative_to(directory).as_posix(): [path.stat().st_size, _digest(path)] for path in paths}
        return built._replace(files=files)

    def publish(self, built: Generation) -> None:
        """Make it the newest, and remove all others."""
        with _disk("publish the index"):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            aside = self._state.with_suffix(".new")
            aside.write_text(built.to_json())
            if self._state.is_dir():
                shutil.rmtree(self._state)
            aside.replace(self._state)
            for path in self._directory.iterdir():
                if path.name not in (self._state.name, built.name):
                    _remove(path)

    def remove(self, name: str) -> None:
        """Remove a generation, if it exists."""
        with _disk("remove the index"):
            if self._directory.is_file():
                self._directory.unlink()
            _remove(self._directory / name)

    def clear(self) -> None:
        """Remove every byte of all of them."""
        if self._store.settings.get(OWNER):
            way = "Open it with that server (archival.index in YAML, index= in Python)"
            raise StorageError(f"the vector index of this memory is on a Chroma server, which has to delete it. {way}.")
        self.delete()

    def delete(self) -> None:
        """Delete the directory."""
        try:
            _remove(self._directory)
        except OSError as error:
            way = "Check the rights on it, and try again."
            raise StorageError(f"{error.filename} cannot be removed ({error.strerror}). {way}") from error

    def order(self, name: str) -> dict[str, Any]:
        """Return where a child process writes the generation."""
        return {"directory": str(self._directory.absolute() / name)}


class Server(Index):
    """Generations on a server: a collection for each. Which one is the newest is a setting in pager.db."""

    def __init__(self, server: ChromaServer, store: Store, directory: Path) -> None:
        super().__init__(store)
        self._server = server
        self._local = Directory(directory, store)  # from a time without a server

    def newest(self) -> Generation | None:
        """Return what was published last, and what is known of it."""
        state = self._store.settings.get(STATE)
        return Generation.from_json(state) if state else None

    def next_name(self) -> str:
        """Return a name for the next generation; no other memory has its first part."""
        owner = self._store.settings.get(OWNER)
        if owner is None:
            owner = f"selfpager-{secrets.token_hex(8)}"
            self._store.settings.put(OWNER, owner)
        newest = self.newest()
        number = int(newest.name.rpartition("g")[2]) + 1 if newest and newest.name else 1
        return f"{owner}-g{number}"

    def open(self, generation: Generation) -> Collection:
        """Open a generation to read it, if it has as many facts as were built."""
        connection = Connection(self._server)
        try:
            collection = connection.get(generation.name)
            if (count := collection.count()) != generation.facts:
                raise IndexDamagedError(f"the index holds {count} facts where {generation.facts} were written")
        except IndexUnavailableError:
            connection.close()
            raise
        return collection

    def publish(self, built: Generation) -> None:
        """Make it the newest, and remove all others."""
        self._store.settings.put(STATE, built.to_json())
        with suppress(IndexUnavailableError):  # the next publication removes them
            self._delete(keep=built.name)

    def remove(self, name: str) -> None:
        """Remove a generation, if it exists."""
        with _connected(self._server) as connection:
            connection.delete(name)

    def clear(self) -> None:
        """Remove all of them. What is left in the server's own files is for the server to delete."""
        self._local.delete()
        if self._store.settings.get(OWNER):
            try:
                self._delete()
            except IndexUnavailableError as error:
                # Without a cause: `Memory.purge` would tell of the disk.
                what = f"the vector index cannot be deleted, so the purge has not ended ({error})"
                way = "Start the server: the next purge, or the next opening, finishes it"
                raise StorageError(f"{what}. {way}.") from None
            self._store.settings.put(STATE, None)

    def order(self, name: str) -> dict[str, Any]:
        """Return where a child process writes the generation."""
        return {"server": asdict(self._server)}

    def _delete(self, keep: str = "") -> None:
        owner = self._store.settings.get(OWNER)
        with _connected(self._server) as connection:
            for name in connection.names(f"{owner}-g"):
                if name != keep:
                    connection.delete(name)


@contextmanager
def _connected(server: ChromaServer) -> Generator[Connection]:
    connection = Connection(server)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _disk(doing: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise IndexUnavailableError(f"could not {doing}: {error}") from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:  # 17 MB take 12 ms
        return hashlib.file_digest(file, "blake2b").hexdigest()
