"""A worker: `python -m tests.chaos.worker FORMAT MOMENTS MUTANT serve ...` is `selfpager serve ...`, but that

- it knows so many formats more, which change nothing
- its log is folded soon
- the beginning and the end of each restore and each fold are noted in a file
- it may be a mutant
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from agents.cli.main import run
from pager.errors import StorageError
from pager.log import log, rows
from pager.log.claim import Claim
from pager.log.log import Log
from pager.log.rows import Rows
from pager.log.states import States
from tests.support.formats import know_formats

FOLD_BYTES = 8 << 10
LATE_SECONDS = 1.0
HONEST_COMMITS = 10


def no_fence() -> None:
    """Commit whoever has claimed the agent, and whatever has been committed since; hear nothing from renewals."""
    ours = "(fence, claim) = (%s, %s) AND seq = %s"
    assert ours in rows._COMMIT
    rows._COMMIT = rows._COMMIT.replace(ours, "(%s, %s) IS NOT NULL AND %s >= 0")
    Log._renewed = lambda *_, **__: None  # type: ignore[method-assign]


def early() -> None:
    """Say that a commit is stored, and store it a little later. An agent is made as it should be."""
    commit, late = Rows.commit, SimpleQueue[Any]()

    def store() -> None:
        while True:
            first = late.get()
            time.sleep(LATE_SECONDS)
            for arguments in (first, *(late.get() for _ in range(late.qsize()))):
                with suppress(StorageError):
                    commit(*arguments)

    def acknowledge(mine: Rows, claim: Claim, seq: int, parts: Sequence[bytes]) -> bool | None:
        if seq <= HONEST_COMMITS:
            return commit(mine, claim, seq, parts)
        late.put((mine, claim, seq, parts))
        return False

    Thread(target=store, daemon=True).start()
    Rows.commit = acknowledge  # type: ignore[method-assign]
    log.FOLD_BYTES = 1 << 30  # a fold of what is not stored yet could be read by nobody


MUTANTS: dict[str, Callable[[], None]] = {"none": lambda: None, "no_fence": no_fence, "early": early}


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
