"""The ledger: one line for every movement, written in the transaction that makes it.

Events: archive, supersede, forget, done, purge, core, evict, drop, page_in, page_out, pin, unpin, recall, spill,
notice, epoch, digest, search, interrupted, command, index, embedder, error. `unannounced` stands in the reason of an
eviction that the agent was not told of. `tokens` is the size of what moved; of a spill, what stays of it in view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pager.blocks import clean
from pager.clock import Clock, to_micros
from pager.store import Store
from pager.types import Hit, Movement


class Ledger:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.written = 0  # lines since it was made, undone ones too: while this stays, the ledger does

    def write(
        self, event: str, page: str | None = None, *, reason: str = "", actor: str = "pager", tokens: int = 0,
        step: int | None = None, **detail: Any,
    ) -> None:  # fmt: skip
        """One line. `step` is the newest step, from whoever knows it."""
        if self._store.read_only:
            return  # who only reads moves nothing
        step = self._store.conversation.last_step() if step is None else step
        now = to_micros(self._clock.now())
        self.written += 1
        known = {name: value for name, value in detail.items() if value not in (None, [])}
        self._store.journal.write(now, step, event, page, clean(reason), actor, tokens, clean(known))

    def searched(
        self, tier: str, query: str, hits: Sequence[Hit], actor: str, *, missed: Sequence[Hit] = (), **detail: Any
    ) -> None:  # fmt: skip
        """A search: what was asked, what came back in its order, and what only just did not; with each part of the
        score."""
        told = [
            [[hit.page_id, round(hit.score, 5), {k: round(v, 5) for k, v in hit.parts.items()}] for hit in each]
            for each in (hits, missed)
        ]
        self.write(
            "search",
            reason=f"asked of {tier}",
            actor=actor,
            tier=tier,
            query=query,
            found=told[0],
            missed=told[1],
            **detail,
        )

    def movements(
        self, *, page: str | None = None, events: Sequence[str] = (), after: int = 0, limit: int | None = None
    ) -> list[Movement]:
        """Movements in order, of one page or of some events; with `limit` the newest."""
        return self._store.journal.movements(page=page, events=events, after=after, limit=limit)
