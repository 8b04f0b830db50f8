"""Read what SQLite has appended to its write-ahead log: the pages of each commit, from the file itself.

The format is SQLite's (https://sqlite.org/fileformat2.html#walformat). A frame counts if its salts are those of the
log's header and its checksum, which goes over all frames before it, is right. The shared index (`-shm`) is not needed.

    log = WalReader(directory / "pager.db-wal")
    changes = log.read()        # what was committed since `log.passed(...)` was last called; None if nothing was
    log.passed(changes)
"""

import os
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pager.errors import StorageError

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
PAGES_AT_ONCE = 32  # most commits have a dozen
_HEADER = struct.Struct(">8I")  # magic, format, page size, checkpoints, two salts, two checksums
_FRAME = struct.Struct(">6I")  # page, size of the database after a commit, two salts, two checksums
_MAGIC = 0x377F0682  # with 1 added its checksums are over big-endian words
_MASK = 0xFFFFFFFF
Sum = tuple[int, int]


class _Position(NamedTuple):
    """The place behind a frame that ends a commit, and what the checksum of the next frame goes on from."""

    salts: tuple[int, int]
    offset: int
    checksum: Sum


class Changes(NamedTuple):
    """The newest content of each page that was changed, and the size of the database after that."""

    pages: dict[int, bytes]
    places: dict[int, int]  # page -> where in the log that content is
    size_pages: int
    frames: int  # in the log up to here
    end: _Position


class WalReader:
    """The log of one database, read from the last commit on that was passed. Its file is open from `read` to `passed`:
    of many open agents none has a descriptor more while it does nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._header = b""  # that was found right
        self._at: _Position | None = None
        self._places = dict[int, int]()  # of what was passed since SQLite began the log anew
        self._last: Mapping[int, bytes] = {}  # of these pages those that were passed last: most of them change again

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def passed(self, changes: Changes) -> None:
        """Go on behind these changes the next time."""
        if not self._is_same_log(changes):
            self._places.clear()
        self._places |= changes.places
        self._last = changes.pages if len(changes.pages) <= PAGES_AT_ONCE else {}
        self._at = changes.end
        self.close()

    def before(self, page: int, changes: Changes) -> bytes | None:
        """Return the content of a page before these changes; None if the database file holds it."""
        if not self._is_same_log(changes) or page not in self._places:
            return None
        return self._last.get(page) or os.pread(self._file, len(changes.pages[page]), self._places[page])

    def _is_same_log(self, changes: Changes) -> bool:
        return self._at is not None and self._at.salts == changes.end.salts

    def read(self) -> Changes | None:
        """Return what was committed behind the place that was passed; None if nothing was. Raises OSError."""
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        changes = self._read()
        if changes is None:
            self.close()
        return changes

    def _read(self) -> Changes | None:
        header = os.pread(self._file, HEADER_BYTES, 0)
        if len(header) < HEADER_BYTES:
            return None
        magic, _, page_bytes, _, *salts, first, second = _HEADER.unpack(header)
        if magic & ~1 != _MAGIC:
            return None  # no commit was made yet: it is as long as it will be, and empty
        order = ">u4" if magic & 1 else "<u4"
        if header != self._header and _checksums(header[:24], 24, order)[0] != (first, second):
            raise StorageError(f"{self._path} has a damaged header. Open the agent again: it is restored.")
        self._header = header
        at = self._at
        if at is None or at.salts != tuple(salts):  # SQLite began it anew: all before was copied into the database
            at = _Position((salts[0], salts[1]), HEADER_BYTES, (first, second))
        return self._read_from(at, page_bytes, order)

    def _read_from(self, at: _Position, page_bytes: int, order: str) -> Changes | None:
        frame_bytes = FRAME_HEADER_BYTES + page_bytes
        found, pending = dict[int, tuple[int, bytes]](), dict[int, tuple[int, bytes]]()
        size_pages, end, offset, checksum = 0, at, at.offset, at.checksum
        salted = struct.pack(">2I", *at.salts)
        many = PAGES_AT_ONCE
        while True:
            raw = os.pread(self._file, frame_bytes * many, offset)
            count = len(raw) // frame_bytes
            starts = range(0, count * frame_bytes, frame_bytes)
            # Those behind the last commit are older than the header: they are not worth a checksum.
            count = next((n for n, start in enumerate(starts) if raw[start + 8 : start + 16] != salted), count)
            parts = _contributions(raw[: count * frame_bytes], frame_bytes, order) if count else ()
            for start, part in zip(starts, parts, strict=False):
                page, commit_pages, _, _, first, second = _FRAME.unpack_from(raw, start)
                checksum = _advance(checksum, page_bytes + 8, part)
                if checksum != (first, second):
                    count = 0  # not written to its end
                    break
                content = raw[start + FRAME_HEADER_BYTES : start + frame_bytes]
                pending[page] = (offset + FRAME_HEADER_BYTES, content)
                offset += frame_bytes
                if commit_pages:
                    found |= pending
                    pending.clear()
                    size_pages, end = commit_pages, _Position(at.salts, offset, checksum)
            if count < many:
                break
            many = 512
        if end is at:
            return None
        pages = {page: content for page, (_, content) in found.items() if page <= size_pages}
        places = {page: place for page, (place, _) in found.items()}
        return Changes(pages, places, size_pages, (end.offset - HEADER_BYTES) // frame_bytes, end)


# The checksum adds each pair of words to two sums: first += word + second; second += next word + first. That is linear,
# so the share of every word in the result is known beforehand, and a whole frame is one product.


@cache
def _weights(size_bytes: int) -> tuple[Any, tuple[int, int, int, int]]:
    """Return the share of each word in both sums, and that of the sums before: for so many bytes."""
    pairs = size_bytes // 8
    shares = np.zeros((pairs * 2, 2), dtype=np.uint64)
    a, b, c, d = 1, 0, 0, 1  # how both sums go on into the result: first = a * first + b * second, and so on
    for pair in range(pairs - 1, -1, -1):
        # A pair (x, y) turns (f, s) into (f + s + x, f + 2 s + x + y).
        shares[2 * pair] = ((a + b) & _MASK, (c + d) & _MASK)
        shares[2 * pair + 1] = (b, d)
        a, b, c, d = (a + b) & _MASK, (a + 2 * b) & _MASK, (c + d) & _MASK, (c + 2 * d) & _MASK
    return shares.T.astype(np.uint32).copy(), (a, b, c, d)


def _contributions(raw: bytes, frame_bytes: int, order: str) -> list[Sum]:
    """Return what each frame adds to the checksum: of its header the first 8 bytes, and its page."""
    return _sums(raw, _frame_shares(frame_bytes), order)


@cache
def _frame_shares(frame_bytes: int) -> Any:
    counted, _ = _weights(frame_bytes - FRAME_HEADER_BYTES + 8)
    shares = np.zeros((2, frame_bytes // 4), dtype=np.uint32)
    shares[:, :2], shares[:, FRAME_HEADER_BYTES // 4 :] = counted[:, :2], counted[:, 2:]
    return shares


def _sums(raw: bytes, shares: Any, order: str) -> list[Sum]:
    words = np.frombuffer(raw, dtype=order).reshape(-1, shares.shape[1])
    sums = np.einsum("fw,sw->fs", words.astype(np.uint32, copy=False), shares)  # modulo 2 ** 32, as it has to be
    return [(first, second) for first, second in sums.tolist()]


def _advance(before: Sum, size_bytes: int, added: Sum) -> Sum:
    _, (a, b, c, d) = _weights(size_bytes)
    first, second = before
    return (a * first + b * second + added[0]) & _MASK, (c * first + d * second + added[1]) & _MASK


def _checksums(raw: bytes, size_bytes: int, order: str) -> list[Sum]:
    return _sums(raw, _weights(size_bytes)[0], order)
