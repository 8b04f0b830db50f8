"""Where the generations of an archive are: in a directory of their own, or on a Chroma server."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from pager.errors import StorageError
from pager.safety import foreign_files
from pager.store import Store
from pager.store.settings import INDEX_OWNER, INDEX_STATE
from pager.vectors.chroma.build import build_in_child
from pager.vectors.chroma.collection import LocalCollection, ServerCollection, connected
from pager.vectors.index import (
    RECALL,
    ChromaServer,
    Generation,
    IndexDamagedError,
    IndexUnavailableError,
    Stop,
)


class Directory:
    """Generations in a directory. Only `build` and `tidy` may be called without the memory's lock.

    DIRECTORY/state.json    what was published last; replacing it is what publishes
    DIRECTORY/g<n>/         a generation: a directory of Chroma's own
    """

    def __init__(self, store: Store, directory: Path) -> None:
        self._store = store
        self._directory = directory
        self._state = directory / "state.json"
        self._building = Lock()
        self._newest: Generation | None = None
        self._read = 0, 0  # which file it was read from

    def newest(self) -> Generation | None:
        """Return what was published last. The file is read again when it is another one."""
        try:
            status = self._state.stat()
            if (status.st_ino, status.st_mtime_ns) != self._read:
                found = Generation.from_json(foreign_files.read_bytes(self._state))
                self._newest = found if found and re.fullmatch(r"g[0-9]{1,15}|", found.name) else None
                self._read = status.st_ino, status.st_mtime_ns
        except OSError:
            self._newest = None
        return self._newest

    def next_name(self) -> str:
        """Return a name for the next generation."""
        newest = self.newest()
        return f"g{int(newest.name.rpartition('g')[2]) + 1 if newest and newest.name else 1}"

    def reach(self) -> None:
        """Raise IndexUnavailableError if nothing can be built now."""

    def own(self) -> None:
        """Note that there may be a generation from now on."""

    def build(self, plan: Generation, stop: Stop) -> Generation:
        """Build a generation and prove it. One that finds too little has no name afterwards."""
        with self._building, _disk("build the index"):
            self._remove(plan.name)
            try:
                order = {"database": str(self._store.path.absolute()), "plan": plan.to_json(), **self._place(plan.name)}
                facts, recall = build_in_child(json.dumps(order), stop)
                built = plan._replace(facts=facts, recall=recall)
                if recall >= RECALL:
                    return self._described(built)
            except BaseException:
                with suppress(IndexUnavailableError):
                    self._remove(plan.name)
                raise
            self._remove(plan.name)
            return built._replace(name="")

    def wait(self) -> None:
        """Wait until no other thread is building."""
        with self._building:
            pass

    def publish(self, built: Generation) -> None:
        """Make it the newest."""
        with _disk("publish the index"):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._state.is_dir():
                shutil.rmtree(self._state)
            aside = self._state.with_suffix(".new")
            aside.touch(0o600)
            aside.write_text(built.to_json())
            aside.replace(self._state)

    def tidy(self, keep: str) -> None:
        """Remove all other generations."""
        with suppress(OSError):  # the next one removes them
            for path in self._directory.iterdir():
                if path.name not in (self._state.name, keep):
                    _remove(path)

    def open(self, generation: Generation) -> LocalCollection | ServerCollection:
        """Open a generation to read it, if it is as it was built."""
        directory = self._directory / generation.name
        with _disk("open the index"):
            for name, (size, digest) in generation.files.items():
                path = directory / name
                # The size first: a torn file may have grown to terabytes.
                if not path.is_file() or path.stat().st_size != size or _digest(path) != digest:
                    raise IndexDamagedError(f"{name} of the index is not as it was written")
        return LocalCollection(directory)

    def clear(self) -> None:
        """Remove every byte of all generations. Raises StorageError, or IndexUnavailableError if a server has some."""
        self._delete_directory()
        if self._store.settings.get(INDEX_OWNER):
            way = "Open it with that server: archival.index in YAML, index= in Python"
            raise IndexUnavailableError(f"the vector index is on a Chroma server, and only that can delete it. {way}.")

    def _delete_directory(self) -> None:
        try:
            if not self._directory.is_symlink():
                _remove(self._directory)
            elif self._directory.is_dir():  # on another disk: the link stays, and nothing behind it
                for path in self._directory.iterdir():
                    _remove(path)
        except OSError as error:
            way = "Check the rights on it, and try again."
            raise StorageError(f"{error.filename} cannot be removed ({error.strerror}). {way}") from error

    def _place(self, name: str) -> dict[str, Any]:
        return {"directory": str(self._directory.absolute() / name)}

    def _remove(self, name: str) -> None:
        with _disk("remove the index"):
            if self._directory.is_file():
                self._directory.unlink()
            _remove(self._directory / name)

    def _described(self, built: Generation) -> Generation:
        directory = self._directory / built.name
        with _disk("read the index"):
            paths = sorted(path for path in directory.rglob("*") if path.is_file())
            files = {path.relative_to(directory).as_posix(): [path.stat().st_size, _digest(path)] for path in paths}
        return built._replace(files=files)


class Server(Directory):
    """Generations on a server: a collection for each. Which one is the newest is a setting in pager.db.

    The directory is from a time without a server.
    """

    def __init__(self, store: Store, directory: Path, server: ChromaServer) -> None:
        super().__init__(store, directory)
        self._server = server
        self._owner = ""  # with what the names of this memory's collections begin

    def newest(self) -> Generation | None:
        """Return what was published last."""
        return Generation.from_json(self._store.settings.get(INDEX_STATE) or "")

    def next_name(self) -> str:
        """Return a name for the next generation. Its first part is this memory's own."""
        self._owner = self._store.settings.get(INDEX_OWNER) or self._owner or f"selfpager-{secrets.token_hex(8)}-"
        # A copy of this memory has the same owner, so the name has to be this build's own.
        return f"{self._owner}{secrets.token_hex(4)}-{super().next_name()}"

    def reach(self) -> None:
        """Raise IndexUnavailableError if nothing can be built now."""
        with connected(self._server, "reach") as connection:
            connection.check()

    def own(self) -> None:
        """Note that there may be a generation from now on."""
        self._store.settings.put(INDEX_OWNER, self._owner)

    def publish(self, built: Generation) -> None:
        """Make it the newest."""
        self._store.settings.put(INDEX_STATE, built.to_json())

    def tidy(self, keep: str) -> None:
        """Remove all other generations."""
        with suppress(IndexUnavailableError):  # the next one removes them
            self._remove(self._owner, keep)

    def open(self, generation: Generation) -> LocalCollection | ServerCollection:
        """Open a generation to read it, if it has as many facts as were written."""
        return ServerCollection(self._server, generation.name, generation.facts)

    def clear(self) -> None:
        """Remove all generations. What is left in the server's own files is for the server to delete."""
        self._delete_directory()
        if owner := self._store.settings.get(INDEX_OWNER):
            try:
                self._remove(owner)
            except IndexUnavailableError as error:
                what = f"the vector index cannot be deleted, so the purge has not ended ({error})"
                way = "Start the server: the next purge, or the next opening, finishes it"
                raise IndexUnavailableError(f"{what}. {way}.") from error
            self._store.settings.disown_index()  # or no purge would be possible without this server, for ever

    def _place(self, name: str) -> dict[str, Any]:
        return {"server": asdict(self._server)}

    def _remove(self, name: str, keep: str = "") -> None:
        """Remove the generations whose names begin like that."""
        with connected(self._server, "delete") as connection:
            connection.delete_all(name, keep)

    def _described(self, built: Generation) -> Generation:
        return built


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


def _digest(path: Path) -> int:
    digest = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest = zlib.crc32(piece, digest)  # 4 GB/s, three times as fast as what withstands an attacker
    return digest
