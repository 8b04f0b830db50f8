"""The vector index on Chroma: one directory per agent, one collection, vectors passed in, cosine space.

The shape of this file follows from measurements on chromadb 1.5.9:

- Its HNSW flush is not atomic: a process killed in the middle leaves files that raise, grow to terabytes, or
  end every process that reads them. So the live generation never flushes (`sync_threshold` out of reach);
  what was written is replayed from Chroma's own log, which survives kill -9.
- Replay takes 0.06 to 0.2 s per thousand entries at the first use. So `compact` builds a flushed generation in a
  directory that nothing else reads (`sync_threshold` 1: flushed with every upsert, the log purged), puts the
  threshold out of reach (the setting is stored, and holds from the next opening on), and swaps it in.
- A Rust panic arrives as a BaseException, a torn file as a signal. The first becomes IndexUnavailableError;
  against the second, all bytes are compared with those at the last clean close, and a directory that was not
  closed cleanly is first opened in a child process.
- It holds Python's global lock while it writes, 1 ms for each vector. So a child process writes more than a few.
- `batch_size` and `num_threads` are ignored. Its graph comes apart among duplicates and look-alikes: beside 600
  repeats of three texts none of six others was among the 64 nearest to itself. So it is asked only for facts that are
  too many to be compared (`pager.vectors.facts`).

    index = ChromaIndex(directory, source)
    report = index.open()          # for the ledger; nothing else opens it
    index.extend()
    index.query(vector, 50)        # [(id, cosine similarity), ...]
    index.close()
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pager.vectors.chroma.build import FEW, Build, build
from pager.vectors.chroma.client import FLUSH_NEVER, Collection
from pager.vectors.chroma.files import IndexDirectory, State
from pager.vectors.chroma.probe import damage, useless
from pager.vectors.index import IndexUnavailableError, OpenReport, Stop, Stopped, VectorSource, never

if TYPE_CHECKING:
    from pager.vectors.index import Vectors

_NO_BATCH: tuple[list[int], None] = ([], None)


class ChromaIndex:
    """A VectorIndex (see pager.vectors.index) in `directory`, which belongs to it alone."""

    def __init__(
        self,
        directory: Path,
        source: VectorSource,
        *,
        batch: int = 128,
        few: int = FEW,
        retry_after_s: float = 60.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = IndexDirectory(directory)
        self._source = source
        self._batch = batch
        self._few = few
        self._retry_after_s = retry_after_s
        self._monotonic = monotonic
        # Always taken in this order: a build holds the first for seconds, a query needs the second.
        self._building = threading.RLock()
        self._lock = threading.RLock()
        self._collection: Collection | None = None  # None: not open
        self._state: State | None = None  # what was last committed; set whenever _collection is
        self._report: OpenReport | None = None
        self._failure: tuple[float, str] | None = None  # when opening failed, and how
        self._breakdowns = 0  # failures in use since the last rebuild
        self._late: list[tuple[list[int], Vectors]] | None = None  # upserts while a compaction is building

    # opening and closing

    def open(self, stop: Stop = never) -> OpenReport:
        if self._collection is not None and self._report is not None:
            return self._report
        with self._building, self._lock:
            if self._collection is not None and self._report is not None:
                return self._report
            self._refuse_for_a_while()
            try:
                with _unavailable("open the index"):
                    self._report = self._open(stop)
            except BaseException as error:
                self._drop()
                if isinstance(error, IndexUnavailableError) and not isinstance(error, Stopped):
                    self._failure = (self._monotonic(), str(error))
                raise
            self._failure = None
            return self._report

    def close(self) -> None:
        with self._building, self._lock:
            if self._collection is None or self._state is None:
                self._failure = None
                return
            # A failure here leaves the index marked as open, and the next opening probes it.
            with suppress(IndexUnavailableError), _unavailable("close the index"):
                self._collection.close()
                state = self._state
                state.closed = self._files.digests(state.live, besides=state.flushed)
                self._commit(clean=True, durable=True)
            self._collection = None

    def clear(self) -> None:
        with self._building, self._lock:
            self._drop()
            with _unavailable("remove the index"):
                self._files.clear()
            self._failure = None

    # reading and writing

    def through(self) -> int:
        with self._lock:
            return self._state.through if self._collection is not None and self._state is not None else 0

    def pending_replay(self) -> int:
        with self._lock:
            return self._state.replay if self._collection is not None and self._state is not None else 0

    def extend(self, limit: int | None = None) -> int:
        added = 0
        while limit is None or added < limit:
            size = self._batch if limit is None else min(self._batch, limit - added)
            with self._building, self._using() as (collection, state):
                ids, vectors = next(iter(self._source.batches(state.through, size)), _NO_BATCH)
                if not ids or vectors is None:
                    break
                # Written first: after a kill the count says whether Chroma's commit came before it or not.
                self._commit(writing_through=ids[-1])
                collection.upsert(ids, vectors)
                self._commit(through=ids[-1], writing_through=0, replay=state.replay + len(ids))
            added += len(ids)
        return added

    def upsert(self, ids: Sequence[int], vectors: Vectors) -> None:
        if vectors.shape != (len(ids), self._source.dimension):
            raise ValueError(f"{len(ids)} ids of dimension {self._source.dimension}, but {vectors.shape} vectors")
        with self._using() as (collection, state):
            if self._late is not None:
                self._late.append((list(ids), vectors))
            rows = [row for row, each in enumerate(ids) if each <= state.through]
            if rows:
                collection.upsert([ids[row] for row in rows], vectors[rows])
                self._commit(replay=state.replay + len(rows))

    def query(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        if vector.shape != (self._source.dimension,):
            raise ValueError(f"a query needs one vector of dimension {self._source.dimension}, not {vector.shape}")
        with self._using() as (collection, _):
            return collection.query(vector, limit) if limit > 0 else []

    # compaction

    def compact(self, stop: Stop = never) -> None:
        """Write all vectors into a new, flushed generation, in a child process.

        This takes 1.3 s for 10,000 vectors of dimension 384, 6 s for 40,000, and as much disk again until the swap.
        """
        with self._building:
            with self._using():
                self._late = []
            try:
                with _unavailable("compact the index"):
                    built = build(self._files, self._source, stop, self._few)
                    with self._lock:
                        self._swap_in(built)
                        late, self._late = self._late, None
                        for ids, vectors in late:
                            self.upsert(ids, vectors)
            finally:
                self._late = None

    # opening

    def _open(self, stop: Stop) -> OpenReport:
        self._drop()
        state = self._files.load()
        reason = useless(self._files, state, self._source)
        if state is None or reason:
            return self._rebuild(reason, stop)
        twice = "it failed again after it was found good" if self._breakdowns > 1 else ""
        broken = twice or damage(self._files, state)
        if not broken:
            try:
                return self._reuse(state, stop)
            except Stopped:
                raise
            except IndexUnavailableError as error:
                broken = str(error)
                self._drop()
        return self._rebuild(broken, stop, keep=self._files.quarantine(state.live))

    def _reuse(self, state: State, stop: Stop) -> OpenReport:
        how = "closed cleanly" if state.clean else "not closed cleanly, probed"
        self._state = state
        # Before anything else, and durably: opening alone changes Chroma's files.
        self._commit(clean=False, durable=True)
        self._collection = Collection.open(self._files.path(state.live))
        count = self._collection.count()
        for through in (state.through, state.writing_through):
            if count == self._source.count(through):
                break
        else:
            wanted = self._source.count(state.through)
            return self._rebuild(f"it holds {count} vectors, the source has {wanted}", stop)
        grown = max(0, self._source.count(through) - self._source.count(state.through))
        self._commit(through=through, writing_through=0, replay=state.replay + grown)
        self._files.sweep(live=state.live)
        return OpenReport("reused", how)

    def _rebuild(self, reason: str, stop: Stop, *, keep: str | None = None) -> OpenReport:
        self._drop()
        self._files.clear(keep=keep)
        self._swap_in(build(self._files, self._source, stop, self._few))
        self._breakdowns = 0
        return OpenReport("rebuilt", reason, keep)

    def _refuse_for_a_while(self) -> None:
        if self._failure is None:
            return
        at, why = self._failure
        if self._monotonic() - at < self._retry_after_s:
            raise IndexUnavailableError(f"{why}; the next attempt comes within {self._retry_after_s:.0f} s")

    # building

    def _swap_in(self, built: Build) -> None:
        collection = Collection.open(self._files.path(built.name))
        try:
            held, threshold = collection.count(), collection.sync_threshold()
            if (held, threshold) != (built.count, FLUSH_NEVER):
                raise IndexUnavailableError(
                    f"the new index holds {held} of {built.count} vectors, and flushes after {threshold}"
                )
            state = State(
                live=built.name,
                fingerprint=self._source.fingerprint,
                dimension=self._source.dimension,
                through=built.through,
                flushed=built.flushed,
            )
            # The real commit: from here on the new generation is live.
            self._files.commit(state, durable=True)
        except BaseException:
            collection.close()
            self._files.discard(built.name)
            raise
        old, self._collection, self._state = self._collection, collection, state
        if old is not None:
            with suppress(IndexUnavailableError):
                old.close()
        self._files.sweep(live=built.name)

    # using

    @contextmanager
    def _using(self) -> Generator[tuple[Collection, State]]:
        """Yield the open collection, for this thread alone. A failure closes it; the next opening checks it."""
        with self._lock:
            if self._collection is None or self._state is None:
                raise IndexUnavailableError("the index is not open")
            try:
                with _unavailable("use the index"):
                    yield self._collection, self._state
            except IndexUnavailableError:
                self._breakdowns += 1
                self._drop()
                raise

    def _drop(self) -> None:
        if self._collection is not None:
            with suppress(IndexUnavailableError):
                self._collection.close()
        self._collection = None

    def _commit(self, *, durable: bool = False, **changes: Any) -> None:
        if self._state is None:
            return
        for name, value in changes.items():
            setattr(self._state, name, value)
        self._files.commit(self._state, durable=durable)


@contextmanager
def _unavailable(doing: str) -> Generator[None]:
    """Raise the disk's errors as IndexUnavailableError; Chroma's are that already."""
    try:
        yield
    except OSError as error:
        raise IndexUnavailableError(f"could not {doing}: {error}") from error
