"""One accent colour per tier, the same in `show`, in `view` and in the README. Plain data: whoever draws reads it.

Parts of the window take the colour of the tier that they belong to, or a shade of it; what the program fixes is grey.
The colours are readable on dark and on light. Without colours each part has a letter.
"""

from typing import NamedTuple

CORE = "#d97706"
RECALL = "#3b82f6"
ARCHIVAL = "#0d9488"
TIERS = {"core": CORE, "recall": RECALL, "archival": ARCHIVAL}

WARNING = "#dc2626"
QUIET = "#7c8594"


class Paint(NamedTuple):
    """A colour, and the letter that stands for it where there are no colours."""

    colour: str
    letter: str


WINDOW = {
    "instructions": Paint("#6b7280", "i"),
    "tools": Paint("#9ca3af", "t"),
    "core": Paint(CORE, "C"),
    "digest": Paint("#93b4f5", "d"),
    "pinned": Paint("#a855f7", "p"),
    "request": Paint("#1d4ed8", "r"),
    "recalled": Paint(ARCHIVAL, "a"),
    "steps": Paint(RECALL, "#"),
    "free": Paint("#8b93a3", "."),
}


def as_css() -> str:
    """Return the same colours as custom properties: `--core`, `--part-steps`."""
    parts = {f"part-{part}": paint.colour for part, paint in WINDOW.items()}
    names = {**TIERS, "warning": WARNING, "quiet": QUIET, **parts}
    lines = "".join(f"  --{name}: {colour};\n" for name, colour in names.items())
    return f":root {{\n{lines}}}\n"
