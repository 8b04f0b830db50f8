"""Throw-away environments for peers: one each, from the package index, pinned, outside of ours.

They stay in a cache directory (`$SELFPAGER_PEERS`, else beside the user's other caches) until their pins change.
"""

import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "peers"
PEERS = ("mem0", "langgraph")
INSTALL_SECONDS = 600


def cache_directory(environ: Mapping[str, str]) -> Path:
    if named := environ.get("SELFPAGER_PEERS"):
        return Path(named)
    return Path(environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "selfpager-peers")


def python(cache: Path, peer: str) -> Path | None:
    """Return the peer's interpreter, if its environment is complete and of the present pins."""
    done = cache / peer / "installed.txt"
    if done.is_file() and done.read_text(encoding="utf-8") == stamp(peer):
        return cache / peer / "bin" / "python"
    return None


def install(cache: Path, peer: str) -> str:
    """Make what is missing; return why it could not be made, or nothing."""
    if python(cache, peer):
        return ""
    place = cache / peer
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        place.mkdir(parents=True, exist_ok=True)
        venv.create(place, clear=True, with_pip=True)
        command = [*pip, "-r", _requirements(peer)]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        return (error.stderr or f"pip ended with {error.returncode}").strip().splitlines()[-1]
    except subprocess.TimeoutExpired:
        return f"it was not installed in {INSTALL_SECONDS} s"
    except OSError as error:
        return f"{place} cannot be made: {error.strerror}"
    (place / "installed.txt").write_text(stamp(peer), encoding="utf-8")
    return ""


def pinned(peer: str) -> str:
    """Return the name and version of what a peer is."""
    lines = _requirements(peer).read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line and not line.startswith("#")).replace("==", " ")


def stamp(peer: str) -> str:
    return f"{sys.version_info[:2]}\n{_requirements(peer).read_text(encoding='utf-8')}"


def _requirements(peer: str) -> Path:
    return REQUIREMENTS / f"requirements-{peer}.txt"
