"""Formats that are newer than ours, and change nothing: what an upgrade of selfpager brings with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from pager.store import schema

MIGRATIONS = schema.MIGRATIONS
KNOW_IT = ("pager.store.schema", "pager.store.database")
KNOW_IT_IN_POSTGRES = ("pager.log.copy", "pager.log.home_rows", "pager.log.rows", "pager.log.place", "pager.log.states")
NO_CHANGE = "SELECT 1"
FORMAT = re.compile(r"\bformat = \d+")


def know_formats(more: int, *, postgres: bool = True) -> None:
    """Let this process know so many formats more than there are."""
    migrations = (*MIGRATIONS, *[NO_CHANGE] * more)
    for name in (*KNOW_IT, *(KNOW_IT_IN_POSTGRES if postgres else ())):
        module = vars(import_module(name))
        module["VERSION"] = len(migrations)
        if "MIGRATIONS" in module:
            module["MIGRATIONS"] = migrations
        if "_COMMIT" in module:
            module["_COMMIT"], changed = FORMAT.subn(f"format = {len(migrations)}", module["_COMMIT"])
            assert changed == 1


@contextmanager
def newer(*, postgres: bool = True) -> Iterator[None]:
    """Be of the next version for a block."""
    know_formats(1, postgres=postgres)
    try:
        yield
    finally:
        know_formats(0, postgres=postgres)
