"""Turns texts into vectors for everything that is searched by meaning, whatever the embedder does.

Vectors of two embedders cannot be compared. When the embedder is another one than before (by its fingerprint, or by the
length of its vectors), everything stored is dropped and embedded again (`Memory.embed_pending`); until then it is found
by its words.

An embedder is anybody's code. What goes wrong in it is written to the ledger, and search goes on without it. After a
failure no search and no `archive` calls it for `PAUSE`, because a server that is gone may cost its timeout each time.
Work in the background calls it all the same; as soon as it works again, everybody does.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pager.clock import Clock
from pager.errors import StorageError
from pager.store import Store
from pager.store.ledger import LedgerTable
from pager.vectors.embedder import Embedder, EmbedderUnavailableError

if TYPE_CHECKING:
    from pager.vectors.index import Vectors

NEARLY_UNIT = 1e-4  # how far from 1 the square of a vector's length may be
AT_ONCE = 32  # texts that are embedded before others get the lock again: a fraction of a second
PAUSE = timedelta(seconds=60)  # after a failure
LARGEST_BATCH = 256  # texts; in larger batches more texts have the same length, which go through a model together
UNEMBEDDED = "vectors_owed"  # the setting some facts may have no vector yet
SENTENCES = Path(__file__).parent.parent / "data" / "unrelated_sentences.json"


def mark_unembedded(store: Store) -> None:
    """Note that facts without a vector may exist; they get one when an embedder works."""
    if store.settings.get(UNEMBEDDED) is None:
        store.settings.put(UNEMBEDDED, "1")


class Batch(NamedTuple):
    """Texts that wait for a vector, by id. It is out of date after a purge, and after all vectors were dropped."""

    purges: str | None
    drops: int
    texts: list[tuple[int, str]]


class _Stored(NamedTuple):
    fingerprint: str | None
    length: int | None


class Embedding:
    """An embedder together with what is stored of it."""

    def __init__(self, store: Store, ledger: LedgerTable, embedder: Embedder, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self.embedder = embedder
        self.drops = 0  # how often all stored vectors were dropped: what is in memory from before is worthless
        self._stored: _Stored | None = None  # as it was last read outside of a transaction
        self._revision = 0  # of the database then, for a reader
        self._length: int | None = None  # of the vectors that the embedder gave last
        self._failed: tuple[datetime, str] | None = None  # the last failure: when, and why
        self._logged: set[str] = set()  # kinds of failures that are in the ledger already
        self._chance: dict[Sequence[str], float] = {}  # by the sentences that it was measured with

    def embed(self, text: str) -> Vectors | None:
        """Return the vector of a text; None while the embedder fails. Raises nothing."""
        rows = self._embed_unless_paused([text])
        return None if rows is None else rows[0]

    def _embed_unless_paused(self, texts: Sequence[str]) -> Vectors | None:
        try:
            return None if self.is_paused else self.embed_all(texts)
        except EmbedderUnavailableError as error:
            self.log_failure(error)
            return None

    @property
    def is_paused(self) -> bool:
        """True for a while after a failure."""
        return self._failed is not None and timedelta(0) <= self._clock.now() - self._failed[0] < PAUSE

    @property
    def failure(self) -> str | None:
        """The reason why searches go without meaning now; None if they do not."""
        return self._failed[1] if self._failed else None

    def embed_all(self, texts: Sequence[str]) -> Vectors:
        """Return a vector of unit length for each text. Raises EmbedderUnavailableError."""
        import numpy as np

        try:
            rows = np.asarray(self.embedder.embed(texts), dtype=np.float32)
            wanted = (len(texts), self.embedder.dimension)
            squares = np.einsum("ij,ij->i", rows, rows) if rows.shape == wanted else np.array([math.nan])
            if not np.isfinite(squares).all():
                raise EmbedderUnavailableError(
                    f"the embedder returned an array of shape {rows.shape}; expected finite numbers of shape {wanted}."
                )
        except Exception as error:
            if not isinstance(error, EmbedderUnavailableError):
                error = EmbedderUnavailableError(f"the embedder failed: {type(error).__name__}: {error}")
            self._failed = self._clock.now(), str(error)
            raise error
        self._length = rows.shape[1]
        if self._failed:
            self._failed = None
            self.log_again("embedder")
        if (abs(squares - 1) < NEARLY_UNIT).all():
            return rows
        return (rows / np.sqrt(np.where(squares > 0, squares, 1))[:, None]).astype(np.float32)

    def chance_cosine(self, message: str) -> float | None:
        """Return the mean cosine of unrelated sentences in the script of a message; None while the embedder fails."""
        texts = unrelated_sentences(message)
        if texts not in self._chance:
            rows = self._embed_unless_paused(texts)
            if rows is None:
                return None
            self._chance[texts] = float((rows @ rows.T).sum() - len(texts)) / (len(texts) * (len(texts) - 1))
        return self._chance[texts]

    def batch(self, texts: list[tuple[int, str]]) -> Batch:
        """Return a batch of texts as they read now."""
        return Batch(self._store.settings.get("purges"), self.drops, texts)

    def embed_batch(self, batch: Batch) -> Vectors:
        """Return the vectors of a batch. This is the slow part; it needs no lock."""
        return self.embed_all([text for _, text in batch.texts])

    def is_current(self, batch: Batch, rows: Vectors) -> bool:
        """Return True if the texts of a batch still read the same, and its vectors fit what is stored."""
        is_unchanged = batch.purges == self._store.settings.get("purges") and batch.drops == self.drops
        return is_unchanged and self.has_current_length(rows)

    def has_current_length(self, rows: Vectors) -> bool:
        """Return True if the embedder still gives such vectors: a server may load another model between two calls."""
        return rows.shape[-1] == self._length

    def vectors_match(self) -> bool:
        """Return True if what is stored can be compared with this embedder's vectors; a reader raises if it cannot."""
        stored = self._load_stored()
        if stored.fingerprint in (None, self.embedder.fingerprint) and self._fits(stored):
            return True
        if self._store.read_only:
            length = "" if self._fits(stored) else f" of {stored.length} numbers, not {self._length}"
            raise EmbedderUnavailableError(
                f"the vectors were made by {stored.fingerprint}{length}; read them with the same embedder."
            )
        return False

    def stamp(self) -> str | None:
        """Name what made the stored vectors; None while they cannot be compared with this embedder's."""
        stored = self._load_stored() if self.vectors_match() else None
        return stored and f"{stored.fingerprint} {stored.length}"

    def prepare_search(self) -> bool:
        """Return `vectors_match()`. The writer drops what another embedder made; in a transaction after its commit."""
        if self.vectors_match():
            return True
        self._store.after_commit(self.check_committed)
        return self.vectors_match()

    def check_committed(self) -> None:
        """Call `check_embedder` in a transaction of its own."""
        with self._store.transaction():
            self.check_embedder()

    def check_embedder(self) -> None:
        """Drop what another embedder made, in the caller's transaction. Call it before a vector is stored."""
        stored, length = self._load_stored(), self._length
        is_known = stored.length is not None or length is None
        if stored.fingerprint == self.embedder.fingerprint and self._fits(stored) and is_known:
            return
        self._stored = None
        self._store.after_commit(self._load_stored)
        if stored.fingerprint == self.embedder.fingerprint and self._fits(stored):
            return  # these are the first vectors
        if stored.fingerprint is not None:
            change = f"{stored.fingerprint} -> {self.embedder.fingerprint}"
            change += "" if self._fits(stored) else f", now of {length} numbers"
            self._ledger.write("embedder", reason=f"{change}: all is embedded anew")
            self._store.archive.drop_vectors()
            self._store.said.drop_vectors()
            self.drops += 1
        self._store.settings.put("embedder", self.embedder.fingerprint)
        mark_unembedded(self._store)

    def _fits(self, stored: _Stored) -> bool:
        return self._length is None or stored.length in (None, self._length)

    def _load_stored(self) -> _Stored:
        """Read it once: only the writer changes it. A reader looks whether anything was committed since."""
        revision = self._store.revision() if self._store.read_only else 0
        if self._stored is not None and revision == self._revision:
            return self._stored
        length = self._store.archive.dimension() or self._store.said.dimension()
        stored = _Stored(self._store.settings.get("embedder"), length)
        if not self._store.in_transaction:  # or it may be rolled back
            self._stored, self._revision = stored, revision
        return stored

    def log_failure(self, error: EmbedderUnavailableError) -> None:
        """Write a failure of the embedder to the ledger, once until it is over."""
        why = str(error).rstrip(".")
        self.log_once("embedder", f"{why}; words answer meanwhile, and it is asked again after {PAUSE.seconds} seconds")

    def log_once(self, event: str, text: str) -> None:
        """Write a kind of failure to the ledger, unless it is there and `log_again` was not called since."""
        if event not in self._logged:
            self._logged.add(event)
            self.log(event, text)

    def log(self, event: str, text: str) -> None:
        """Write to the ledger. If the disk refuses it, nothing is raised: the caller's work is done, or goes on."""
        with suppress(StorageError):
            self._ledger.write(event, reason=text)

    def log_again(self, *events: str) -> None:
        """Let `log_once` write these kinds of failures again, or all of them."""
        self._logged.difference_update(events or tuple(self._logged))


def unrelated_sentences(message: str) -> tuple[str, ...]:
    """Return sentences that have nothing to do with each other, in the script of most letters of a message."""
    (_, default), *others = _load_sentences()
    letters = sum(map(str.isalpha, message))
    found = {texts: len(script.findall(message)) for script, texts in others}
    kana, chinese = (texts for _, texts in others[-2:])
    if found[kana]:  # among Chinese characters it makes a message Japanese
        found[kana] += found.pop(chinese)
    texts = max(found, key=found.__getitem__)
    return texts if 0 < letters <= 2 * found[texts] else default


@cache
def _load_sentences() -> list[tuple[re.Pattern[str], tuple[str, ...]]]:
    rows = json.loads(SENTENCES.read_text(encoding="utf-8"))
    return [(re.compile(f"[{row['letters'] or 'a-z'}]"), tuple(row["sentences"])) for row in rows]
