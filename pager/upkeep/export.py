"""The export of an agent: its database in one file, with the commands that are pending in its inbox.

Behind it are the databases of its helpers, and of theirs, each after a line with its place. The last line is a checksum
of everything before it. SQLite notices a broken page but never a changed letter, and it does not look behind its last
page, where these lines are.
"""

import errno
import hashlib
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from pager.errors import RejectedError, StorageError, brief
from pager.safety import foreign_files
from pager.store import Store
from pager.store.database import is_damage
from pager.store.files import AgentFiles
from pager.upkeep import inbox
from pager.upkeep.place import Place

CHECKSUM_MARK = b"\nselfpager export, sha256 of what is above: "
CHECKSUM_BYTES = len(CHECKSUM_MARK) + 2 * hashlib.sha256().digest_size + 1
SQLITE_HEADER = b"SQLite format 3\0"
LARGEST_BYTES = 32 << 30  # of an export that is imported: ten million facts with their vectors
HELPER_MARK = b"\nselfpager helper: "  # before the names of the calls that lead to it, with slashes
LONGEST_PLACE = 4096
DEEPEST = 16  # helpers of helpers
SUFFIXES = (".db", ".sqlite", ".sqlite3")


def export(store: Store, place: Place, file: Path) -> None:
    """Write everything that is committed into a new file, on disk when this returns. Raises StorageError."""
    pending = inbox.pack(place.commands)  # before the copy: a command that is applied in between is in both, and known
    try:
        file.touch(mode=0o600, exist_ok=False)  # SQLite would create a file that everybody can read
    except FileExistsError:
        raise StorageError(f"{file} exists already; choose another name.") from None
    except OSError as error:
        raise StorageError(f"{file} cannot be written ({error.strerror}). Choose another place.") from error
    try:
        with TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as aside:  # so `file` is never half an export
            whole = Path(aside) / "export"
            whole.touch(mode=0o600)
            store.maintenance.copy_to(whole, pending)
            with whole.open("r+b") as opened:
                _append_helpers(opened, place, Path(aside) / "helper")
                opened.seek(0)
                checksum = hashlib.file_digest(opened, "sha256").hexdigest()
                opened.seek(0, os.SEEK_END)
                opened.write(CHECKSUM_MARK + checksum.encode() + b"\n")
                opened.flush()
                os.fsync(opened.fileno())  # the whole file: SQLite does not sync what it copies
            whole.replace(file)
            foreign_files.sync_directory(file.parent)
    except (StorageError, OSError) as error:
        file.unlink(missing_ok=True)
        if is_damage(error.__cause__):
            raise
        raise StorageError(f"{file} cannot be written ({error.__cause__ or error}). Choose another place.") from error


def _append_helpers(target: BinaryIO, place: Place, aside: Path, *above: str) -> None:
    """Append the databases of all helpers, each before those of its own helpers."""
    for helper in place.helpers():
        name = helper.agent
        if place.helper(name).name != helper.name:
            continue  # no call leads to it: somebody else put it there
        helper.copy_to(aside)
        target.seek(0, os.SEEK_END)
        target.write(HELPER_MARK + "/".join((*above, name)).encode() + b"\n")
        with aside.open("rb") as copied:
            shutil.copyfileobj(copied, target, 1 << 20)
        aside.unlink()
        _append_helpers(target, helper, aside, *above, name)


def copy(file: Path, database: Path) -> None:
    """Copy an exported file, at most `LARGEST_BYTES`, onto the disk. Raises OSError, RejectedError for an empty one."""
    with (
        foreign_files.open_file(file, LARGEST_BYTES) as source,
        open(database, "xb", opener=foreign_files.private) as target,
    ):
        while piece := source.read(1 << 20):
            if target.tell() > LARGEST_BYTES:
                raise OSError(errno.EFBIG, f"it grows, and at most {LARGEST_BYTES:,} bytes are read")
            target.write(piece)
        if not target.tell():
            raise RejectedError(f"{file} is empty, so it is damaged: there is nothing to import.")
        target.flush()
        os.fsync(target.fileno())


def remove_checksum(file: Path) -> None:
    """Take the checksum line off, if there is one. Raises StorageError if the file was changed since its export."""
    with file.open("r+b") as opened:
        end = opened.seek(0, os.SEEK_END) - CHECKSUM_BYTES
        opened.seek(max(0, end))
        line = opened.read()
        if end < 0 or not line.startswith(CHECKSUM_MARK):
            return  # a plain copy of a database
        opened.truncate(end)
        opened.seek(0)
        if hashlib.file_digest(opened, "sha256").hexdigest().encode() != line[len(CHECKSUM_MARK) : -1]:
            way = "Export again, or take another copy."
            raise StorageError(f"{file} is damaged: it is not what was exported, byte for byte. {way}")


def unpack_helpers(files: AgentFiles) -> list[AgentFiles]:
    """Make files of the helpers behind an exported database. Return them, each before its own helpers. Raises
    StorageError for what no export holds, OSError."""
    found = list[AgentFiles]()
    with files.database.open("r+b") as opened:
        size, at = opened.seek(0, os.SEEK_END), _database_bytes(opened, 0)
        end = at
        while at < size and (place := _place_at(opened, at)):
            helper = files
            for name in place:
                is_there = helper.database.is_file()
                helper, above = helper.helper(name), helper
                if not is_there or helper.directory != above.helpers / name:
                    raise _odd_helper(files, place)
            at = opened.tell()
            length = _database_bytes(opened, at)
            if len(place) > DEEPEST or helper.directory.exists() or not 0 < length <= size - at:
                raise _odd_helper(files, place)
            helper.make_directory()
            opened.seek(at)
            with open(helper.database, "xb", opener=foreign_files.private) as target:
                _copy_bytes(opened, target, length)
            found.append(helper)
            at += length
        if found:
            if at != size:
                raise StorageError(f"{files.database} is damaged: behind its helpers is something else.")
            opened.truncate(end)
    return found


def _odd_helper(files: AgentFiles, place: list[str]) -> StorageError:
    return StorageError(
        f"{files.database} is damaged: its helper {brief('/'.join(place))} is none that an export holds."
    )


def _database_bytes(file: BinaryIO, at: int) -> int:
    """Return how long a database is by its first bytes: the size of a page, 1 for the largest, and how many it has."""
    file.seek(at)
    begin = file.read(32)
    page = int.from_bytes(begin[16:18])
    return (65_536 if page == 1 else page) * int.from_bytes(begin[28:32])


def _place_at(file: BinaryIO, at: int) -> list[str]:
    """Read the line that begins there, and return the names of the calls that lead to a helper; none if it is none."""
    file.seek(at)
    if file.read(len(HELPER_MARK)) != HELPER_MARK:
        return []
    return file.readline(LONGEST_PLACE).decode("utf-8", "replace").removesuffix("\n").split("/")


def _copy_bytes(source: BinaryIO, target: BinaryIO, length: int) -> None:
    while length and (piece := source.read(min(length, 1 << 20))):
        target.write(piece)
        length -= len(piece)
    target.flush()
    os.fsync(target.fileno())


def is_export(file: Path) -> bool:
    """Return True for a database, by its first bytes, and for a damaged one: an empty file, or one with its suffix."""
    try:
        with foreign_files.open_file(file, sys.maxsize) as opened:
            begin = opened.read(len(SQLITE_HEADER))
    except OSError as error:
        raise RejectedError(f"{file} cannot be read: {error.strerror}.") from None
    return begin == SQLITE_HEADER or not begin or file.suffix.lower() in SUFFIXES
