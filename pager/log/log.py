"""The commit log of one agent that this process owns: every commit goes to Postgres before it is acknowledged.

SQLite commits first, into its write-ahead log, which is never copied into the file before it was sent. What is
committed without being durable goes with the next durable commit. Every 512 pages the write-ahead log is copied into
the file; what the file then holds is folded in the background, so that the log in Postgres stays short.

The line in `sync` that calls `rows.commit` is the real commit.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from threading import Thread
from time import monotonic

from pager.errors import AgentLostError, StorageError, UnavailableError
from pager.log import past
from pager.log.claim import Claim
from pager.log.copies import Copies
from pager.log.leases import Leases
from pager.log.pages import CHUNK_BYTES, chunk_of, pack_changes, pack_chunk
from pager.log.rows import Rows
from pager.log.seal import place
from pager.log.states import Restored
from pager.log.wal import Changes, WalReader
from pager.store.database import LOG_PAGES, Database

PART_PAGES = 16_384  # of a commit in one row: 32 MB before they are packed
FOLD_BYTES = 256 << 10  # the log is folded when it is longer than this, and than half of the chunks


class Log:
    """The log of one agent, from its claim to `close`. `Database` calls it; one thread at a time."""

    def __init__(self, name: str, rows: Rows, claim: Claim, restored: Restored) -> None:
        self.has_commands = claim.has_commands  # in Postgres, as of the last answer
        self._name = name
        self._rows = rows
        self._claim = claim
        self._sure_until = claim.until
        self._restored = restored
        self._seq = restored.seq
        self._has_sent = False  # a commit, of this process
        self._in_doubt: Changes | None = None  # what was sent when an interrupt came
        self._database: Database | None = None
        self._wal: WalReader | None = None
        self._file = -1
        self._is_lost = self._is_detached = self._is_closed = False
        self._folding: Thread | None = None
        self._folded: Restored | None = None  # of the last fold
        self._unfolded: Restored | None = None  # what the last fold was to fold, and did not

    def attach(self, database: Database) -> None:
        """Begin with a database that was just opened, and holds what Postgres holds."""
        self._database = database
        self._wal = WalReader(database.path.with_name(f"{database.path.name}-wal"))
        # Open for as long as SQLite has the file open: to close any descriptor of it gives up SQLite's locks.
        self._file = os.open(database.path, os.O_RDONLY | os.O_CLOEXEC)
        Leases.of(self._rows).add(self._claim, self._renewed)
        self._fold_if_long()

    def sync(self) -> None:
        """Return when everything that was committed is in Postgres. Raises AgentLostError."""
        assert self._wal is not None
        assert self._database is not None
        if self._in_doubt is not None:
            self._resolve(self._in_doubt)
        try:
            changes = self._wal.read()
        except (StorageError, OSError) as error:
            raise self._lose(f"its last commit cannot be read again ({error})") from error
        if changes is None:
            return
        pages = list(changes.pages.items())
        pieces = (pages[begin : begin + PART_PAGES] for begin in range(0, len(pages), PART_PAGES))
        packed = (pack_changes(dict(piece), changes.size_pages, self._before(piece, changes)) for piece in pieces)
        places = (place("commit", self._claim.agent, self._seq + 1, part) for part in count())
        parts = [self._restored.box.seal(*part) for part in zip(packed, places, strict=False)]
        self._in_doubt = changes
        try:
            waits = self._rows.commit(self._claim, self._seq + 1, parts)  # THE COMMIT
        except StorageError as error:
            raise self._lose(_outcome(error)) from error
        if waits is None:
            raise self._lose_claim()
        self.has_commands = waits
        self._committed(changes, sum(map(len, parts)))
        # While it is folded the file has to stay as it is.
        if not self._is_folding and (changes.frames >= LOG_PAGES or self._is_long) and self._database.checkpoint():
            self._fold_if_long()

    def _before(self, pages: Iterable[tuple[int, bytes]], changes: Changes) -> dict[int, bytes]:
        """Return the content that Postgres has of these pages, as far as it has them."""
        assert self._wal is not None
        found = dict[int, bytes]()
        for page, data in pages:
            # SQLite may have written the first page of a new file in place: it is sent as a whole once.
            if page * len(data) <= self._restored.size_bytes and (page > 1 or self._has_sent):
                begin = (page - 1) * len(data)
                old = self._wal.before(page, changes) or os.pread(self._file, len(data), begin)
                if len(old) == len(data):
                    found[page] = old
        return found

    def _resolve(self, changes: Changes) -> None:
        """Find out if a commit during which an interrupt came was stored."""
        try:
            last = self._rows.last_commit(self._claim)
        except StorageError as error:
            raise self._lose(_outcome(error)) from error
        if last == self._seq + 1:
            self._committed(changes, 0)
        elif last == self._seq:
            self._in_doubt = None
        else:
            raise self._lose_claim()

    def _committed(self, changes: Changes, size_bytes: int) -> None:
        """Note that a commit is stored. After an interrupt in here it is in doubt, and noted once more."""
        assert self._wal is not None
        page_bytes = len(next(iter(changes.pages.values())))
        self._restored.changed_chunks.update(chunk_of(page, page_bytes) for page in changes.pages)
        self._restored.size_bytes = changes.size_pages * page_bytes
        self._restored.log_bytes += size_bytes
        self._restored.seq = self._seq + 1
        self._has_sent = True
        self._wal.passed(changes)
        self._seq += 1
        self._in_doubt = None

    def settle(self) -> None:
        """Return when nothing reads the file in the background."""
        if self._folding is not None and self._folding.is_alive():
            self._folding.join()

    def detach(self) -> None:
        """Fold nothing more of the file: it is about to get commits that Postgres may not have, or have later."""
        self._is_detached = True

    # folding

    @property
    def _is_folding(self) -> bool:
        if self._folding is None or not self._folding.is_alive():
            self._note_fold()
        return self._folding is not None

    @property
    def _is_long(self) -> bool:
        logged = self._restored.log_bytes  # chunks are many, and rarely counted
        return logged > FOLD_BYTES and logged > sum(self._restored.chunk_bytes.values()) // 2

    def _note_fold(self) -> None:
        if self._folded is not None:
            self._restored.versions = self._folded.folded_versions()
            sizes = self._folded.chunk_bytes.items()
            self._restored.chunk_bytes = {
                number: size for number, size in sizes if number < len(self._restored.versions)
            }
        if self._unfolded is not None:
            self._restored.folded = self._unfolded.folded
            self._restored.changed_chunks |= self._unfolded.changed_chunks
            self._restored.log_bytes += self._unfolded.log_bytes
        self._folding = self._folded = self._unfolded = None

    def _fold_if_long(self) -> None:
        """Fold what the file holds: all that was committed. Nobody changes it meanwhile."""
        if not self._is_folding and self._is_long:
            self._begin_fold()

    def _begin_fold(self) -> Thread:
        self._unfolded = held = self._restored  # until it is done, whatever comes between
        self._restored = replace(held, folded=held.seq, log_bytes=0, changed_chunks=set())
        self._folding = Thread(target=self._fold, args=(held,), name="selfpager folding", daemon=True)
        self._folding.start()
        return self._folding

    def forget_past(self) -> list[str]:
        """Fold all that was committed, now, and drop the past: no row holds what was there, and no copy of a reader.

        Returns the processes that have died with such a copy. Raises StorageError.
        """
        assert self._database is not None
        self.settle()
        if not self._is_folding and self._restored.folded < self._seq:
            if not self._database.checkpoint():
                raise StorageError("the log cannot be folded while another process reads an old state. Try again.")
            self._begin_fold().join()
            self._note_fold()
        if self._restored.folded < self._seq:
            raise StorageError(
                f"the log of {self._name!r} cannot be folded now. Try again; the ledger says what waits."
            )
        past.drop(self._rows.server, self._claim.agent, 0)
        return Copies.of(self._rows.server).bring_past(self._claim.agent, self._seq)

    def _fold(self, held: Restored) -> None:
        sizes = dict[int, int]()
        try:
            self._rows.states.fold(self._claim, held, self._chunks(held, sizes))
        except AgentLostError:
            self._lose_claim()
        except (StorageError, OSError):
            pass  # the next fold takes these chunks, too
        else:
            self._folded, self._unfolded = replace(held, chunk_bytes=held.chunk_bytes | sizes), None
            with suppress(StorageError):  # the next fold does it
                past.drop(self._rows.server, self._claim.agent, self._rows.server.keep_days)
                past.pack(self._rows.server, self._claim, held.box, held.seq)

    def _chunks(self, held: Restored, sizes: dict[int, int]) -> Iterator[tuple[int, bytes]]:
        for number in sorted(held.changed_chunks):
            begin = number * CHUNK_BYTES
            if begin >= held.size_bytes:
                break
            raw = os.pread(self._file, min(CHUNK_BYTES, held.size_bytes - begin), begin)
            if self._is_detached:
                raise StorageError("the database was closed while its log was folded.")
            data = pack_chunk(raw)
            sizes[number] = len(data)
            yield number, data

    # ownership

    @property
    def is_sure(self) -> bool:
        """Return False if another process may have claimed the agent since the last renewal, and committed."""
        return monotonic() < self._sure_until

    def _renewed(self, *, owned: bool, has_commands: bool, until: float) -> None:
        """Take note of a renewal of the lease, in another thread."""
        if owned:
            self._sure_until = until
            self.has_commands = self.has_commands or has_commands
        else:
            self._lose_claim()

    def _lose_claim(self) -> AgentLostError:
        """Lose the agent, which is not this process's, Postgres says. It has fewer commits only if it lost some."""
        with suppress(StorageError):
            state = self._rows.state(self._name)
            if state is None or state.agent != self._claim.agent:
                return self._lose("it is not there any more: it was removed, or Postgres has lost it")
            if state.seq < self._seq:
                lost = f"Postgres had acknowledged {self._seq} commits and has {state.seq}"
                how = "a standby took over that lacked the last ones, or a backup was restored"
                return self._lose(
                    f"{lost}: {how}. Nothing was put on top of the gap", "What Postgres has of it is there"
                )
        return self._lose("another process has claimed it")

    def _lose(self, why: str, left: str = "What was acknowledged is stored") -> AgentLostError:
        """Refuse every further statement. Return the error that they raise."""
        way = f"{left}: open the agent again, here or elsewhere"
        error = AgentLostError(f"this process has lost the agent {self._name!r}: {why}. {way}.")
        assert self._database is not None
        self._is_lost = True
        self._database.refuse(error)
        Leases.of(self._rows).drop(self._claim)
        return error

    def close(self) -> None:
        """Give the agent back, after its database was closed. Without Postgres the lease ends by itself."""
        if self._is_closed:
            return
        self._is_closed = True
        Leases.of(self._rows).drop(self._claim)
        self.settle()
        if self._wal is not None:
            self._wal.close()
        if self._file >= 0:
            os.close(self._file)
        with suppress(StorageError):  # a lost agent was perhaps in the middle of something
            self._rows.release(self._claim, unfinished=self._is_lost)


def _outcome(error: StorageError) -> str:
    is_refused = isinstance(error, UnavailableError) and error.is_refused
    outcome = "its last commit was not stored" if is_refused else "nobody knows if its last commit was stored"
    return f"{outcome} ({str(error).rstrip('.')})"
