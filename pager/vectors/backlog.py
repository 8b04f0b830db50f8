"""Embed what has no vector yet, and bring the vector index up to date, while other calls go on.

Facts and messages are embedded in batches: the lock of the facade is taken to read a batch and to store its vectors,
never while the embedder works.
"""

from functools import partial
from threading import Lock

from pager.arguments import require_int
from pager.call_lock import CallLock
from pager.errors import RejectedError, StorageError, brief
from pager.store import Store
from pager.vectors.embedder import EmbedderUnavailableError
from pager.vectors.embedding import AT_ONCE, LARGEST_BATCH, Batch
from pager.vectors.facts import FactVectors
from pager.vectors.index import Stop
from pager.vectors.said import SaidVectors


class Backlog:
    """The pending vectors of one memory."""

    def __init__(self, store: Store, call_lock: CallLock, facts: FactVectors | None, said: SaidVectors | None) -> None:
        self._store = store
        self._call_lock = call_lock
        self._said = said
        self._sources = [source for source in (facts, said) if source is not None]
        self._indexing = facts.indexing if facts else None
        self._building = Lock()  # one thread builds
        self.recorded = 0  # committed messages, for `embed_recorded`

    def count(self) -> int:
        """Return the number of facts and messages without a vector. The lock must be held."""
        for source in self._sources:
            if not (source.embedding.vectors_match() and source.embedding.tokens_match()):
                source.embedding.check_committed()
        return sum(source.count_pending() for source in self._sources)

    def embed(self, limit: int, stop: Stop) -> int:
        """Embed up to `limit` of them, oldest first. Return how many; with none left, bring the index up to date."""
        require_int(limit, "limit")
        if not callable(stop):
            raise RejectedError(f"stop is {brief(stop)}; give a function that returns True to stop.")
        done = 0
        for source in self._sources:
            while done < limit:
                with self._call_lock.lock, self._call_lock:
                    batch = source.next_batch(min(AT_ONCE, limit - done))
                if not batch.texts or not self._embed(source, batch):
                    break
                done += len(batch.texts)
        if not done:
            self.update_index(stop)
        return done

    def add_recorded(self, count: int) -> None:
        """Let `embed_recorded` embed so many messages, once they are committed."""
        if self._said:
            self._store.after_commit(partial(self._add_committed, count))

    def _add_committed(self, count: int) -> None:
        self.recorded += count

    def embed_recorded(self) -> None:
        """Embed as many messages as were recorded, the newest. What an embedder or a disk refuses stays pending."""
        said = self._said
        if not self.recorded or said is None:
            return
        with self._call_lock.lock, self._call_lock:
            if self._store.in_transaction:
                return  # a transaction of this thread: others would have the lock
            left, self.recorded = self.recorded, 0
        try:
            while left > 0 and not said.embedding.is_paused:
                with self._call_lock.lock, self._call_lock:
                    batch = said.next_batch(min(LARGEST_BATCH, left), newest=True)
                if not batch.texts or not self._embed(said, batch):
                    return
                left -= len(batch.texts)
        except StorageError as error:
            with self._call_lock.lock, self._call_lock:
                said.embedding.log_once("embedder", f"vectors of messages wait: {error}")

    def _embed(self, source: FactVectors | SaidVectors, batch: Batch) -> bool:
        """Embed a batch. Return False if the embedder failed. Only reading and storing takes the lock."""
        try:
            meanings = source.embedding.embed_batch(batch)
        except EmbedderUnavailableError as error:
            with self._call_lock.lock, self._call_lock:
                source.embedding.log_failure(error)
            return False
        with self._call_lock.lock, self._call_lock:
            source.store_batch(batch, meanings)
        return True

    def index_is_behind(self) -> bool:
        """Return True if a generation of the index is due. The lock must be held."""
        return self._indexing is not None and self._indexing.plan() is not None

    @property
    def is_waiting(self) -> bool:
        """Return True if there may be more to do without any change: the index failed, and is tried again later."""
        return self._indexing is not None and self._indexing.is_waiting

    def update_index(self, stop: Stop, *, whole: bool = False) -> None:
        """Build the generation that is due, until `stop` returns True; with `whole` also for a single fact."""
        if self._indexing is None:
            return
        with self._building:
            with self._call_lock.lock, self._call_lock:
                plan = self._indexing.plan(whole=whole)
            if plan is not None and not stop():
                self._indexing.build(plan, self._call_lock, stop)
