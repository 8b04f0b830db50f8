"""Turns: one call at a time, whichever thread it comes from; and no error leaves a call untold.

What Python says of a value that cannot be stored, and of stored bytes that cannot be read, becomes an error of ours
that says what to do. Nothing was written then: the call's transaction was undone.
"""

from __future__ import annotations

from json import JSONDecodeError
from threading import RLock

from pager.errors import Refused, StorageError


class Turns:
    """`with turns:` around every call; `lock` alone around what runs other people's code."""

    def __init__(self) -> None:
        self.lock = RLock()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self.lock.release()
        if isinstance(error, Exception):
            tell(error)


def tell(error: Exception) -> None:
    """Raise in plain words what is about the values given or about the file; let anything else go on as it is."""
    if isinstance(error, UnicodeEncodeError):
        odd = error.object[error.start : error.end]
        raise Refused(
            f"a text holds {odd!r:.20}, half of a character, which cannot be stored; leave it out."
        ) from error
    if isinstance(error, OverflowError):
        raise Refused("a number has more than 64 bits; give a smaller one.") from error
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        raise StorageError(
            f"pager.db holds what cannot be read ({error}), so it is damaged. It was left as it is: restore a backup "
            "of its directory."
        ) from error
