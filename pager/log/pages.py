"""The form in which pages are stored in Postgres: of a commit those that it changed, of a chunk all of it. Pure.

zlib keeps a checksum over what it has packed, so that a damaged row is noticed.

>>> unpack_changes(pack_changes({2: b"two.", 7: b"last"}, 7))
({2: b'two.', 7: b'last'}, 7)
"""

import struct
import zlib
from collections.abc import Mapping

from pager.errors import StorageError

CHUNK_BYTES = 128 << 10  # of a database, packed as one row
_HEAD = struct.Struct("<3I")  # pages of the database after the commit, pages in here, bytes of a page
COMMIT_LEVEL, CHUNK_LEVEL = 1, 6  # a turn waits for the one, nobody for the other


def pack_changes(pages: Mapping[int, bytes], size_pages: int) -> bytes:
    """Return the changed pages of a commit as one value."""
    page_bytes = len(next(iter(pages.values()))) if pages else 0
    head = _HEAD.pack(size_pages, len(pages), page_bytes) + struct.pack(f"<{len(pages)}I", *pages)
    return zlib.compress(b"".join((head, *pages.values())), COMMIT_LEVEL)


def unpack_changes(data: bytes) -> tuple[dict[int, bytes], int]:
    """Return the changed pages of a commit, and the size of the database after it in pages."""
    raw = _unpack(data)
    size_pages, count, page_bytes = _HEAD.unpack_from(raw)
    numbers = struct.unpack_from(f"<{count}I", raw, _HEAD.size)
    begin = _HEAD.size + 4 * count
    if len(raw) != begin + count * page_bytes:
        raise damaged("a commit has another length than it says")
    places = range(begin, len(raw), page_bytes) if count else ()
    return {page: raw[at : at + page_bytes] for page, at in zip(numbers, places, strict=True)}, size_pages


def pack_chunk(raw: bytes) -> bytes:
    """Return a piece of the database as one value."""
    return zlib.compress(raw, CHUNK_LEVEL)


def unpack_chunk(data: bytes) -> bytes:
    """Return a piece of the database."""
    return _unpack(data)


def chunk_of(page: int, page_bytes: int) -> int:
    """Return the number of the chunk that a page is in. Pages are counted from 1, chunks from 0."""
    return (page - 1) * page_bytes // CHUNK_BYTES


def damaged(why: str) -> StorageError:
    """Return the error for rows that are not what was written."""
    return StorageError(f"the agent's rows in Postgres are damaged ({why}). Restore the database from its backup.")


def _unpack(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise damaged(str(error)) from None
