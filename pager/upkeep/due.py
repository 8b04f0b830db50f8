"""When agents of a directory want to be visited by a program that works for them without being asked.

A file per agent that wants it, in a folder beside the agents, with the moment in it. Agents without one cost nothing.
The files are hints: nothing is lost with one but the visit, so they are not synced.
"""

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pager.safety import foreign_files

FOLDER = ".due"


def set_due(home: Path, name: str, at: datetime | None) -> None:
    """Note when an agent wants to be visited next; None if never."""
    file = home / FOLDER / name
    if at is None:
        with suppress(FileNotFoundError):
            file.unlink()
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = file.with_name(f".{name}")
    with open(aside, "wb", opener=foreign_files.private) as written:
        written.write(at.isoformat().encode())
    aside.rename(file)


def due(home: Path) -> dict[str, datetime]:
    """Return when agents want to be visited, by their names."""
    found: dict[str, datetime] = {}
    with suppress(FileNotFoundError):
        for file in (home / FOLDER).iterdir():
            with suppress(OSError, ValueError):
                if not file.name.startswith("."):
                    found[file.name] = datetime.fromisoformat(file.read_text())
    return found
