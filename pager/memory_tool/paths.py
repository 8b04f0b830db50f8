"""The tiers as paths of the provider's memory tool. Pure.

/memories/core/<block>.md     a core block
/memories/archive/<key>       the fact of that key that is current; without a key it goes by its id: f12
/memories/<key>               the fact of the key /<key>: for programs that put their files anywhere
/memories/recall/<day>.md     what was said that day and has left the view; and any page by its id: s45, x3

>>> place_of("/memories/archive/travel/seat")
Place(area='archive', name='travel/seat')
>>> place_of("/memories/todo.md"), path_of_key("/todo.md")
(Place(area='archive', name='/todo.md'), '/memories/todo.md')
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple
from unicodedata import normalize

from pager.errors import RejectedError

ROOT = "/memories"
ARCHIVE, CORE, RECALL = "archive", "core", "recall"
AREAS = (ARCHIVE, CORE, RECALL)
MARKDOWN = ".md"
LONGEST_NAME_BYTES = 255
_FACT_ID = re.compile(r"f[0-9]+")
_ABOVE = "/-"  # whatever lies above /memories, so that it can be left


class Place(NamedTuple):
    """Where a path leads. `area` is empty for /memories itself, `name` for the directory of the area."""

    area: str
    name: str


def place_of(path: str) -> Place:
    """The place that a path names, as a file system would resolve it, or why it names none."""
    if not path.startswith(ROOT):
        raise RejectedError(f"Path must start with {ROOT}, got: {path}")
    whole = posixpath.normpath(f"{_ABOVE}{ROOT}/{normalize('NFC', path[len(ROOT) :])}")
    if whole != _ABOVE + ROOT and not whole.startswith(f"{_ABOVE}{ROOT}/"):
        raise RejectedError(f"Path {path} would escape {ROOT} directory")
    inside = whole[len(_ABOVE + ROOT) + 1 :]
    area, _, name = inside.partition("/")
    if not inside or area in AREAS:
        return Place(area, name)
    return Place(ARCHIVE, f"/{inside}")


def path_of(place: Place) -> str:
    if place.area == ARCHIVE and place.name.startswith("/"):
        return f"{ROOT}{place.name}"
    return "/".join(filter(None, (ROOT, place.area, place.name)))


def path_of_key(key: str) -> str:
    return path_of(Place(ARCHIVE, key))


def above(place: Place) -> list[Place]:
    """The directories over a place of the archive, from the outermost."""
    names = place.name.split("/")
    ends = range(2 if place.name.startswith("/") else 1, len(names))
    return [Place(place.area, "/".join(names[:end])) for end in ends]


def number_of_fact(name: str) -> int | None:
    """The fact that a name in the archive means by its id."""
    return int(name[1:]) if _FACT_ID.fullmatch(name) else None


def is_name(key: str) -> bool:
    """Whether the fact of this key can go by it; else it goes by its id."""
    names = key.removeprefix("/").split("/")
    whole = all(name not in ("", ".", "..") and name.isprintable() for name in names)
    short = all(len(name.encode()) <= LONGEST_NAME_BYTES for name in names)
    free = not _FACT_ID.fullmatch(key) and not (key.startswith("/") and names[0] in AREAS)
    return whole and short and free and key == key.strip()
