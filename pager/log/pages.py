"""The form in which pages are stored in Postgres: of a commit those that it changed, of a chunk all of it. Pure.

A commit changes a few bytes in each of a dozen pages. So a page is stored as what differs from its content before (by
exclusive or), where Postgres has that content, and of all of it only the words that are not zero: a tenth of the bytes.
A checksum over the new pages notices a commit that is put on top of others than it was made on; zlib keeps one over
what it has packed.

>>> changes = pack_changes({2: b"page two", 7: b"the last"}, 7, {2: b"Page Two"})
>>> unpack_changes(changes, lambda page, size_bytes: b"Page Two")
({2: b'page two', 7: b'the last'}, 7)
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pager.errors import StorageError

CHUNK_BYTES = 128 << 10  # of a database, packed as one row
_HEAD = struct.Struct("<5I")  # pages of the database after the commit, pages in here, of them differences, bytes of
# a page, checksum of the new pages. The numbers of the pages follow: first those of differences.
WORD_BYTES = 8  # then follow a bit for each word of the pages, and those words that are not zero
_WORD = np.dtype(np.uint64)
Words = np.ndarray[Any, np.dtype[np.uint64]]
SMALL_BYTES = 8000  # fit into a row of one page of Postgres
COMMIT_LEVEL, CHUNK_LEVEL = 1, 6  # a turn waits for the one, nobody for the other


def pack_changes(pages: Mapping[int, bytes], size_pages: int, before: Mapping[int, bytes]) -> bytes:
    """Return the changed pages of a commit as one value. `before` has the content that Postgres has of some of them."""
    numbers = sorted(pages, key=lambda page: page not in before)
    new = b"".join(map(pages.__getitem__, numbers))
    old = b"".join(before[page] for page in numbers if page in before)
    page_bytes = len(new) // max(1, len(numbers))
    head = _HEAD.pack(size_pages, len(numbers), len(before), page_bytes, zlib.crc32(new))
    words = _difference(new, old)
    used = words != 0
    data = b"".join((head, struct.pack(f"<{len(numbers)}I", *numbers), np.packbits(used).data, words[used].data))
    # To compress a small one takes longer than Postgres takes to store it.
    return zlib.compress(data, COMMIT_LEVEL if len(data) > SMALL_BYTES else 0)


def unpack_changes(data: bytes, before: Callable[[int, int], bytes]) -> tuple[dict[int, bytes], int]:
    """Return the changed pages of a commit, and the size of the database after it in pages.

    `before` returns the content of a page, of so many bytes, before the commit.
    """
    raw = _unpack(data)
    size_pages, count, differences, page_bytes, checksum = _HEAD.unpack_from(raw)
    numbers = struct.unpack_from(f"<{count}I", raw, _HEAD.size)
    words = _words_from(raw, _HEAD.size + 4 * count, count * page_bytes // WORD_BYTES)
    old = b"".join(before(page, page_bytes) for page in numbers[:differences])
    new = _difference(words, old).tobytes()
    if len(old) != differences * page_bytes or zlib.crc32(new) != checksum:
        raise damaged("a commit does not follow what is before it")
    return {page: new[at * page_bytes : (at + 1) * page_bytes] for at, page in enumerate(numbers)}, size_pages


def _words_from(raw: bytes, begin: int, count: int) -> Words:
    """Return so many words, of which a bit for each says if it is there, or is zero."""
    bits_bytes = -(-count // 8)
    used = np.unpackbits(np.frombuffer(raw, np.uint8, bits_bytes, begin), count=count).view(bool)
    stored = np.frombuffer(raw, _WORD, offset=begin + bits_bytes)
    if len(stored) != np.count_nonzero(used):
        raise damaged("a commit has another length than it says")
    words = np.zeros(count, _WORD)
    words[used] = stored
    return words


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


def _difference(one: bytes | Words, other: bytes) -> Words:
    """Return the exclusive or of both. The rest of the longer one stays as it is."""
    words = np.array(one if isinstance(one, np.ndarray) else np.frombuffer(one, _WORD))
    words[: len(other) // WORD_BYTES] ^= np.frombuffer(other, _WORD)
    return words


def _unpack(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise damaged(str(error)) from None
