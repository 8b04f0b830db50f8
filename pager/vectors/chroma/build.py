"""Writes the vectors of a generation into an empty directory, flushed and closed.

Chroma holds Python's global lock while it writes, 1 ms for each vector. So a child process writes more than a few: it
reads them from a pipe, has a low priority, and ends with its parent.

    python -m pager.vectors.chroma.build DIRECTORY < PICKLED_BATCHES
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from pager.vectors.chroma.client import Collection
from pager.vectors.index import BuildCancelledError, IndexUnavailableError, Stop, VectorSource

if TYPE_CHECKING:
    from pager.vectors.index import Vectors

    Batches = Iterable[tuple[list[int], Vectors]]

FEW = 500  # vectors: they are written here before a child process would have loaded Chroma
# The child finds the package where this process imported it from, as the last entry of its path; -P keeps the working
# directory off the path.
_RUN = f"import sys; sys.path.append(sys.argv.pop(1)); from {__name__} import main; main()"


def write(directory: Path, source: VectorSource, through: int, count: int, stop: Stop) -> None:
    """Write the `count` vectors up to the id `through`. Raises BuildCancelledError as soon as `stop` returns True."""
    with closing(source.batches(through)) as vectors:
        batches = _until_stopped(vectors, stop)
        if count <= FEW:
            _fill(directory, batches)
        else:
            _fill_in_child(directory, batches, stop)


def _until_stopped(batches: Batches, stop: Stop) -> Batches:
    for batch in batches:
        if stop():
            raise BuildCancelledError("the index was not built to its end")
        yield batch


def _fill(directory: Path, batches: Batches) -> None:
    collection = Collection(directory, create=True)
    try:
        for ids, vectors in batches:
            collection.upsert(ids, vectors)
        collection.count()
    finally:
        collection.close()


def command(directory: Path) -> list[str]:
    """Return the command that runs `main` in a child process."""
    return [sys.executable, "-P", "-c", _RUN, str(Path(__file__).resolve().parents[3]), str(directory)]


def _fill_in_child(directory: Path, batches: Batches, stop: Stop) -> None:
    with TemporaryFile() as output:
        # In a session of its own: a Ctrl-C at the terminal is for this process.
        child = subprocess.Popen(
            command(directory), stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
        )
        assert child.stdin is not None
        try:
            # A broken pipe means that the child has ended; its output says why.
            with suppress(BrokenPipeError), child.stdin as pipe:
                for batch in batches:
                    pickle.dump(batch, pipe)
                pickle.dump(None, pipe)
            while child.poll() is None:
                if stop():
                    raise BuildCancelledError("the index was not built to its end")
                with suppress(subprocess.TimeoutExpired):
                    child.wait(0.1)
        except BaseException:
            child.kill()
            child.wait()
            raise
        if child.returncode != 0:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines() or ["no message"]
            raise IndexUnavailableError(f"writing it ended a child process with {child.returncode}: {lines[-1][:500]}")


def _received() -> Iterator[tuple[list[int], Vectors]]:
    try:
        while batch := pickle.load(sys.stdin.buffer):  # noqa: S301 - from this program
            yield batch
    except (EOFError, pickle.UnpicklingError):
        sys.exit("its parent is gone")


def main() -> None:
    """Write the vectors on standard input into a new generation."""
    if hasattr(os, "nice"):
        os.nice(10)
    _fill(Path(sys.argv[1]), _received())


if __name__ == "__main__":
    main()
