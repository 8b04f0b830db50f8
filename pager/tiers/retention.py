"""Retention: how long facts are true that are stored with a tag and without an end of their own.

>>> ends = read({"note": "90d"})
>>> end_of(ends, ["Note"], datetime(2026, 5, 3, tzinfo=UTC)).isoformat()
'2026-08-01T00:00:00+00:00'
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pager.arguments import normalized
from pager.blocks import dump
from pager.clock import from_micros, read_duration, to_micros
from pager.errors import RejectedError, brief
from pager.store import Store

SETTING = "retention"


def read(given: Mapping[str, str]) -> dict[str, timedelta]:
    """Return the span of each tag, in the form by which tags are found. Raises RejectedError."""
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
        raise RejectedError(f"retention is {brief(given)}; give a dict such as {{'note': '90d'}}.")
    spans: dict[str, timedelta] = {}
    for tag, span in given.items():
        if not isinstance(tag, str) or not tag.strip():  # pyright: ignore[reportUnnecessaryIsInstance] -- from a program
            raise RejectedError(f"retention names the tag {brief(tag)}; a tag is a text with letters.")
        try:
            spans[normalized(tag).casefold()] = read_duration(span)
        except RejectedError as error:
            raise RejectedError(f"retention of {brief(tag)}: {error}") from None
    return spans


def save(store: Store, given: Mapping[str, str]) -> None:
    """Store the retention, in a transaction of the caller. Facts that are there already stay as they are."""
    read(given)
    store.settings.put(SETTING, dump(dict(given)) if given else None)


def load(store: Store) -> dict[str, timedelta]:
    """Return the stored retention."""
    stored: Any = json.loads(store.settings.get(SETTING) or "{}")
    return read(stored)


def end_of(spans: Mapping[str, timedelta], tags: Sequence[str], begin: datetime) -> datetime | None:
    """Return the end of a fact that begins at a moment, by the shortest span of its tags; None without one."""
    kept = [spans[tag.casefold()] for tag in tags if tag.casefold() in spans]
    if not kept:
        return None
    return from_micros(to_micros(begin) + min(kept) // timedelta(microseconds=1), begin.tzinfo or UTC)
