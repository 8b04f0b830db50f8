"""A module of ours as a process of its own, for what could end this one, or would hold up its threads.

The child finds this package wherever it was imported from, but behind all else on its path; -P keeps the working
directory off it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

_RUN = "import sys; sys.path.append(sys.argv.pop(1)); from {module} import main; main()"


def command(module: str, *arguments: object) -> list[str]:
    """The command that calls `main` of that module."""
    home = str(Path(__file__).resolve().parents[3])
    return [sys.executable, "-P", "-c", _RUN.format(module=module), home, *map(str, arguments)]


def last_words(told: IO[bytes]) -> str:
    """The end of what a child wrote to this file before it died."""
    told.seek(0)
    lines = told.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:500] if lines else "no message"
