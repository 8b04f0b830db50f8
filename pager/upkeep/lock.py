"""One writing process per agent. The kernel holds the lock, and releases it when the process ends, however it does.

The file names the owner, so that a second process can be told. A second process first waits for half a second, because
some hold the lock only for a moment: whoever applies an edit to an idle agent, or asks for its owner.
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pager.clock import Clock
from pager.errors import InUseError, StorageError
from pager.safety import foreign_files, forks

LARGEST_BYTES = 1 << 16  # of the file that names the owner
PAUSES_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.15, 0.2)


class AgentLock:
    """The lock of an agent's directory, from construction to `release`. Raises InUseError with the owner."""

    def __init__(self, path: Path, *, wait: Callable[[float], object] = time.sleep) -> None:
        self._path, self._file = path, -1
        forks.abandon_in_child(self)
        try:
            # Its content is replaced by the owner's name, so it must be no link to another file.
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            why = f"({error.strerror}). Check the rights on its directory"
            raise StorageError(f"{path} cannot be written {why}.") from None
        try:
            for pause in PAUSES_SECONDS:
                with suppress(BlockingIOError):
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                wait(pause)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:  # also Ctrl-C while waiting
            self.abandon()
            if not isinstance(error, BlockingIOError):
                raise
            owner = _last_owner(self._path)
            who = f"process {owner['pid']} ({owner['command']}, since {owner['since']})" if owner else "another process"
            way = "close that one, send it a message, or open the agent for reading"
            why = f"is in use by {who}. Only one process can write to an agent"
            raise InUseError(f"{self._path.parent} {why}: {way}.") from None

    @property
    def had_owner(self) -> bool:
        """Return True if a process ever wrote itself down as the owner."""
        return os.fstat(self._file).st_size > 0

    def write_owner(self, clock: Clock) -> None:
        """Write this process down as the owner, once its memory is open."""
        command = " ".join(sys.argv)[:200]
        owner = {"pid": os.getpid(), "command": command, "since": clock.now().isoformat("T", "seconds")}
        with suppress(OSError):  # a full disk: the lock holds all the same, only its owner stays unnamed
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(owner).encode(), 0)

    def release(self) -> None:
        """Release the lock. A second call does nothing: the file's number may be another file's by then."""
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self.abandon()

    def abandon(self) -> None:
        """Close the file. In a forked child the lock stays with the parent, and ends with it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def current_owner(path: Path) -> dict[str, Any] | None:
    """Return pid, command and start of the process that holds the lock, or None."""
    owner = _last_owner(path)
    try:
        file = foreign_files.open_file(path, LARGEST_BYTES, follow_link=False)
    except OSError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return owner
        fcntl.flock(file, fcntl.LOCK_UN)  # a child that was forked meanwhile has the file open, too
    return None


def _last_owner(path: Path) -> dict[str, Any] | None:
    try:
        owner = json.loads(foreign_files.read_bytes(path, LARGEST_BYTES, follow_link=False))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", owner) if isinstance(owner, dict) else None
