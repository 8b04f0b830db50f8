"""What is done while nobody waits: turns that left the prompt are embedded, everything when the embedder is another
one, and the vector index is brought up.

A thread of its own, from when there is something to do until there is nothing, or until the agent closes. Searches use
what there is. What is not done then is done next time; nothing is lost, and nothing else depends on it.
"""

from __future__ import annotations

import logging
from threading import Event, Thread
from typing import NamedTuple

from pager.errors import PagerError
from pager.memory import Memory

_log = logging.getLogger("selfpager")


class Progress(NamedTuple):
    done: int
    total: int


class Background:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._thread: Thread | None = None
        self._ending = Event()
        self.progress = Progress(0, 0)

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wake(self) -> None:
        """Between two turns: begin, if anything waits."""
        if self.is_busy or self._ending.is_set():
            return
        self.progress = Progress(0, self._memory.count_unembedded())
        if self.progress.total or self._memory.index_is_behind:
            self._thread = Thread(target=self._work, name="selfpager embedding", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        try:
            while not self._ending.is_set() and (done := self._memory.embed_pending(stop=self._ending.is_set)):
                before = self.progress
                self.progress = Progress(before.done + done, max(before.total, before.done + done))
        except PagerError:
            _log.exception("embedding stopped; it goes on after the next turn")

    def finish(self) -> None:
        """Wait until it is done."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """What it is at is finished first: a few texts."""
        self._ending.set()
        self.finish()
