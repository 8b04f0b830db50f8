"""May this directory be opened? Answered without opening it in this process, which a broken one could end.

`useless` and `damage` look at the files; `probe` reads from them in a child process:

    python -m pager.vectors.chroma.probe DIRECTORY DIMENSION

prints how many vectors the directory holds and exits 0. Anything else (another exit code, a signal, no answer
in time) means no.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pager.vectors.chroma.child_process import command as child_command
from pager.vectors.chroma.files import IndexDirectory, State
from pager.vectors.index import IndexUnavailableError, VectorSource

TIMEOUT_S = 120  # a hundred thousand entries are replayed in a quarter of that
REACH = 1_000  # neighbours asked for, so that the search walks through much of the graph


def useless(files: IndexDirectory, state: State | None, source: VectorSource) -> str:
    """Why there is nothing to look at, or an empty string."""
    if state is None:
        return "no index yet, or no readable state"
    if not files.path(state.live).is_dir():
        return "the index is missing"
    if (state.fingerprint, state.dimension) != (source.fingerprint, source.dimension):
        return f"the vectors are now {source.fingerprint}, the index had {state.fingerprint}"
    # Several times what the largest file can have come to, duplicates in the log included. Torn flushes leave
    # sparse files of terabytes, which nobody wants in quarantine either: a copy of one fills the disk.
    plausible_bytes = 256_000_000 + 20 * source.count(source.last_id()) * (4 * source.dimension + 512)
    name, size_bytes = files.largest(state.live)
    if size_bytes > plausible_bytes:
        return f"{name} has grown to {size_bytes} bytes"
    return ""


def damage(files: IndexDirectory, state: State) -> str:
    """What would make opening dangerous, or an empty string."""
    altered = files.altered(state)
    if altered:
        return f"{altered} is not as it was written"
    if state.clean:
        return ""
    try:
        probe(files.path(state.live), state.dimension)
    except IndexUnavailableError as error:
        return str(error)
    return ""


def probe(directory: Path, dimension: int, *, timeout_s: float = TIMEOUT_S) -> int:
    """How many vectors a child process finds in the directory; IndexUnavailableError if it finds trouble."""
    command = child_command(__name__, directory, dimension)
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=False, start_new_session=True
        )
        if child.returncode == 0:
            return int(child.stdout.split()[-1])
    except subprocess.TimeoutExpired:
        raise IndexUnavailableError(f"reading it in a child process took over {timeout_s:.0f} s") from None
    except (OSError, ValueError, IndexError) as error:
        raise IndexUnavailableError(f"reading it in a child process was not possible: {error}") from error
    last_words = child.stderr.strip().splitlines()[-1:] or ["no message"]
    raise IndexUnavailableError(f"reading it ended a child process with {child.returncode}: {last_words[0][:500]}")


def main() -> None:
    import numpy as np

    from pager.vectors.chroma.client import Collection

    directory, dimension = Path(sys.argv[1]), int(sys.argv[2])
    collection = Collection.open(directory)
    count = collection.count()
    direction = np.full(dimension, dimension**-0.5, dtype=np.float32)
    if count:
        collection.query(direction, min(REACH, count))
    collection.close()
    sys.stdout.write(f"{count}\n")


if __name__ == "__main__":
    main()
