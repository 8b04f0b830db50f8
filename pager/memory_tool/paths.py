"""The paths of the provider's memory tool, as blocks, facts, days and pages. Pure.

/memories/core/<block>.md     a core block
/memories/archive/<key>       the current fact of a key; a fact without a key is named by its id: f12
/memories/<key>               the fact of the key /<key>, for programs that put their files anywhere
/memories/recall/<day>.md     what was said on a day and is not in the prompt; and any page by its id: s45, x3

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
MAX_NAME_BYTES = 255
_FACT_ID = re.compile(r"f[0-9]+")
_ABOVE = "/-"  # stands for what lies above /memories, so that a path can lead there


class Place(NamedTuple):
    """The target of a path. `area` is empty for /memories itself, `name` for the directory of the area."""

    area: str
    name: str


def place_of(path: str) -> Place:
    """Return the place of a path, resolved as a file system would. Raises RejectedError if it leads elsewhere."""
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
    """Return the path of a place."""
    if place.area == ARCHIVE and place.name.startswith("/"):
        return f"{ROOT}{place.name}"
    return "/".join(filter(None, (ROOT, place.area, place.name)))


def path_of_key(key: str) -> str:
    """Return the path of the fact of a key."""
    return path_of(Place(ARCHIVE, key))


def parents(place: Place) -> list[Place]:
    """Return the directories above a place of the archive, outermost first."""
    names = place.name.split("/")
    ends = range(2 if place.name.startswith("/") else 1, len(names))
    return [Place(place.area, "/".join(names[:end])) for end in ends]


def number_of_fact(name: str) -> int | None:
    """Return the number of the fact if a name in the archive is a fact's id."""
    return int(name[1:]) if _FACT_ID.fullmatch(name) else None


def is_name(key: str) -> bool:
    """Return True if a key can be a file's name; else the fact is named by its id."""
    names = key.removeprefix("/").split("/")
    whole = all(name not in ("", ".", "..") and name.isprintable() for name in names)
    short = all(len(name.encode()) <= MAX_NAME_BYTES for name in names)
    free = not _FACT_ID.fullmatch(key) and not (key.startswith("/") and names[0] in AREAS)
    return whole and short and free and key == key.strip()
