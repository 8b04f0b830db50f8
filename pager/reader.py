"""Read the memory of an agent, while another process may be writing it.

    >>> with Memory.open(directory, embedder=None) as memory:
    ...     _ = memory.archive("prefers window seats")
    >>> with MemoryReader.open(directory) as reader:
    ...     reader.search_archive("which seat?")[0].text
    'prefers window seats'

A reader sees what is committed and writes nothing: no row in the ledger, no use of a fact. Any number of them may be
open, and changes nothing. On a home in Postgres it has a copy, which every call of the reader brings up to date; its
lists (`inspect`, `history`, `sleeps`) are of the last of these calls.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from pager.arguments import require_path
from pager.call_lock import CallLock, locked
from pager.clock import Clock, Moment, SystemClock
from pager.inspect import History, Inspection
from pager.limits import Limits
from pager.sleep import SleepHistory
from pager.store.settings import PROGRAM_VALUE
from pager.tiers import EmbedderChoice, Tiers, joint
from pager.tokens.counter import Counter, Window
from pager.types import Block, Call, Fact, Hit, Movement, PageText, read_step_id
from pager.upkeep.export import export
from pager.upkeep.place import Directory, Opened, Place
from pager.vectors.index import ChromaServer

P = ParamSpec("P")
R = TypeVar("R")


def current(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Make a method of a reader wait for other threads' calls, and see what is committed by now."""

    @wraps(method)
    def current_method(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        self.follow()
        return method(self, *args, **kwargs)

    return locked(current_method)


class MemoryReader:
    """A read-only memory. Made by `MemoryReader.open`; `Memory` has the same calls, and writes."""

    def __init__(self, place: Place, opened: Opened, clock: Clock, tiers: Tiers) -> None:
        self._place = place
        self._opened = opened
        self._store = store = opened.store
        self._clock = clock
        self._tiers = tiers
        self._call_lock = CallLock(self._undo)
        self.inspect = Inspection(store, self._call_lock, tiers.archive, clock)
        self.history = History(store, self._call_lock, clock.zone)
        self.sleeps = SleepHistory(store, self._call_lock)
        opened.attend(self.follow)

    @classmethod
    def open(
        cls, directory: str | Path | Place, *, embedder: EmbedderChoice = None, index: ChromaServer | None = None,
        clock: Clock | None = None,
    ) -> Self:  # fmt: skip
        """Open a memory in `directory`, or at a place of a home, to read it. Raises NotFoundError if there is none."""
        clock = clock or SystemClock()
        place = directory if isinstance(directory, Place) else Directory(require_path(directory, "the directory"))
        opened = place.read(clock)
        try:
            window = Window(Limits.for_window(), Counter())
            tiers = Tiers.open(opened.store, clock, window, embedder, directory=opened.vectors, server=index)
            return cls(place, opened, clock, tiers)
        except BaseException:
            opened.store.close()
            opened.release()
            raise

    def _undo(self) -> None:
        self._store.undo()
        self._tiers.invalidate()

    @property
    def zone(self) -> tzinfo:
        """Return the time zone of its moments."""
        return self._clock.zone

    @property
    def limits(self) -> Limits:
        """Return the limits of the newest request, or the defaults before the first one."""
        return self.history.limits_at() or Limits.for_window()

    @contextmanager
    def read_snapshot(self) -> Generator[None]:
        """Read everything inside as of one moment, whatever another process commits meanwhile. Keep it short."""
        with self._call_lock.lock:
            self.follow()
            with self._store.transaction():
                yield

    @locked
    def follow(self) -> None:
        """See what is committed by now. It costs a question to Postgres, and on a directory nothing."""
        if not self._store.in_transaction and self._opened.follow():
            self._tiers.invalidate()

    @current
    def revision(self) -> int:
        """Return a number that changes when another process commits."""
        return self._store.revision()

    @current
    def core(self, at: str | None = None) -> list[Block]:
        """Return the core blocks as they read now, or when step `at` was written."""
        return self._store.core.blocks(None if at is None else read_step_id(at))

    @current
    def fact(self, page_id: str) -> Fact:
        """Return a fact by its id. Raises NotFoundError if there is none."""
        return self._tiers.archive.fact(page_id)

    @current
    def page_text(self, page_id: str) -> str:
        """Return the whole text of a fact, a step or a spilled part."""
        return self._tiers.pages.text(page_id)

    @current
    def read_page(self, page_id: str, offset: int = 0) -> PageText:
        """Return a piece of a page from a character on, at most a part's worth. Writes nothing."""
        return self._tiers.pages.read(page_id, offset)

    @current
    def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        """Find facts and steps as one question, best first."""
        tiers = self._tiers
        return joint.search(self._store, tiers.archive, tiers.recall, query, limit=limit, actor=None)

    @current
    def search_archive(
        self, query: str, *, limit: int = 5, as_of: Moment | None = None, tags: Sequence[str] | None = None,
        after: Moment | None = None, before: Moment | None = None, source: str | None = None,
    ) -> list[Hit]:  # fmt: skip
        """Find facts, best first: with `as_of` what was true then, with `after` and `before` what was stored then.

        With `source` only those that came from it, such as `web:example.org`, or `web` for all of that kind.
        """
        return self._tiers.archive.search(
            query, limit=limit, as_of=as_of, tags=tags, after=after, before=before, source=source, actor=None
        )

    @current
    def search_recall(
        self, query: str, *, limit: int = 10, after: Moment | None = None, before: Moment | None = None,
    ) -> list[Hit]:  # fmt: skip
        """Find steps, best first, by words, meaning, people and dates. A date alone means that whole day."""
        return self._tiers.recall.search(query, limit=limit, after=after, before=before, actor=None)

    @property
    @current
    def open_calls(self) -> list[Call]:
        """Return the tool calls without a result, in order; `begun` ones may have run."""
        return self._store.conversation.open_calls()

    @current
    def ledger(
        self, *, page: str | None = None, events: Sequence[str] = (), after: int = 0, limit: int | None = None,
        at: str | None = None,
    ) -> list[Movement]:  # fmt: skip
        """Return movements in order, of one page or of some events; with `limit` the newest, with `at` before it."""
        step = None if at is None else read_step_id(at)
        return self._store.ledger.movements(page=page, events=events, after=after, limit=limit, before_step=step)

    @current
    def load_value(self, key: str) -> str | None:
        """Return a value that a program stored with `Memory.save_value`."""
        return self._store.settings.get(f"{PROGRAM_VALUE}{key}")

    @current
    def export(self, file: str | Path) -> None:
        """Write a consistent copy of the database, with the commands that others have sent to the agent."""
        export(self._store, self._place, require_path(file, "the file to export to"))

    def close(self) -> None:
        """Release what is open. Everything is on disk already. In a forked child nothing is released."""
        if not self._call_lock.is_inherited:
            with self._call_lock.lock, self._call_lock:  # beside a read, SQLite's connection would end the process
                self._tiers.close()
                self._store.close()
                self._opened.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
