"""The files of the Chroma index: which generation is live, and whether its bytes are those that were written.

    DIRECTORY/state.json        what is live and how far it goes; replacing it is what commits a swap
    DIRECTORY/g<n>/             one generation: a directory of Chroma's own, written by one build
    DIRECTORY/quarantine-<n>/   the last generation that was found broken, for a person to look at

Every generation has a name of its own, so a swap renames nothing that may be open, and a process that dies leaves
either the old generation live or the new one. Everything that state.json does not name can be deleted.

Chroma's native code does not validate its files (a flipped bit can end the process). So the state has their digests,
which are checked before anything is opened: those of the files that a build flushed always, because they are never
written again; those of all files if the index was closed cleanly.

Functions raise OSError and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

FORMAT = 1
GENERATION = re.compile(r"g([1-9]\d*)")
QUARANTINE = re.compile(r"quarantine-([1-9]\d*)")


@dataclass(slots=True)
class State:
    """The content of state.json. A state that cannot be read counts as none."""

    live: str  # the generation that counts
    fingerprint: str  # of the source when it was built
    dimension: int
    through: int  # every vector of the source with an id <= this is in it ...
    writing_through: int = 0  # ... or <= this, when the process died between Chroma's commit and ours; else 0
    replay: int = 0  # entries in Chroma's log that were not flushed
    clean: bool = False  # it was closed without an error, and nobody has opened it since
    flushed: dict[str, str] = field(default_factory=dict[str, str])  # file -> digest, from the build
    closed: dict[str, str] = field(default_factory=dict[str, str])  # file -> digest, the others, at a clean close
    format: int = FORMAT


class IndexDirectory:
    """The files of one index. What is live changes in `commit` alone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._state = root / "state.json"

    def path(self, name: str) -> Path:
        return self.root / name

    # the state

    def load(self) -> State | None:
        """Return the committed state; None if there is none, or none that makes sense."""
        self._remove_other_kinds()
        try:
            read = json.loads(self._state.read_bytes())
            state = State(**read)
        except (FileNotFoundError, ValueError, TypeError):
            return None
        for item in fields(State):
            value, kind = getattr(state, item.name), str(item.type).partition("[")[0]
            if type(value).__name__ != kind:
                return None
        if state.format != FORMAT or not GENERATION.fullmatch(state.live):
            return None
        return state

    def _remove_other_kinds(self) -> None:
        """Remove a file where the directory should be, or a directory where the state should be."""
        if not self.root.is_dir():
            self.root.unlink(missing_ok=True)
        elif self._state.is_dir():
            shutil.rmtree(self._state)

    def commit(self, state: State, *, durable: bool) -> None:
        """Replace state.json. Without `durable` a power cut may bring the older state back, which costs a rebuild."""
        self._make(self.root)
        aside = self._state.with_suffix(".new")
        with aside.open("w", encoding="utf-8") as file:
            json.dump(asdict(state), file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        aside.replace(self._state)
        if durable:
            _sync_directory(self.root)

    # generations

    def new_generation(self) -> str:
        """Make an empty directory under a name that was not used before; return the name."""
        self._make(self.root)
        taken = [0, *self._numbers(GENERATION), *self._numbers(QUARANTINE)]
        name = f"g{max(taken) + 1}"
        self._make(self.path(name))
        return name

    def discard(self, name: str) -> None:
        """Remove a generation or a quarantine."""
        path = self.path(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def sweep(self, *, live: str) -> None:
        """Remove every generation but the live one."""
        for name in self._names(GENERATION):
            if name != live:
                self.discard(name)

    def clear(self, *, keep: str | None = None) -> None:
        """Remove the state, then every generation, and every quarantine but `keep`."""
        self._state.with_suffix(".new").unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)
        for name in [*self._names(GENERATION), *self._names(QUARANTINE)]:
            if name != keep:
                self.discard(name)

    def quarantine(self, name: str) -> str | None:
        """Put a broken generation aside, in place of an older one; return its new name."""
        if not self.path(name).is_dir():
            return None
        for older in self._names(QUARANTINE):
            self.discard(older)
        kept = name.replace("g", "quarantine-")
        self.path(name).rename(self.path(kept))
        return kept

    # bytes

    def largest(self, name: str) -> tuple[str, int]:
        """Return the name and the apparent size in bytes of the largest file of a generation."""
        sizes = {file: path.stat().st_size for file, path in self._files(name).items()}
        return max(sizes.items(), key=lambda item: item[1], default=("", 0))

    def digests(self, name: str, *, besides: Collection[str]) -> dict[str, str]:
        """Return the digest of every file of a generation but `besides`."""
        return {file: digest(path) for file, path in self._files(name).items() if file not in besides}

    def sync(self, name: str) -> None:
        """Flush a finished generation to the disk."""
        folders = {self.path(name), self.root}
        for path in self._files(name).values():
            folders.add(path.parent)
            with path.open("rb+") as handle:
                os.fsync(handle.fileno())
        for folder in folders:
            _sync_directory(folder)

    def altered(self, state: State) -> str | None:
        """Return a file that is gone, new, or has other bytes than its digest says; None if there is none."""
        files = self._files(state.live)
        expected = state.flushed | state.closed if state.clean else state.flushed
        for file, wanted in expected.items():
            if file not in files or digest(files[file]) != wanted:
                return file
        return next((file for file in files if file not in expected), None) if state.clean else None

    def _files(self, name: str) -> dict[str, Path]:
        root = self.path(name)
        return {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}

    def _names(self, pattern: re.Pattern[str]) -> list[str]:
        if not self.root.is_dir():
            return []
        return sorted(entry.name for entry in self.root.iterdir() if pattern.fullmatch(entry.name))

    def _numbers(self, pattern: re.Pattern[str]) -> list[int]:
        return [int(name.removeprefix("quarantine-").removeprefix("g")) for name in self._names(pattern)]

    @staticmethod
    def _make(path: Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


def digest(path: Path) -> str:
    """Return the digest of a file; 17 MB take 12 ms."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _sync_directory(path: Path) -> None:
    """Flush the names in a directory to the disk. Windows has no such call, and needs none."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
