"""Rows of long lists, as those who look on page through them. Plain and frozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from pager.types import Answered, Block, Json

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """A piece of a list, and how long the whole list is."""

    total: int
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was answered, and when."""

    answered: Answered
    at: datetime


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, resident or not. `begins` is how its text begins, `calls` are the tools that it called."""

    page_id: str
    turn: int
    kind: str
    who: str
    at: datetime
    tokens: int
    resident: bool
    purged: bool
    begins: str
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A said part of a step. `searchable` is not what our own tools answered."""

    part: int
    step: int
    slot: str
    searchable: bool
    block: Json


@dataclass(frozen=True, slots=True)
class CoreVersion:
    """A version of a core block, the newest step when it was made, and the how manieth it is, from 1."""

    block: Block
    step: int
    ordinal: int
