"""A new generation of the vector index: flushed and closed, and not live yet. `pager.chroma` says why it is so."""

from __future__ import annotations

from dataclasses import dataclass

from pager.chroma_client import DATABASE_FILE, Collection
from pager.chroma_files import IndexDirectory
from pager.index import Stop, Stopped, VectorSource

BATCH = 2_048  # larger: fewer flushes. Smaller: less memory, shorter stops for the other threads


@dataclass(frozen=True, slots=True)
class Build:
    """A finished generation that is not live yet."""

    name: str
    through: int
    count: int
    flushed: dict[str, str]


def build(files: IndexDirectory, source: VectorSource, stop: Stop) -> Build:
    """With every vector that the source has now."""
    through = source.last_id()
    name = files.new_generation()
    try:
        count = _fill(Collection.create(files.path(name)), source, through, stop)
        files.sync(name)
        return Build(name, through, count, files.digests(name, besides={DATABASE_FILE}))
    except BaseException:
        files.discard(name)  # the disk may be full, or there is no time
        raise


def _fill(collection: Collection, source: VectorSource, through: int, stop: Stop) -> int:
    count = 0
    try:
        for ids, vectors in source.batches(0, BATCH):
            if stop():
                raise Stopped("the index was not built to its end")
            rows = sum(each <= through for each in ids)
            if rows:
                collection.upsert(ids[:rows], vectors[:rows])
            count += rows
            if rows < len(ids):
                break
        collection.never_flush()
    finally:
        collection.close()
    return count
