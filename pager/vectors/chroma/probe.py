"""Finds out whether an index directory may be opened. A broken one could end the process that opens it.

`useless` and `damage` look at the files; `probe` opens them in a child process:

    python -m pager.vectors.chroma.probe DIRECTORY DIMENSION

prints the number of vectors in the directory and exits with 0. Another exit code, a signal or no answer in time means
that it must not be opened.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pager.vectors.chroma.child_process import command, describe_end
from pager.vectors.chroma.files import IndexDirectory, State
from pager.vectors.index import IndexUnavailableError, VectorSource

TIMEOUT_S = 120  # a hundred thousand entries are replayed in a quarter of that
REACH = 1_000  # neighbours asked for, so that the search walks through much of the graph


def useless(files: IndexDirectory, state: State | None, source: VectorSource) -> str:
    """Return why the directory is of no use, whatever its bytes are; an empty string if it may be."""
    if state is None:
        return "no index yet, or no readable state"
    if not files.path(state.live).is_dir():
        return "the index is missing"
    if (state.fingerprint, state.dimension) != (source.fingerprint, source.dimension):
        return f"the vectors are now {source.fingerprint}, the index had {state.fingerprint}"
    # Several times what the largest file can be, duplicates in the log included. Torn flushes leave sparse files of
    # terabytes, which must not stay in quarantine either: a copy of one fills the disk.
    plausible_bytes = 256_000_000 + 20 * source.count(source.last_id()) * (4 * source.dimension + 512)
    name, size_bytes = files.largest(state.live)
    if size_bytes > plausible_bytes:
        return f"{name} has grown to {size_bytes} bytes"
    return ""


def damage(files: IndexDirectory, state: State) -> str:
    """Return why opening it would be dangerous; an empty string if it is not."""
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
    """Return the number of vectors that a child process finds. Raises IndexUnavailableError if it fails."""
    try:
        child = subprocess.run(
            command(__name__, directory, dimension),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            start_new_session=True,
        )
        if child.returncode == 0:
            return int(child.stdout.split()[-1])
    except subprocess.TimeoutExpired:
        raise IndexUnavailableError(f"reading it in a child process took over {timeout_s:.0f} s") from None
    except (OSError, ValueError, IndexError) as error:
        raise IndexUnavailableError(f"reading it in a child process was not possible: {error}") from error
    raise IndexUnavailableError(f"reading it {describe_end(child.returncode, child.stderr)}")


def main() -> None:
    """Open the directory, search it, and print the number of its vectors."""
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
