"""The last line of an exported file: a checksum of all that stands before it. Of a database, SQLite notices a broken
page and never a changed letter; and it does not look behind the last page, where this line is.

    >>> file = directory / "export"
    >>> seal(file) if file.write_bytes(b"text") else None
    >>> unseal(file), file.read_bytes()      # a StorageError if it is no longer what was sealed
    (True, b'text')
    >>> unseal(file)
    False
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from pager.errors import StorageError

MARK = b"\nselfpager export, sha256 of what is above: "
LENGTH = len(MARK) + 2 * hashlib.sha256().digest_size + 1


def seal(file: Path) -> None:
    """On disk when this returns."""
    with file.open("r+b") as opened:
        checksum = hashlib.file_digest(opened, "sha256").hexdigest()
        opened.seek(0, os.SEEK_END)
        opened.write(MARK + checksum.encode() + b"\n")
        opened.flush()
        os.fsync(opened.fileno())


def unseal(file: Path) -> bool:
    """Whether there was a line to take off. A plain copy of a database has none."""
    with file.open("r+b") as opened:
        end = opened.seek(0, os.SEEK_END) - LENGTH
        opened.seek(max(0, end))
        line = opened.read()
        if end < 0 or not line.startswith(MARK):
            return False
        opened.truncate(end)
        opened.seek(0)
        if hashlib.file_digest(opened, "sha256").hexdigest().encode() != line[len(MARK) : -1]:
            raise StorageError(
                f"{file} is damaged: it is not what was exported, byte for byte. Export again, or take another copy."
            )
    return True
