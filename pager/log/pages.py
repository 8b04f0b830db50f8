"""The form in which pages are stored in Postgres: of a commit those that it changed, of a chunk all of it. Pure.

A commit changes a few bytes in each of a dozen pages. So a page is stored as what differs from its content before (by
exclusive or), where Postgres has that content: a seventh of the bytes. A checksum over the new pages notices a commit
that is put on top of others than it was made on; zlib keeps one over what it has packed.

>>> changes = pack_changes({2: b"two.", 7: b"last"}, 7, {2: b"Two."})
>>> unpack_changes(changes, lambda page, size_bytes: b"Two.")
({2: b'two.', 7: b'last'}, 7)
"""

import struct
import zlib
from collections.abc import Callable, Mapping

import numpy as np

from pager.errors import StorageError

CHUNK_BYTES = 128 << 10  # of a database, packed as one row
_HEAD = struct.Struct("<5I")  # pages of the database after the commit, pages in here, of them differences, bytes of
# a page, checksum of the new pages. The numbers of the pages follow: first those of differences.
COMMIT_LEVEL, CHUNK_LEVEL = 1, 6  # a turn waits for the one, nobody for the other


def pack_changes(pages: Mapping[int, bytes], size_pages: int, before: Mapping[int, bytes]) -> bytes:
    """Return the changed pages of a commit as one value. `before` has the content that Postgres has of some of them."""
    numbers = sorted(pages, key=lambda page: page not in before)
    new = b"".join(map(pages.__getitem__, numbers))
    old = b"".join(before[page] for page in numbers if page in before)
    page_bytes = len(new) // max(1, len(numbers))
    head = _HEAD.pack(size_pages, len(numbers), len(before), page_bytes, zlib.crc32(new))
    head += struct.pack(f"<{len(numbers)}I", *numbers)
    return zlib.compress(head + _difference(new[: len(old)], old) + new[len(old) :], COMMIT_LEVEL)


def unpack_changes(data: bytes, before: Callable[[int, int], bytes]) -> tuple[dict[int, bytes], int]:
    """Return the changed pages of a commit, and the size of the database after it in pages.

    `before` returns the content of a page, of so many bytes, before the commit.
    """
    raw = _unpack(data)
    size_pages, count, differences, page_bytes, checksum = _HEAD.unpack_from(raw)
    numbers = struct.unpack_from(f"<{count}I", raw, _HEAD.size)
    begin = _HEAD.size + 4 * count
    if len(raw) != begin + count * page_bytes:
        raise damaged("a commit has another length than it says")
    old = b"".join(before(page, page_bytes) for page in numbers[:differences])
    new = _difference(raw[begin : begin + len(old)], old) + raw[begin + len(old) :]
    if len(old) != differences * page_bytes or zlib.crc32(new) != checksum:
        raise damaged("a commit does not follow what is before it")
    return {page: new[at * page_bytes : (at + 1) * page_bytes] for at, page in enumerate(numbers)}, size_pages


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


def _difference(one: bytes, other: bytes) -> bytes:
    return (np.frombuffer(one, np.uint8) ^ np.frombuffer(other, np.uint8)).tobytes()


def _unpack(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise damaged(str(error)) from None
