"""Builds a generation of the vector index: flushed and closed, not live yet. `pager.vectors.chroma.index` says why.

Chroma holds Python's global lock while it writes, so every thread of the process stops. A large generation is therefore
written by a child process, which reads the vectors from a pipe, has a low priority, and ends with its parent:

    python -m pager.vectors.chroma.build DIRECTORY DIMENSION < VECTORS
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from pager.vectors.chroma.child_process import command, describe_end
from pager.vectors.chroma.client import DATABASE_FILE, Collection
from pager.vectors.chroma.files import IndexDirectory
from pager.vectors.index import IndexUnavailableError, Stop, Stopped, VectorSource

if TYPE_CHECKING:
    from pager.vectors.index import Vectors

    Batches = Iterable[tuple[list[int], Vectors]]

BATCH = 2_048  # larger: fewer flushes. Smaller: less memory, and a quicker stop
FEW = 500  # vectors: they are written here before a child process would have loaded Chroma


@dataclass(frozen=True, slots=True)
class Build:
    """A finished generation that is not live yet."""

    name: str
    through: int
    count: int
    flushed: dict[str, str]


def build(files: IndexDirectory, source: VectorSource, stop: Stop, few: int = FEW) -> Build:
    """Write every vector that the source has now; up to `few` in this process, more in a child process."""
    through = source.last_id()
    name = files.new_generation()
    directory = files.path(name)
    try:
        batches = _until(through, source, stop)
        if source.count(through) <= few:
            count = _fill(directory, batches)
        else:
            count = _fill_in_child(directory, source.dimension, batches, stop)
        files.sync(name)
        return Build(name, through, count, files.digests(name, besides={DATABASE_FILE}))
    except BaseException:
        files.discard(name)  # the disk may be full, or there is no time
        raise


def _until(through: int, source: VectorSource, stop: Stop) -> Iterator[tuple[list[int], Vectors]]:
    for ids, vectors in source.batches(0, BATCH):
        _raise_if(stop)
        rows = sum(each <= through for each in ids)
        if rows:
            yield ids[:rows], vectors[:rows]
        if rows < len(ids):
            return


def _raise_if(stop: Stop) -> None:
    if stop():
        raise Stopped("the index was not built to its end")


def _fill(directory: Path, batches: Batches) -> int:
    collection, count = Collection.create(directory), 0
    try:
        for ids, vectors in batches:
            collection.upsert(ids, vectors)
            count += len(ids)
        collection.never_flush()
    finally:
        collection.close()
    return count


# in a child process


def _fill_in_child(directory: Path, dimension: int, batches: Batches, stop: Stop) -> int:
    count = 0
    with TemporaryFile() as output:
        arguments = command(__name__, directory, dimension)
        # In a session of its own: a Ctrl-C at the terminal is for this process.
        child = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True)
        assert child.stdin is not None
        try:
            # A broken pipe means that the child has ended; its output says why.
            with suppress(BrokenPipeError), child.stdin as pipe:
                for ids, vectors in batches:
                    _send(pipe, ids, vectors)
                    count += len(ids)
                _send(pipe, [], None)
            while not _has_ended(child):
                _raise_if(stop)
        except BaseException:
            child.kill()
            child.wait()
            raise
        if child.returncode != 0:
            output.seek(0)
            raise IndexUnavailableError(f"writing it {describe_end(child.returncode, output.read())}")
    return count


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    with suppress(subprocess.TimeoutExpired):
        child.wait(0.1)
    return child.returncode is not None


def _send(pipe: IO[bytes], ids: list[int], vectors: Vectors | None) -> None:
    """Send a count, so many ids, and their vectors; a count of 0 is the end."""
    import numpy as np

    pipe.write(np.asarray([len(ids), *ids], dtype="int64").tobytes())
    if vectors is not None:
        pipe.write(np.ascontiguousarray(vectors, dtype="float32").tobytes())


def _received(pipe: IO[bytes], dimension: int) -> Iterator[tuple[list[int], Vectors]]:
    import numpy as np

    while (count := int(np.frombuffer(_exactly(pipe, 8), dtype="int64")[0])) > 0:
        ids = np.frombuffer(_exactly(pipe, 8 * count), dtype="int64").tolist()
        vectors = np.frombuffer(_exactly(pipe, 4 * count * dimension), dtype="float32")
        yield ids, vectors.reshape(count, dimension)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    content = pipe.read(size)
    if len(content) < size:
        sys.exit("its parent is gone")
    return content


def main() -> None:
    """Write the vectors on standard input into a new generation."""
    if hasattr(os, "nice"):
        os.nice(10)
    directory, dimension = Path(sys.argv[1]), int(sys.argv[2])
    _fill(directory, _received(sys.stdin.buffer, dimension))


if __name__ == "__main__":
    main()
