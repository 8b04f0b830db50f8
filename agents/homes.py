"""Where agents live: one directory each under the home (`--home`, $SELFPAGER_HOME, or the user's data directory)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pager.errors import NotFound, Refused
from pager.opening import DATABASE

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def home_directory(home: str | Path | None, environ: Mapping[str, str]) -> Path:
    if home:
        return Path(home).expanduser()
    if told := environ.get("SELFPAGER_HOME"):
        return Path(told).expanduser()
    from platformdirs import user_data_path

    return user_data_path("selfpager")


def directory_of(name: str, home: str | Path | None, environ: Mapping[str, str]) -> Path:
    if not _NAME.fullmatch(name):
        raise Refused(
            f"{name!r} cannot be an agent's name: letters, digits, '.', '_' and '-', beginning with a letter or digit, "
            "at most 64."
        )
    return home_directory(home, environ) / name


def existing(name: str, home: str | Path | None, environ: Mapping[str, str]) -> Path:
    """The directory of an agent that is there; else an error that names the ones that are."""
    directory = directory_of(name, home, environ)
    if (directory / DATABASE).is_file():
        return directory
    names = ", ".join(agents_in(directory.parent)) or "none yet"
    raise NotFound(f"there is no agent {name!r} in {directory.parent}; there are: {names}.")


def agents_in(home: Path) -> list[str]:
    """The names of those that can be opened by their name; another program's directories are not ours to list."""
    names = (path.parent.name for path in home.glob(f"*/{DATABASE}"))
    return sorted(name for name in names if _NAME.fullmatch(name))
