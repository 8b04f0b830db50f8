"""What an import begins with: is this file an exported agent, and nothing half imported stays."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

HEADER = b"SQLite format 3\0"


def is_exported(file: Path) -> bool:
    """Whether this is a database, by its first bytes; an empty one, and a name that says so, count as a damaged one."""
    with file.open("rb") as opened:
        begin = opened.read(len(HEADER))
    return begin == HEADER or not begin or file.suffix.lower() in (".db", ".sqlite", ".sqlite3")


@contextmanager
def whole_or_none(directory: Path) -> Generator[None]:
    """An agent that was not there before stays only if all goes well in here."""
    known = directory.exists()
    try:
        yield
    except BaseException:
        if not known:
            shutil.rmtree(directory, ignore_errors=True)
        raise
