"""What runs in processes that are killed: see tests/crash/children.py."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from pager import Home
from pager.log.rows import Rows
from tests.crash.children import die, heard, say
from tests.crash.load import scripted
from tests.support.postgres import install_log

NEVER = 1_000_000


def killed_at_commit(address: str, directory: Path, deadly: int, when: str) -> None:
    """Make every kind of call, the same in every run. Die at the commit of that number: before it is sent, though
    SQLite has committed it, or when Postgres has it and nobody was told."""
    install_log(address)
    commit, numbers = Rows.commit, count(1)
    last = 0

    def deadly_commit(*args: Any) -> bool | None:
        nonlocal last
        last = next(numbers)
        if last == deadly and when == "unsent":
            die()
        answer = commit(*args)
        if last == deadly and when == "stored":
            die()
        return answer

    Rows.commit = deadly_commit  # type: ignore[method-assign]
    scripted(directory, NEVER, "before")
    say("commits", last)


def hold(address: str, name: str) -> None:
    """Open an agent, store a fact, and wait for the end."""
    memory = Home(address).open(name, embedder=None)
    say("fact", memory.archive("of the first").id)
    heard()
