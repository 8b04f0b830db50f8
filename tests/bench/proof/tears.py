"""How a file is torn: cut off, or a page of noughts in it; near its beginning, and in the middle. Pure.

The middle alone would say little: of a log that SQLite has begun anew only the beginning is in use.
"""

from __future__ import annotations

from collections.abc import Sequence

PLACES = (0.05, 0.5)  # of a file's length
PAGE = 4_096
WELL = "lost nothing"
FEW = 3  # files that are named


def told(ends: Sequence[tuple[str, str]]) -> str:
    """How often it ended how; of bad ends, which files it was, if they are few."""
    return f"{len(ends)} tears of {len({name for _, name in ends})} files: " + ", ".join(
        f"{sum(each == end for each, _ in ends)} {end}{_of_files({name for each, name in ends if each == end}, end)}"
        for end in dict.fromkeys(each for each, _ in ends)
    )


def _of_files(names: set[str], end: str) -> str:
    return f" ({', '.join(sorted(names))})" if end != WELL and len(names) <= FEW else ""


def cut(held: bytes, place: float) -> bytes:
    return held[: int(len(held) * place)]


def blank(held: bytes, place: float) -> bytes:
    start = int(len(held) * place) // PAGE * PAGE
    page = held[start : start + PAGE]
    return held[:start] + bytes(len(page)) + held[start + len(page) :]


KINDS = (cut, blank)
