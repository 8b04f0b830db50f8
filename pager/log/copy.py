"""A reader's copy of pager.db, which follows the commits of its owner.

The copy is a file without a write-ahead log: SQLite looks at the number of the last change in the file's head before
each read, and drops what it has cached when that is another one. So the changed pages are written in place between two
reads, by the thread that reads.

A commit is put on top of the one that it was made on, or not at all: the moment of the last commit says if the copy is
still part of the agent's past. If it is not (after a failover), or if the commits since are not in rows of their own
any more (after a fold, a purge, a new key), the agent is restored anew, into the same file.
"""

import shutil
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from pager.errors import NewerFormatError, NoAgentError, StorageError
from pager.log.copies import Copies
from pager.log.rows import REMOVED, Position, Rows
from pager.log.states import Restored
from pager.safety import foreign_files
from pager.store.database import Database
from pager.store.schema import VERSION

MOST_FOLLOWED = 2000  # commits: it takes less time to restore than to read more of them
_HEAD_BYTES = 100
_PAGE_BYTES, _FORMAT = slice(16, 18), slice(60, 64)
_WITHOUT_LOG = slice(18, 20), b"\1\1"  # the versions that may write and read it
_CHANGE = slice(24, 28), slice(92, 96)  # the number of the last change, twice


class Copy:
    """A copy of the agent of a name. No statement may be running while it follows."""

    def __init__(self, rows: Rows, name: str, file: Path) -> None:
        self._rows = rows
        self._name = name
        self._id, self._copies = uuid.uuid4(), Copies.of(rows.server)
        self._aside = file.with_name("restored")
        # Open for as long as SQLite has it open: to close any descriptor of it gives up SQLite's locks.
        self._file: BinaryIO = open(file, "x+b", opener=foreign_files.private)  # noqa: SIM115
        self._changes = 0
        self._first = b""  # the first page as its owner has it
        self._held: Restored | None = None  # what is in the file; None while it is not whole
        self._is_as_stored = True  # not in a newer format
        self._position = Position(0, 0, 0, None, None)
        try:
            self.follow()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, which is then to be deleted. A second call does nothing."""
        if not self._file.closed:
            self._file.close()
            self._copies.drop(self._id)

    def attend(self, follow: Callable[[], object]) -> None:
        """Call this, in another thread, when a purge waits until the copy follows."""

        def catch_up() -> int:
            try:
                follow()
            except NoAgentError:
                return REMOVED
            return self._held.seq if self._held else 0

        self._copies.keep(self._id, self.agent, catch_up)

    @property
    def agent(self) -> int:
        """Return the number of the agent."""
        return self._position.agent

    def follow(self) -> bool:
        """Bring the file up to the last commit. Return True if it did not go on from what it held.

        Raises NoAgentError if there is nothing to follow, NewerFormatError if its owner is a newer selfpager,
        StorageError.
        """
        if self._file.closed:
            return False
        held, at, place = self._held, self._position, f"{self._rows.server.public}/{self._name}"
        found = self._rows.position(self._name, held.seq if held else 0)
        if found is None or not found.seq:
            self._held = None
            self._file.truncate(0)  # it was erased, perhaps: nothing of it stays here
            raise NoAgentError(f"there is no memory in {place}.")
        if found.format > VERSION:
            known = f"this selfpager knows formats up to {VERSION}"
            raise NewerFormatError(f"{place} has format {found.format}; {known}. Install a newer selfpager.")
        if held and (found.agent, found.seq, found.at) == (at.agent, at.seq, at.at):
            return False
        is_later = (found.agent, found.at_before) == (at.agent, at.at) and self._is_as_stored
        try:
            if held and is_later and found.seq - held.seq <= MOST_FOLLOWED and self._go_on(held, found):
                return False
            self._begin_anew(found)
        except OSError as error:
            why = f"it has no room, or no rights, in {self._aside.parent} ({error.strerror})"
            raise StorageError(f"the copy of {self._name!r} cannot be written: {why}. Choose another TMPDIR.") from None
        return True

    def _go_on(self, held: Restored, to: Position) -> bool:
        """Put the commits up to a position on top. Return False if they are not all there."""
        found = self._rows.states.changes_since(to.agent, held, to.seq, self._page)
        if found is None:
            return False
        newer, pages = found
        self._held = None
        self._first = pages.get(1, self._first)
        for page, data in pages.items():
            self._file.seek((page - 1) * len(data))
            self._file.write(data)
        self._finish(newer, to)
        return True

    def _page(self, page: int, page_bytes: int) -> bytes:
        if page == 1:
            return self._first
        self._file.seek((page - 1) * page_bytes)
        return self._file.read(page_bytes)

    def _begin_anew(self, found: Position) -> None:
        if found.agent != self.agent:
            self._copies.announce(self._id, found.agent)  # before anything of it is here
        try:
            restored = self._rows.states.restore(found.agent, self._aside)
            to = self._rows.position(self._name, restored.seq)
            if to is None or to.agent != found.agent:
                raise NoAgentError(f"the agent {self._name!r} was removed a moment ago.")
            with self._aside.open("rb") as source:
                head = source.read(_HEAD_BYTES)
            self._is_as_stored = int.from_bytes(head[_FORMAT], "big") >= VERSION
            if not self._is_as_stored:  # the copy is ours: its owner may go on with the older one
                Database(self._aside).close()
            self._held = None
            self._file.seek(0)
            with self._aside.open("rb") as source:
                shutil.copyfileobj(source, self._file)
                restored.size_bytes = source.tell()
                source.seek(0)
                self._first = source.read(int.from_bytes(head[_PAGE_BYTES], "big"))
            self._finish(restored, to._replace(seq=restored.seq, at=to.at_before))
        finally:
            self._aside.unlink(missing_ok=True)

    def _finish(self, held: Restored, position: Position) -> None:
        """Let SQLite see the pages that were written."""
        self._changes += 1
        head = bytearray(self._first[:_HEAD_BYTES])
        where, without = _WITHOUT_LOG
        head[where] = without
        for where in _CHANGE:
            head[where] = struct.pack(">I", self._changes)
        self._file.seek(0)
        self._file.write(head)
        self._file.truncate(held.size_bytes)
        self._file.flush()
        self._held, self._position = held, position
