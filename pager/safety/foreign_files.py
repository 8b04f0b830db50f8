"""Read files that somebody else may have made or put in place, and sync directories.

A pipe or a device in the place of a file never makes the caller wait, and no size fills the memory: every read has a
limit.
"""

import codecs
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

LARGEST_TEXT_BYTES = 16 << 20  # of a YAML file, a core block's file, a command, a Markdown file
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # opening a pipe does not wait for its writer


def open_file(path: Path, limit_bytes: int, *, follow_link: bool = True, own_only: bool = False) -> BinaryIO:
    """Open a regular file of limited size to read it. Raises OSError, whose strerror says what is wrong with it."""
    descriptor = os.open(path, _READING | (0 if follow_link else os.O_NOFOLLOW))
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a file", str(path))
        if own_only:
            refuse_others(path, status)
        if status.st_size > limit_bytes:
            raise _too_large(path, f"{status.st_size:,}", limit_bytes)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def refuse_others(path: Path, status: os.stat_result) -> None:
    """Raise OSError if a file or a directory is not of the user that this process runs as, also if that is root."""
    if status.st_uid != os.geteuid():
        why = f"it belongs to the user {status.st_uid} and not to {os.geteuid()}, as whom this process runs"
        raise PermissionError(errno.EPERM, why, str(path))


def read_bytes(
    path: Path, limit_bytes: int = LARGEST_TEXT_BYTES, *, follow_link: bool = True, own_only: bool = False
) -> bytes:
    """Return what is in a regular file of limited size. Raises OSError."""
    with open_file(path, limit_bytes, follow_link=follow_link, own_only=own_only) as file:
        content = file.read(limit_bytes + 1)  # it may have grown, and files of /proc do not say their size
    if len(content) > limit_bytes:
        raise _too_large(path, f"more than {limit_bytes:,}", limit_bytes)
    return content


def read_text(path: Path, limit_bytes: int = LARGEST_TEXT_BYTES, *, cut: bool = False) -> str:
    """Return the text of a regular file of limited size, line breaks as `\\n`. Raises OSError, UnicodeDecodeError.

    With `cut`, the first bytes of a character at the end are left out: the file is being written.
    """
    text = codecs.getincrementaldecoder("utf-8")().decode(read_bytes(path, limit_bytes), final=not cut)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def private(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=private)`; one that is created can be read by its owner only."""
    return os.open(path, flags, 0o600)


def sync_directory(path: Path) -> None:
    """Write a directory's entries to the disk: a file that was renamed into it is still there after a power loss."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _too_large(path: Path, size: str, limit_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"it has {size} bytes, and at most {limit_bytes:,} are read", str(path))
