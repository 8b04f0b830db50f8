"""Starts a module of this package as a child process, for work that could end this process or block its threads.

The child finds the package where this process imported it from, as the last entry of its path; -P keeps the working
directory off the path.
"""

from __future__ import annotations

import sys
from pathlib import Path

_RUN = "import sys; sys.path.append(sys.argv.pop(1)); from {module} import main; main()"


def command(module: str, *arguments: object) -> list[str]:
    """Return the command that calls `main` of a module with these arguments."""
    home = str(Path(__file__).resolve().parents[3])
    return [sys.executable, "-P", "-c", _RUN.format(module=module), home, *map(str, arguments)]


def describe_end(exit_code: int | None, output: bytes) -> str:
    """Return how a child ended, with the last line that it wrote."""
    lines = output.decode(errors="replace").strip().splitlines() or ["no message"]
    return f"ended a child process with {exit_code}: {lines[-1][:500]}"
