"""A worker: `python -m tests.chaos.worker FORMAT MOMENTS MUTANT serve ...` is `selfpager serve ...`, but that

- it knows so many formats more, which change nothing
- its log is folded soon
- the beginning and the end of each restore and each fold are noted in a file
- it may be a mutant
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from threading import Thread
from typing import Any

from agents.cli.main import run
from pager.errors import StorageError
from pager.log import log, rows
from pager.log.log import Log
from pager.log.rows import Rows
from pager.log.states import States
from tests.support.formats import know_formats

FOLD_BYTES = 8 << 10


def without_fence() -> None:
    """Commit though another has claimed the agent."""
    fence = "(fence, claim) = (%s, %s)"
    assert fence in rows._COMMIT
    rows._COMMIT = rows._COMMIT.replace(fence, "%s > 0 AND %s IS NOT NULL")


def acknowledge_early() -> None:
    """Say that a commit is stored before it is."""
    commit = Rows.commit

    def commit_later(*args: Any) -> bool:
        try:
            return bool(commit(*args))
        except StorageError:
            return False

    Rows.commit = commit_later  # type: ignore[method-assign]


def without_sequence() -> None:
    """Commit on top of whatever is there."""
    assert "AND seq = %s" in rows._COMMIT
    rows._COMMIT = rows._COMMIT.replace("AND seq = %s", "AND %s >= 0")


MUTANTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "no_fence": without_fence,
    "early": acknowledge_early,
    "no_sequence": without_sequence,
}


def _note_moments(path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def noted(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            os.write(file, f"{kind} begins {os.getpid()}\n".encode())
            try:
                return function(*args)
            finally:
                os.write(file, f"{kind} ends {os.getpid()}\n".encode())

        return call

    Log._fold = noted("fold", Log._fold)  # type: ignore[method-assign]
    States.restore = noted("restore", States.restore)  # type: ignore[method-assign]


def _end_with_parent() -> None:
    """End when the harness does, however that ends."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with_parent, daemon=True).start()
    formats, moments, mutant, *arguments = sys.argv[1:]
    know_formats(int(formats))
    log.FOLD_BYTES = FOLD_BYTES
    _note_moments(moments)
    MUTANTS[mutant]()
    sys.argv[1:] = arguments
    sys.exit(run(arguments))
