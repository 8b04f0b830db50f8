"""The form in which pages are stored in Postgres: of a commit those that it changed, of a chunk all of it. Pure.

A commit changes a few bytes in each of a dozen pages. So of a page only the words are stored that differ from its
content before, where Postgres has that content, and of others those that are not zero: a tenth of the bytes. A checksum
over the new pages notices a commit that is put on top of others than it was made on; zlib keeps one over what it packs.

>>> changes = pack_changes({2: b"page two", 7: b"the last"}, 7, {2: b"Page Two"})
>>> unpack_changes(unpack(changes), lambda page, size_bytes: b"Page Two")
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
_STORED, _SUM = struct.Struct("<3B2H"), struct.Struct(">I")  # what zlib writes before and behind one piece
WORD_BYTES = 8  # then follow a bit for each word of the pages, and those words that changed
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
    words = np.frombuffer(new, _WORD)
    changed = words != _words(old, len(words))
    data = b"".join((head, struct.pack(f"<{len(numbers)}I", *numbers), np.packbits(changed).data, words[changed].data))
    # To compress a small one takes longer than Postgres takes to store it.
    return zlib.compress(data, COMMIT_LEVEL) if len(data) > SMALL_BYTES else _stored(data)


def _stored(data: bytes) -> bytes:
    """Return what zlib makes of data that it does not compress. zlib itself takes ten times as long for it."""
    return b"".join((_STORED.pack(0x78, 1, 1, len(data), len(data) ^ 0xFFFF), data, _SUM.pack(zlib.adler32(data))))


def unpack_changes(raw: bytes, before: Callable[[int, int], bytes]) -> tuple[dict[int, bytes], int]:
    """Return the changed pages of an unpacked commit, and the size of the database after it in pages.

    `before` returns the content of a page, of so many bytes, before the commit.
    """
    size_pages, count, differences, page_bytes, checksum = _HEAD.unpack_from(raw)
    numbers = struct.unpack_from(f"<{count}I", raw, _HEAD.size)
    old = b"".join(before(page, page_bytes) for page in numbers[:differences])
    follows = len(old) == differences * page_bytes
    new = _change(_words(old, count * page_bytes // WORD_BYTES), raw[_HEAD.size + 4 * count :]) if follows else b""
    if not follows or zlib.crc32(new) != checksum:
        raise damaged("a commit does not follow what is before it")
    return {page: new[at * page_bytes : (at + 1) * page_bytes] for at, page in enumerate(numbers)}, size_pages


def begin_of_words(raw: bytes) -> int:
    """Return where the changed words begin in an unpacked commit. What is before them compresses in another way."""
    _, count, _, page_bytes, _ = _HEAD.unpack_from(raw)
    return _HEAD.size + 4 * count + -(-count * page_bytes // WORD_BYTES // 8)


def _words(data: bytes, count: int) -> Words:
    """Return data as words, with zeros behind it up to so many."""
    words = np.zeros(count, _WORD)
    words[: len(data) // WORD_BYTES] = np.frombuffer(data, _WORD)
    return words


def _change(words: Words, changes: bytes) -> bytes:
    """Return these words after some have changed. A bit for each says which."""
    bits_bytes = -(-len(words) // 8)
    changed = np.unpackbits(np.frombuffer(changes, np.uint8, min(bits_bytes, len(changes))), count=len(words)).view(
        bool
    )
    if len(changes) != bits_bytes + np.count_nonzero(changed) * WORD_BYTES:
        raise damaged("a commit has another length than it says")
    words[changed] = np.frombuffer(changes, _WORD, offset=bits_bytes)
    return words.tobytes()


def pack_chunk(raw: bytes) -> bytes:
    """Return a piece of the database as one value."""
    return zlib.compress(raw, CHUNK_LEVEL)


def unpack(data: bytes) -> bytes:
    """Return the piece of the database, or the changes of a commit, that were packed."""
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise damaged(str(error)) from None


def chunk_of(page: int, page_bytes: int) -> int:
    """Return the number of the chunk that a page is in. Pages are counted from 1, chunks from 0."""
    return (page - 1) * page_bytes // CHUNK_BYTES


def damaged(why: str) -> StorageError:
    """Return the error for rows that are not what was written."""
    return StorageError(f"the agent's rows in Postgres are damaged ({why}). Restore the database from its backup.")
