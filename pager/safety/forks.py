"""A forked child is another process: it must not use what its parent has open, and not hold it open either.

Whatever is passed to `abandon_in_child` is told so in every child, before any other code runs there.
"""

import os
from typing import Protocol
from weakref import WeakSet

from pager.errors import InUseError


class Abandoned(Protocol):
    """An open resource of this process."""

    def abandon(self) -> None:
        """Let go of it in a forked child, without a change to what the parent has."""
        ...


_open: WeakSet[Abandoned] = WeakSet()
abandon_in_child = _open.add


def never_free(value: object) -> None:
    """Keep an object until the process ends, also while the interpreter shuts down."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def inherited(owner: int) -> InUseError:
    """Return the error for a child that uses what the process `owner` has opened."""
    why = "and a forked child cannot use it; the child may open a MemoryReader of its own"
    return InUseError(f"this memory was opened by process {owner}, {why}.")


def _abandon_all() -> None:
    for each in list(_open):
        each.abandon()


os.register_at_fork(after_in_child=_abandon_all)
