"""Throw-away environments for peers: one each, from the package index, pinned, outside of ours.

They are kept in a cache directory (`$SELFPAGER_PEERS`, else beside the user's other caches) until their pins change.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "peers"
PEERS = ("mem0", "langgraph")
INSTALL_SECONDS = 600


def cache_directory(environ: dict[str, str]) -> Path:
    named = environ.get("SELFPAGER_PEERS")
    return (
        Path(named) if named else Path(environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "selfpager-peers"
    )


def python(cache: Path, peer: str) -> Path | None:
    """The peer's interpreter, if its environment is complete and of the present pins."""
    done = cache / peer / "installed.txt"
    if not done.is_file() or done.read_text(encoding="utf-8") != _pins(peer):
        return None
    return cache / peer / "bin" / "python"


def install(cache: Path, peer: str) -> str:
    """Make what is missing; why it could not be made, or nothing."""
    if python(cache, peer):
        return ""
    place = cache / peer
    try:
        place.mkdir(parents=True, exist_ok=True)
        venv.create(place, clear=True, with_pip=True)
        subprocess.run(
            [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "-r", REQUIREMENTS / f"requirements-{peer}.txt"],
            check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        told = [line for line in (error.stderr or "").splitlines() if line.startswith("ERROR")]
        return (told or [f"pip ended with {error.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        return f"it was not installed in {INSTALL_SECONDS} s"
    except OSError as error:
        return f"{place} cannot be made: {error.strerror}"
    (place / "installed.txt").write_text(_pins(peer), encoding="utf-8")
    return ""


def pinned(peer: str) -> str:
    """The name and version of what a peer is."""
    lines = (REQUIREMENTS / f"requirements-{peer}.txt").read_text(encoding="utf-8").splitlines()
    return " ".join(next(line for line in lines if line and not line.startswith("#")).split("=="))


def _pins(peer: str) -> str:
    pins = (REQUIREMENTS / f"requirements-{peer}.txt").read_text(encoding="utf-8")
    return f"{sys.version_info[:2]}\n{pins}"


if __name__ == "__main__":
    for each in PEERS:
        why = install(cache_directory(dict(os.environ)), each)
        print(f"{each}: {why or 'installed'}", file=sys.stderr)
