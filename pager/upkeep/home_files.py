"""What a home that is a directory keeps beside its agents: values of programs, and which agents want to be visited.

A value is a file for its owner only, which is replaced as a whole. Visits are files in `.due`, one per agent that wants
one, with the moment in it: agents without one cost nothing. They are hints, and not synced: what a visit is for is in
the agents.
"""

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import get_ident

from pager.errors import StorageError
from pager.safety import foreign_files

DUE = ".due"


def read_value(home: Path, key: str) -> str | None:
    """Return a value; None if there is none."""
    file = home / f"{key}.json"
    try:
        return foreign_files.read_bytes(file, follow_link=False, own_only=True).decode()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StorageError(f"{file} cannot be read ({error}). Check the rights on it, or restore it.") from None


def change_value(home: Path, key: str, change: Callable[[str | None], str]) -> str:
    """Replace a value by what `change` makes of it, while no other process changes one. Return it."""
    file = home / f"{key}.json"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            value = change(read_value(home, key))
            _replace(file, value, syncs=True)
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StorageError(f"{file} cannot be written ({error.strerror}). Check the rights and space there.") from None
    return value


def set_due(home: Path, name: str, at: datetime | None) -> None:
    """Note when an agent wants to be visited; None if never."""
    file = home / DUE / name
    try:
        if at is None:
            file.unlink(missing_ok=True)
        else:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            _replace(file, at.isoformat(), syncs=False)
    except OSError as error:
        raise StorageError(f"{file} cannot be written ({error.strerror}). Check the rights and space there.") from None


def due(home: Path) -> dict[str, datetime]:
    """Return when agents want to be visited, by their names."""
    found: dict[str, datetime] = {}
    with suppress(FileNotFoundError):
        for file in (home / DUE).iterdir():
            with suppress(OSError, ValueError):  # it was visited a moment ago
                if not file.name.startswith("."):
                    found[file.name] = datetime.fromisoformat(file.read_text())
    return found


def _replace(file: Path, text: str, *, syncs: bool) -> None:
    aside = file.with_name(f".{file.name}.{os.getpid()}.{get_ident()}.tmp")
    aside.unlink(missing_ok=True)
    with open(aside, "xb", opener=foreign_files.private) as written:
        written.write(text.encode())
        if syncs:
            written.flush()
            os.fsync(written.fileno())
    aside.rename(file)
