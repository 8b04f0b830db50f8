"""Texts into vectors for all that is searched by meaning, whatever the embedder does, and whichever it was before.

Vectors of two embedders are worthless beside each other. When another one comes (by its fingerprint, or one of the
same name that gives another number of numbers), what was stored is dropped, and waits until it is embedded anew
(`Memory.embed_pending`); until then it is found by its words.

An embedder is anybody's code: what goes wrong in it is told to the ledger, and search goes on without it. Somebody
waits for a search and for what is stored, and a server that is gone may cost them its timeout: after a failure they do
without for `REST`. Whoever embeds what waits asks it all the same, and what works again is asked again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pager.clock import Clock
from pager.errors import StorageError
from pager.store import Store
from pager.store.ledger import LedgerTable
from pager.vectors.embedder import Embedder, EmbedderUnavailableError
from pager.vectors.unrelated import sentences

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

NEARLY_UNIT = 1e-4  # how far from 1 the square of a length may be
AT_ONCE = 32  # texts that are embedded between two looks at who else wants a turn: a fraction of a second
REST = timedelta(seconds=60)  # how long nobody who waits asks an embedder that has failed
LARGEST_BATCH = 256  # texts; among more of them there are more of one length, which go through a model together
OWED = "vectors_owed"  # the key in the journal that says: some facts may have no vector yet


def owe_vector(store: Store) -> None:
    """A fact is stored without one; it gets it as soon as an embedder works."""
    if store.settings.get(OWED) is None:
        store.settings.put(OWED, "1")


class Batch(NamedTuple):
    """Texts that wait for a vector, by id. Worth nothing after a purge, which may have changed them, and when all that
    is stored was dropped."""

    purges: str | None
    dropped: int
    texts: list[tuple[int, str]]


class Source(Protocol):
    """What is embedded: facts, turns."""

    @property
    def embedding(self) -> Embedding: ...

    def next_batch(self, limit: int) -> Batch:
        """The oldest that wait."""
        ...

    def keep(self, batch: Batch, rows: Vectors) -> None: ...

    def waiting(self) -> int:
        """How many do."""
        ...


class Embedding:
    def __init__(self, store: Store, ledger: LedgerTable, embedder: Embedder, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self.embedder = embedder
        self._is_known = False  # that what is committed was made by this one
        self._told: set[str] = set()
        self._failed: tuple[datetime, str] | None = None  # the last time: when, and why
        self._chance: dict[Sequence[str], float] = {}  # by the texts of which it is
        self.times_dropped = 0  # what is held of vectors from before is worthless
        self._gives: int | None = None  # how many numbers it last gave for a text
        self._gave: int | None = None  # and when what is committed was known to fit

    def embed(self, text: str) -> Vectors | None:
        """For somebody who waits: None from an embedder that fails, or that has just failed."""
        if self.rests:
            return None
        try:
            return self.rows([text])[0]
        except EmbedderUnavailableError as error:
            self.tell_failure(error)
            return None

    @property
    def rests(self) -> bool:
        return self._failed is not None and timedelta(0) <= self._clock.now() - self._failed[0] < REST

    @property
    def missing(self) -> str | None:
        """Why nothing is found by meaning, as long as that is so."""
        return self._failed[1] if self._failed else None

    def rows(self, texts: Sequence[str]) -> Vectors:
        """One for each text, of unit length."""
        import numpy as np

        try:
            rows, squares = self._asked(texts)
        except EmbedderUnavailableError as error:
            self._failed = self._clock.now(), str(error)
            raise
        if self._failed:
            self._failed = None
            self.forget_told("embedder")
        if (abs(squares - 1) < NEARLY_UNIT).all():
            return rows
        return (rows / np.sqrt(np.where(squares > 0, squares, 1))[:, None]).astype(np.float32)

    def _asked(self, texts: Sequence[str]) -> tuple[Vectors, Vectors]:
        """What the embedder gives, and the squares of the lengths."""
        import numpy as np

        try:
            rows = np.asarray(self.embedder.embed(texts), dtype=np.float32)
            wanted = (len(texts), self.embedder.dimension)
        except EmbedderUnavailableError:
            raise
        except Exception as error:
            raise EmbedderUnavailableError(f"the embedder failed: {type(error).__name__}: {error}") from error
        squares = np.einsum("ij,ij->i", rows, rows) if rows.shape == wanted else np.array([math.nan])
        if not np.isfinite(squares).all():
            raise EmbedderUnavailableError(f"the embedder gave {rows.shape} numbers, not {wanted} finite ones.")
        self._gives = rows.shape[1]
        return rows, squares

    def chance(self, message: str) -> float | None:
        """The cosine of two texts that have nothing to do with each other, in the script of a message; None while the
        embedder fails."""
        told = sentences(message)
        if told not in self._chance:
            if self.rests:
                return None
            try:
                rows = self.rows(told)
            except EmbedderUnavailableError as error:
                self.tell_failure(error)
                return None
            self._chance[told] = float((rows @ rows.T).sum() - len(told)) / (len(told) * (len(told) - 1))
        return self._chance[told]

    def of(self, batch: Batch) -> Vectors:
        """The slow part: it reads and writes nothing, so others may go on meanwhile."""
        return self.rows([text for _, text in batch.texts])

    def batch(self, texts: list[tuple[int, str]]) -> Batch:
        return Batch(self._store.settings.get("purges"), self.times_dropped, texts)

    def may_keep(self, batch: Batch, rows: Vectors) -> bool:
        """Whether these texts are still what they were, and their vectors of the kind that is stored."""
        is_current = batch.purges == self._store.settings.get("purges") and batch.dropped == self.times_dropped
        return is_current and self.fits(rows)

    def fits(self, rows: Vectors) -> bool:
        """Whether it gives such vectors still: another thread may have met another model under the same name."""
        return rows.shape[-1] == self._gives

    def catch_up(self, source: Source, limit: int) -> int:
        """Embed up to so many that wait; how many it was."""
        done = 0
        while done < limit and (batch := source.next_batch(min(LARGEST_BATCH, limit - done))).texts:
            source.keep(batch, self.of(batch))
            done += len(batch.texts)
        return done

    # which embedder it was

    def settle(self) -> None:
        """In the caller's transaction: what is stored from here on is of this embedder, and so is what stays."""
        if self._is_known and self._gives in (None, self._gave):
            return
        known = self._store.settings.get("embedder")
        if known == self.embedder.fingerprint and self._fits:
            self._store.after_commit(partial(self._know, self._gives))
            return
        if known is not None:
            told = f"{known} -> {self.embedder.fingerprint}" + ("" if self._fits else f", now of {self._gives} numbers")
            self._ledger.write("embedder", reason=f"{told}: all is embedded anew")
            self._store.archive.drop_vectors()
            self._store.said.drop_vectors()
            self.times_dropped += 1
        self._store.settings.put("embedder", self.embedder.fingerprint)
        owe_vector(self._store)

    def _know(self, judged: int | None) -> None:
        self._is_known, self._gave = True, judged

    @property
    def _fits(self) -> bool:
        """Whether what is stored has as many numbers: a server may have another model under the same name."""
        return self._gives is None or self._stored in (None, self._gives)

    @property
    def _stored(self) -> int | None:
        """How many numbers the vectors have that are stored."""
        return self._store.archive.dimension() or self._store.said.dimension()

    def settle_first(self) -> bool:
        """For a search: `is_settled`, when the owner has settled what it may. In a transaction after that."""
        if not self._store.read_only and not self.is_settled:
            self._store.after_commit(self._settle)
        return self.is_settled

    def _settle(self) -> None:
        with self._store.transaction():
            self.settle()

    @property
    def is_settled(self) -> bool:
        """Whether what is stored can be compared with what this embedder makes. A reader is told if it cannot."""
        known = self._store.settings.get("embedder")
        if known in (None, self.embedder.fingerprint) and self._fits:
            return True
        if self._store.read_only:
            of = "" if self._fits else f" of {self._stored} numbers, not {self._gives}"
            raise EmbedderUnavailableError(f"the vectors were made by {known}{of}; read them with the same embedder.")
        return False

    # what went wrong

    def tell_failure(self, error: EmbedderUnavailableError) -> None:
        told = str(error).rstrip(".")
        self.tell("embedder", f"{told}; words answer meanwhile, and it is asked again after {REST.seconds} seconds")

    def tell(self, event: str, text: str) -> None:
        """Once for each kind of failure in this process, until it is over."""
        if event not in self._told:
            self._told.add(event)
            self.note(event, text)

    def note(self, event: str, text: str) -> None:
        """For the ledger, as long as the disk takes it: what was asked for was done, or goes on without."""
        with suppress(StorageError):
            self._ledger.write(event, reason=text)

    def forget_told(self, *events: str) -> None:
        """Tell of these failures anew; without any, of all."""
        self._told.difference_update(events or tuple(self._told))
