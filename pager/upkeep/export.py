"""The export of an agent: its database in one file, with the commands that are pending in its inbox.

The last line is a checksum of everything before it. SQLite notices a broken page but never a changed letter, and it
does not look behind its last page, where this line is.
"""

import errno
import hashlib
import os
import sys
from pathlib import Path

from pager.errors import RejectedError, StorageError
from pager.safety import foreign_files
from pager.store import Store
from pager.store.database import is_damage
from pager.upkeep import inbox

CHECKSUM_MARK = b"\nselfpager export, sha256 of what is above: "
CHECKSUM_BYTES = len(CHECKSUM_MARK) + 2 * hashlib.sha256().digest_size + 1
SQLITE_HEADER = b"SQLite format 3\0"
LARGEST_BYTES = 32 << 30  # of an export that is imported: ten million facts with their vectors
SUFFIXES = (".db", ".sqlite", ".sqlite3")


def export(store: Store, commands: inbox.Commands, file: Path) -> None:
    """Write everything that is committed into a new file, on disk when this returns. Raises StorageError."""
    pending = inbox.pack(commands)  # before the copy: a command that is applied in between is in both, and known
    try:
        file.touch(mode=0o600, exist_ok=False)  # SQLite would create a file that everybody can read
    except FileExistsError:
        raise StorageError(f"{file} exists already; choose another name.") from None
    except OSError as error:
        raise StorageError(f"{file} cannot be written ({error.strerror}). Choose another place.") from error
    try:
        store.maintenance.copy_to(file, pending)
        with file.open("r+b") as opened:
            checksum = hashlib.file_digest(opened, "sha256").hexdigest()
            opened.seek(0, os.SEEK_END)
            opened.write(CHECKSUM_MARK + checksum.encode() + b"\n")
            opened.flush()
            os.fsync(opened.fileno())  # the whole file: SQLite does not sync what it copies
    except (StorageError, OSError) as error:
        file.unlink(missing_ok=True)
        if is_damage(error.__cause__):
            raise
        raise StorageError(f"{file} cannot be written ({error.__cause__ or error}). Choose another place.") from error


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


def is_export(file: Path) -> bool:
    """Return True for a database, by its first bytes, and for a damaged one: an empty file, or one with its suffix."""
    try:
        with foreign_files.open_file(file, sys.maxsize) as opened:
            begin = opened.read(len(SQLITE_HEADER))
    except OSError as error:
        raise RejectedError(f"{file} cannot be read: {error.strerror}.") from None
    return begin == SQLITE_HEADER or not begin or file.suffix.lower() in SUFFIXES
