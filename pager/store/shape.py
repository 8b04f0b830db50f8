"""What SQLite stores of a schema, and how two of them differ."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Shape = Mapping[tuple[str, str], tuple[str, ...]]  # (type, name) -> its table and its SQL
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master"
# Blanks and comments as SQLite reads them, and what is quoted, where neither counts.
# What has no end goes on to the end of the text.
_COMMENT = re.compile(
    r"""'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|(?:[ \t\n\f\r]|--[^\n]*+(?:\n|\Z)|/\*.*?(?:\*/|\Z))++""",
    re.DOTALL,
)


def shape_of(row: Sequence[Any]) -> tuple[str, ...]:
    """Return table and SQL of a row of `SCHEMA`, without the comments, which change nothing."""
    return str(row[2]), _COMMENT.sub(lambda found: found[0] if found[0][0] in "'\"" else " ", str(row[3]))


def difference(found: Shape, ours: Shape) -> str:
    """Return the first thing that a schema has, lacks or has otherwise than ours; empty if there is none."""
    if added := sorted(found.keys() - ours.keys()):
        return f"has the {' '.join(added[0])}, which selfpager did not make"
    if lost := sorted(ours.keys() - found.keys()):
        return f"is damaged: it lacks the {' '.join(lost[0])}"
    changed = sorted(each for each in ours if found[each] != ours[each])
    return f"has the {' '.join(changed[0])} other than selfpager made it" if changed else ""
