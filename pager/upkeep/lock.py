"""One writing process per agent. The lock is the kernel's: it goes with the process, however that ends.

The file says who holds it, so that the second one can be told: after a moment, because some only hold it for an instant
(who carries out an edit of an agent at rest, who asks whether it is held).
"""

from __future__ import annotations

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

PAUSES_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.15, 0.2)  # half a second in all


class AgentLock:
    def __init__(self, path: Path, *, wait: Callable[[float], object] = time.sleep) -> None:
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written ({error.strerror}). Check the rights on its directory."
            ) from None
        try:
            self._take(wait)
        except BlockingIOError:
            os.close(self._file)
            raise InUseError(self._who()) from None
        except BaseException:  # Ctrl-C while waiting
            os.close(self._file)
            raise

    def _take(self, wait: Callable[[float], object]) -> None:
        for pause in PAUSES_SECONDS:
            with suppress(BlockingIOError):
                return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            wait(pause)
        return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @property
    def was_held(self) -> bool:
        """Whether an owner has ever said who it is."""
        return os.fstat(self._file).st_size > 0

    def say(self, clock: Clock) -> None:
        """Write down who holds it: when its holder has a memory."""
        owner = {
            "pid": os.getpid(),
            "command": " ".join(sys.argv)[:200],
            "since": clock.now().isoformat("T", "seconds"),
        }
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(owner).encode(), 0)
        except OSError:
            # A full disk: the lock itself holds, only its holder stays unnamed.
            return

    def _who(self) -> str:
        owner = holder(self._path)
        who = f"process {owner['pid']} ({owner['command']}, since {owner['since']})" if owner else "another process"
        return (
            f"{self._path.parent} is in use by {who}. Only one process writes an agent: close that one, leave it a "
            "message, or open the agent for reading."
        )

    def release(self) -> None:
        """Once: the number of a closed file may be somebody else's by then."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def held_by(path: Path) -> dict[str, Any] | None:
    """Who holds the lock now. The kernel is asked, for an instant, only when a process of that number lives."""
    owner = holder(path)
    if owner is None or not _lives(owner.get("pid")):
        return None
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return owner
    finally:
        os.close(file)
    return None


def _lives(pid: Any) -> bool:
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, TypeError):
        return False
    return True


def holder(path: Path) -> dict[str, Any] | None:
    """Who wrote the lock file last; None when nobody did."""
    try:
        told = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", told) if isinstance(told, dict) else None
