"""One call at a time, whichever thread it comes from; and no error leaves a facade unexplained.

Ctrl-C is raised wherever the program is, also between a commit and what follows it in memory. So the next call begins
by undoing what was not committed, and by reading again what is cached.
"""

import os
from collections.abc import Callable
from functools import wraps
from json import JSONDecodeError
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

from pager.arguments import require_actor, require_hinted
from pager.errors import RejectedError, StorageError, brief
from pager.safety import forks

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


class CallLock:
    """The lock of one facade: `with lock.lock, lock:` around a call, `lock.lock` alone around other people's code."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self._lock = RLock()  # implemented in C: no interrupt comes between taking it and the block
        self._owner = os.getpid()
        self._undo = undo
        self._was_interrupted = False

    @property
    def is_inherited(self) -> bool:
        """Return True in a forked child: files and locks are its parent's, and what is cached is an old copy."""
        return os.getpid() != self._owner

    @property
    def lock(self) -> RLock:
        """Return the lock between threads. Raises InUseError in a forked child, where it might be held for ever."""
        if os.getpid() != self._owner:  # `is_inherited`, written out: every call comes through here
            raise forks.inherited(self._owner)
        return self._lock

    def begin(self) -> None:
        """Undo what an interrupt cut off."""
        if self._was_interrupted:
            self._undo()
            self._was_interrupted = False

    __enter__ = begin

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            explain(error)
        elif error is not None:
            self.record_interrupt(error)

    def record_interrupt(self, error: BaseException) -> None:
        """Remember an interrupt, which may have left something half done. Any other error came where it is expected."""
        self._was_interrupted = self._was_interrupted or not isinstance(error, Exception | GeneratorExit)


def locked(method: Callable[Concatenate[Any, P], R], *, checks: bool = False) -> Callable[Concatenate[Any, P], R]:
    """Make a method of a facade (with a `_call_lock`) wait for other threads' calls, and check its `actor`. With
    `checks` check all its arguments."""
    hints = {name: hint for name, hint in method.__annotations__.items() if name != "return"}

    @wraps(method)
    def locked_method(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._call_lock.lock, self._call_lock:
            if "actor" in kwargs:
                require_actor(kwargs["actor"])
            if checks:
                require_hinted(hints, [*zip(hints, args, strict=False), *kwargs.items()])
            return method(self, *args, **kwargs)

    return locked_method


def in_pieces(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Let a method of a `locked_class` take the lock itself, piece by piece: others do not wait while it works long."""
    method.in_pieces = True  # type: ignore[attr-defined]
    return method


def _checked(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    hints = {name: hint for name, hint in method.__annotations__.items() if name != "return"}

    @wraps(method)
    def checked_method(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        require_hinted(hints, [*zip(hints, args, strict=False), *kwargs.items()])
        return method(self, *args, **kwargs)

    return checked_method


def locked_class(facade: type[C]) -> type[C]:
    """Make every public method of a class `locked`, with all arguments checked, but for those `in_pieces`."""
    for name, method in list(vars(facade).items()):
        if not name.startswith("_"):
            setattr(facade, name, _checked(method) if hasattr(method, "in_pieces") else locked(method, checks=True))
    return facade


def explain(error: Exception) -> None:
    """Raise a plain error for what Python says about values and damaged files; return for any other error."""
    if isinstance(error, UnicodeEncodeError):
        odd = error.object[error.start : error.end]
        why = "half of a character, which cannot be stored; leave it out"
        raise RejectedError(f"a text holds {brief(odd, 20)}, {why}.") from error
    if isinstance(error, OverflowError):
        raise RejectedError("a number has more than 64 bits; give a smaller one.") from error
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        way = "It was left as it is: restore a backup of its directory"
        raise StorageError(f"pager.db holds what cannot be read ({error}), so it is damaged. {way}.") from error
