"""Export and import: an agent as one file, which is its database (SQLite; `pager/store/schema.py` explains it).

What others have left for the agent is in it, too. The vector index is not: it is made again from the file at the first
search. An export of a running agent is consistent; a plain copy of its files would not be. Its last line is a checksum
(`pager/seal.py`), by which an import notices each byte that was changed since.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pager.errors import Refused, StorageError
from pager.memory import Memory
from pager.opening import DATABASE, make_private
from pager.seal import unseal

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


def export(directory: Path, file: Path) -> None:
    with Memory.read(directory) as reading:
        reading.export(file)


def import_(file: Path, directory: Path) -> None:
    """Copy, look it over, and only then give it its name."""
    if not file.is_file():
        raise Refused(f"there is no file {file}.")
    if directory.exists():
        raise Refused(f"there is an agent in {directory} already; give another name with --as.")
    if not file.stat().st_size:
        raise Refused(f"{file} is empty, so it is damaged: there is nothing to import.")
    aside = directory.with_name(f".{directory.name}.import")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        make_private(aside)
        shutil.copyfile(file, aside / DATABASE)
        unseal(aside / DATABASE)
        with Memory.open(aside, embedder=None) as memory:
            if problems := memory.check():
                raise StorageError(f"{file} is damaged: {problems[0].text}. Nothing was imported.")
        aside.rename(directory)
    except StorageError as error:  # of the copy, which is gone by then
        raise type(error)(str(error).replace(str(aside / DATABASE), str(file))) from error
    except OSError as error:
        raise StorageError(f"{file} could not be imported: {error.strerror}.") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
