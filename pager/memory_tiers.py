"""The three tiers as a person, an agent's tools or a program uses them: record, archive, search, edit, page.

Every call takes its turn, commits before it returns, and is in the ledger with who asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pager import tokens
from pager.arguments import whole_number
from pager.call_lock import locked
from pager.clock import Moment
from pager.errors import RejectedError, StorageError
from pager.prompt.prompt import Prompt
from pager.reader import MemoryReader
from pager.types import Block, Fact, Hit, PageText
from pager.upkeep import purge as purging
from pager.vectors.embedder import EmbedderUnavailableError
from pager.vectors.embedding import AT_ONCE, LARGEST_BATCH, Batch, Source
from pager.vectors.index import Stop, never
from pager.vectors.indexing import Indexing


class Tiers(MemoryReader):
    """What can be done with the tiers outside of the loop. Who makes one gives it its prompt."""

    _prompt: Prompt

    # turns from elsewhere

    def record(
        self, role: str, text: str, *, at: Moment | None = None, name: str | None = None, session: str | None = None
    ) -> str:
        """A turn from elsewhere: in recall, findable, never in the prompt by itself. Its page id.

        It is embedded when it is on disk, some milliseconds in which others take their turns; many turns are quicker
        in a `transaction`, or by `record_many`.
        """
        with self._turns.lock, self._turns:
            number = self._recall.record(role, text, at=at, name=name, session=session)
            self._store.after_commit(lambda: self._recall.recorded.append(number))
        self._embed_recorded()
        return f"s{number}"

    def record_many(self, turns: Iterable[Mapping[str, Any]], *, embed: bool = True) -> list[str]:
        """Many turns (role, text; at, name, session) in one transaction: all, or none with an error that says which.

        Then they are embedded, which takes longer: without `embed` that is left to `embed_pending`.
        """
        with self._turns.lock, self._turns:
            numbers = self._recall.record_many(turns)
            if embed:
                self._store.after_commit(lambda: self._recall.recorded.extend(numbers))
        self._embed_recorded()
        return [f"s{number}" for number in numbers]

    # vectors

    @locked
    def count_unembedded(self) -> int:
        """How many facts and turns are found by words only, as yet: what left the prompt since, or all of them when
        the embedder is another one than before."""
        for source in self._embedded:
            if not source.embedding.is_settled:
                with self._store.transaction():
                    source.embedding.settle()
        return sum(source.waiting() for source in self._embedded)

    def embed_pending(self, limit: int = AT_ONCE, *, stop: Stop = never) -> int:
        """Embed some of them, oldest first; how many it was, none when the embedder fails. When none is left, the
        vector index is brought up to them, until `stop` says True: what it does not hold yet is found all the same.

        For a moment in which nobody waits, or a thread of your own: others take their turns meanwhile.
        """
        whole_number(limit, "limit")
        if not callable(stop):
            raise RejectedError(f"stop is {stop!r:.100}; give a function that says whether to stop.")
        done = 0
        for source in self._embedded:
            while done < limit:
                with self._turns.lock, self._turns:
                    batch = source.next_batch(min(AT_ONCE, limit - done))
                if not batch.texts or not self._embed(source, batch):
                    break
                done += len(batch.texts)
        if not done:
            self._bring_up(stop)
        return done

    @property
    @locked
    def index_is_behind(self) -> bool:
        """Whether the vector index should be opened, built, extended or compacted, as `embed_pending` does it."""
        indexing = self._indexing
        return indexing is not None and indexing.next_task(never) is not None

    def compact(self) -> None:
        """Put every vector into the index and make its next opening fast: flushed instead of a log to replay."""
        with self._turns.lock:
            is_open = self._store.in_transaction
        if is_open:
            raise RejectedError("compact works on what is committed: call it after the transaction.")
        self._bring_up(never, whole=True)

    def _bring_up(self, stop: Stop, *, whole: bool = False) -> None:
        if (indexing := self._indexing) is None:
            return
        goes_on = True
        while goes_on and not stop():
            with self._turns.lock, self._turns:
                task = indexing.next_task(stop, whole=whole)
            if task is None:
                return
            outcome = task.run()
            with self._turns.lock, self._turns:
                goes_on = indexing.done(task, outcome)

    @property
    def _indexing(self) -> Indexing | None:
        return self._archival.meaning.indexing if self._archival.meaning else None

    def _embed_recorded(self) -> None:
        """What was recorded, once it is committed; never what waited before. It is recorded whatever happens here:
        what an embedder that fails or a full disk leaves is left to `embed_pending`."""
        meaning = self._recall.meaning
        if not self._recall.recorded:
            return
        with self._turns.lock, self._turns:
            if self._store.in_transaction:
                return  # one of this thread: others would have the lock
            steps, self._recall.recorded = self._recall.recorded, []
        for start in range(0, len(steps), LARGEST_BATCH):
            if meaning is None or meaning.embedding.rests:
                return
            try:
                with self._turns.lock, self._turns:
                    batch = meaning.batch_of(steps[start : start + LARGEST_BATCH])
                if not self._embed(meaning, batch):
                    return
            except StorageError as error:
                with self._turns.lock, self._turns:
                    meaning.embedding.tell("embedder", f"vectors of turns wait: {error}")
                return

    def _embed(self, source: Source, batch: Batch) -> bool:
        """Whether the embedder did it. Only what is read and written takes a turn."""
        if not batch.texts:
            return True
        try:
            rows = source.embedding.of(batch)
        except EmbedderUnavailableError as error:
            with self._turns.lock, self._turns:
                source.embedding.tell_failure(error)
            return False
        with self._turns.lock, self._turns:
            source.keep(batch, rows)
        return True

    @property
    def _embedded(self) -> list[Source]:
        return [source for source in (self._archival.meaning, self._recall.meaning) if source is not None]

    # moving facts and pages

    @locked
    def archive(
        self, text: str, *, key: str | None = None, tags: Sequence[str] = (), valid_from: Moment | None = None,
        actor: str = "person", neighbours: int = 3,
    ) -> Fact:  # fmt: skip
        """Store a fact; one with the same key supersedes the current one. Its `neighbours` are close in meaning."""
        return self._archival.archive(
            text, key=key, tags=tags, valid_from=valid_from, actor=actor, neighbours=neighbours
        )

    @locked
    def _in_turn(self, look: Callable[[], tuple[Hit, ...]]) -> tuple[Hit, ...]:
        return look()

    @locked
    def forget(self, page_id: str, reason: str, *, actor: str = "person") -> Fact:
        """End a fact's validity. It stays findable with `as_of`; only `purge` destroys."""
        return self._archival.forget(page_id, reason, actor)

    @locked
    def search_archive(
        self, query: str, *, limit: int = 5, as_of: Moment | None = None, tags: Sequence[str] | None = None,
        after: Moment | None = None, before: Moment | None = None, actor: str = "person",
    ) -> list[Hit]:  # fmt: skip
        """Facts by meaning and by words, best first; with `as_of` what was true then, with `after` and `before` what
        was stored in that time. The ledger notes it."""
        return self._archival.search(
            query, limit=limit, as_of=as_of, tags=tags or (), after=after, before=before, actor=actor
        )

    @locked
    def search_recall(
        self, query: str, *, limit: int = 10, after: Moment | None = None, before: Moment | None = None,
        actor: str = "person",
    ) -> list[Hit]:  # fmt: skip
        """Steps by words, meaning, people, dates, and by what was said around them, resident and evicted, best first.
        A date alone means that whole day. The ledger notes it."""
        return self._recall.search(query, limit=limit, after=after, before=before, actor=actor)

    @locked
    def core_append(self, block: str, text: str, *, actor: str = "person") -> Block:
        """Add a line to a core block."""
        return self._core.append(block, text, actor)

    @locked
    def core_replace(self, block: str, old_text: str, new_text: str, *, actor: str = "person") -> Block:
        """Exchange an exact and unique piece of a core block; empty `new_text` deletes it."""
        return self._core.replace(block, old_text, new_text, actor)

    @locked
    def core_write(self, block: str, text: str, *, actor: str = "person") -> Block:
        """Another text for a whole core block; an empty one empties it."""
        return self._core.rewrite(block, text, actor)

    @locked
    def page_in(self, page_id: str, *, pin: bool = False, offset: int = 0, actor: str = "person") -> PageText:
        """A page verbatim, at most a part's worth from `offset`. `pin` keeps it in the prompt across evictions."""
        last = self._prompt.view.last
        holder = last.id if actor == "agent" and last and last.open_calls else None
        return self._pages.page_in(page_id, pin=bool(pin), offset=offset, actor=actor, holder=holder)

    @locked
    def page_out(self, page_id: str, *, actor: str = "person") -> None:
        """Unpin a page: it leaves the prompt at the next eviction."""
        self._pages.unpin(page_id, actor)

    @locked
    def move_to_archive(
        self, block: str, text: str, *, key: str | None = None, tags: Sequence[str] = (), actor: str = "person"
    ) -> Fact:
        """Move a text from a core block to the archive, in one transaction."""
        with self._store.transaction():
            self._core.remove(block, text, actor)
            fact = self._archival.archive(text, key=key, tags=tags, valid_from=None, actor=actor, neighbours=0)
            size = tokens.total(text)
            self._ledger.write("page_out", fact.id, reason=f"{purging.MOVED_FROM}{block}", actor=actor, tokens=size)
        return fact
