"""Turns: one call at a time, whichever thread it comes from; and no error leaves a call untold.

What Python says of a value that cannot be stored, and of stored bytes that cannot be read, becomes an error of ours
that says what to do. Nothing was written then: the call's transaction was undone.

A Ctrl-C is raised wherever the program is, also between a commit and what follows it in memory. So the next call
begins by undoing what was not committed, and by forgetting what is in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from json import JSONDecodeError
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

from pager.arguments import name_of_actor
from pager.errors import RejectedError, StorageError

P = ParamSpec("P")
R = TypeVar("R")


class CallLock:
    """`with turns.lock, turns:` around every call; `lock` alone around what runs other people's code."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self.lock = RLock()  # in C: no interrupt comes between taking it and the block
        self._undo = undo
        self._is_cut_off = False

    def __enter__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Undo what an interrupt cut off."""
        if self._is_cut_off:
            self._undo()
            self._is_cut_off = False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            tell(error)
        elif error is not None:
            self.left_by(error)

    def left_by(self, error: BaseException) -> None:
        """What an interrupt cut off may be half done; any other error came where it was expected."""
        self._is_cut_off = self._is_cut_off or not isinstance(error, Exception | GeneratorExit)


def locked(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """One call at a time, whichever thread it comes from, by an actor that has a name."""

    @wraps(method)
    def in_turn(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._turns.lock, self._turns:
            if "actor" in kwargs:
                name_of_actor(kwargs["actor"])
            return method(self, *args, **kwargs)

    return in_turn


def tell(error: Exception) -> None:
    """Raise in plain words what is about the values given or about the file; let anything else go on as it is."""
    if isinstance(error, UnicodeEncodeError):
        odd = error.object[error.start : error.end]
        raise RejectedError(
            f"a text holds {odd!r:.20}, half of a character, which cannot be stored; leave it out."
        ) from error
    if isinstance(error, OverflowError):
        raise RejectedError("a number has more than 64 bits; give a smaller one.") from error
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        raise StorageError(
            f"pager.db holds what cannot be read ({error}), so it is damaged. It was left as it is: restore a backup "
            "of its directory."
        ) from error
