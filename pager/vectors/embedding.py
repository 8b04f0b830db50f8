"""Turns texts into vectors for everything that is searched by meaning, whatever the embedder does.

Rows of two embedders cannot be compared. When the embedder is another one than before (by its fingerprint, or by the
length of its vectors), all that is stored is dropped and embedded again in the background; words find it until then.
When only its token vectors are made in another way, or a file is from before there were any, those are dropped and made
again, and words and vectors find it until then.

An embedder is anybody's code. What goes wrong in it is written to the ledger, and search goes on without it. After a
failure only work in the background calls it for `PAUSE`: a server that is gone may cost its timeout each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple, cast

from pager.clock import Clock
from pager.errors import StorageError
from pager.store import Store
from pager.vectors import quantized
from pager.vectors.embedder import Embedder, EmbedderUnavailableError, Meaning, Rows, TokenEmbedder, TokenVectors

AT_ONCE = 32  # texts that are embedded before others get the lock again: a fraction of a second
PAUSE = timedelta(seconds=60)  # after a failure
LARGEST_BATCH = 256  # texts; in larger batches more texts have the same length, which go through a model together
UNEMBEDDED = "vectors_owed"  # the setting some facts may have no vector yet


def mark_unembedded(store: Store) -> None:
    """Note that facts without a vector may exist; they get one when an embedder works."""
    if store.settings.get(UNEMBEDDED) is None:
        store.settings.put(UNEMBEDDED, "1")


class _Stored(NamedTuple):
    """What made the stored vectors; None of what is not there."""

    fingerprint: str | None
    length: int | None
    token_fingerprint: str | None


class Batch(NamedTuple):
    """Texts that wait for a vector, by id. It is out of date after a purge."""

    purges: str | None
    texts: list[tuple[int, str]]


class Embedding:
    """An embedder together with what is stored of it."""

    def __init__(self, store: Store, embedder: Embedder, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.embedder = embedder
        self.drops = 0  # how often all stored vectors were dropped: what is in memory from before is worthless
        self.failure: str | None = None  # why searches go without meaning now
        self._failed_at: datetime | None = None  # while there is a failure
        # Not isinstance: that reads every attribute, and some embedders embed a text to know their dimension.
        self._tokens = cast("TokenEmbedder", embedder) if hasattr(embedder, "embed_tokens") else None
        self._token_fingerprint = self._tokens.token_fingerprint if self._tokens else None
        self._stored: _Stored | None = None  # what `_load_stored` has found
        self._newest: tuple[str, Meaning] | None = None  # the text that was embedded last
        self._length: int | None = None  # of the vectors that the embedder gave last
        self._logged: set[str] = set()  # kinds of failures that are in the ledger already

    def embed(self, text: str) -> Meaning | None:
        """Return what a text means; None while the embedder fails. Raises nothing.

        A message is asked for several times in a row, so the last one is cached.
        """
        if (
            self._newest and self._newest[0] == text and self.failure is None
            and self.has_current_length(self._newest[1].vector)
        ):  # fmt: skip
            return self._newest[1]
        if self.is_paused:
            return None
        try:
            [meaning] = self.embed_all([text])
        except EmbedderUnavailableError as error:
            self.log_failure(error)
            return None
        self._newest = text, meaning
        return meaning

    def embed_ahead(self, text: str) -> None:
        """Cache what a text means for the next `embed`. It needs no lock: a failure is logged by that call."""
        if not self.is_paused:
            with suppress(EmbedderUnavailableError):
                [meaning] = self.embed_all([text])
                self._newest = text, meaning

    @property
    def is_paused(self) -> bool:
        """True for a while after a failure."""
        return self._failed_at is not None and timedelta(0) <= self._clock.now() - self._failed_at < PAUSE

    def embed_all(self, texts: Sequence[str]) -> list[Meaning]:
        """Return what each text means. Raises EmbedderUnavailableError."""
        import numpy as np

        # Half of a character, which no encoder takes, becomes a question mark.
        readable = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
        try:
            tokens: Sequence[TokenVectors | None] = [None] * len(texts)
            if self._tokens:
                given, tokens = self._tokens.embed_tokens(readable)
                quantized.check_tokens(tokens, len(texts))
            else:
                given = self.embedder.embed(readable)
            rows = np.asarray(given, dtype=np.float32)
            wanted = (len(texts), self.embedder.dimension)
            if rows.shape != wanted or not np.isfinite(lengths := np.linalg.norm(rows, axis=1, keepdims=True)).all():
                raise EmbedderUnavailableError(
                    f"the embedder returned an array of shape {rows.shape}; expected finite numbers of shape {wanted}."
                )
        except Exception as error:
            if not isinstance(error, EmbedderUnavailableError):
                error = EmbedderUnavailableError(f"the embedder failed: {type(error).__name__}: {error}")
            self._failed_at, self.failure = self._clock.now(), str(error)
            raise error
        self._length = rows.shape[1]
        if self.failure:
            self._failed_at = self.failure = None
            self.log_again("embedder")
        return list(map(Meaning, rows / np.maximum(lengths, 1e-30), tokens))

    def batch(self, texts: list[tuple[int, str]]) -> Batch:
        """Return a batch of texts as they read now."""
        return Batch(self._store.settings.get("purges"), texts)

    def embed_batch(self, batch: Batch) -> list[Meaning]:
        """Return what the texts of a batch mean. This is the slow part; it needs no lock."""
        return self.embed_all([text for _, text in batch.texts])

    def is_current(self, batch: Batch, meanings: Sequence[Meaning]) -> bool:
        """Return True if the texts of a batch still read the same, and its vectors fit what is stored."""
        return batch.purges == self._store.settings.get("purges") and self.has_current_length(meanings[0].vector)

    def has_current_length(self, vector: Rows) -> bool:
        """Return True if the embedder still gives such vectors: a server may load another model between two calls."""
        return len(vector) == self._length

    def vectors_match(self) -> bool:
        """Return True if what is stored can be compared with this embedder's vectors; a reader raises if it cannot."""
        change = self._change()
        if change and self._store.read_only:
            raise EmbedderUnavailableError(f"another embedder made the vectors ({change}); read them with that one.")
        return change is None

    def stamp(self) -> str | None:
        """Name what made the stored vectors; None while they cannot be compared with this embedder's."""
        stored = self._load_stored() if self.vectors_match() else None
        return stored and f"{stored.fingerprint} {stored.length}"

    @property
    def has_tokens(self) -> bool:
        """True if the embedder gives token vectors."""
        return self._tokens is not None

    def tokens_match(self) -> bool:
        """Return True if the stored token vectors, if any, can be compared with those that the embedder gives."""
        stored = self._load_stored()
        return stored.fingerprint is None or not self.has_tokens or stored.token_fingerprint == self._token_fingerprint

    def best_cosines(
        self, question: str, rarities: Mapping[str, float], load: Callable[[Sequence[int]], dict[int, bytes]],
        ids: Sequence[int],
    ) -> tuple[list[int], Rows, Rows] | None:  # fmt: skip
        """Return which texts have token vectors, the weight of each piece of the question, and its best cosines.

        None if nothing can be compared. Call it after `prepare_search` said that the vectors match.
        There is a row of cosines for each piece, with one for each of those texts. `load` reads what is stored.
        """
        if not (self.has_tokens and self.tokens_match()):
            return None
        stored = {number: packed for number, packed in load(ids).items() if quantized.is_packed(packed)}
        meaning = self.embed(question) if stored else None
        if meaning is None or meaning.tokens is None or not meaning.tokens.words:
            return None
        return list(stored), *quantized.best_cosines(meaning.tokens, rarities, list(stored.values()))

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
        stored = self._load_stored()
        if change := self._change():
            self._store.ledger.write("embedder", reason=f"{change}: all is embedded anew")
            self._store.archive.drop_vectors()
            self._store.said.drop_vectors()
            self.drops += 1
        elif stored.fingerprint is not None:
            if self.tokens_match():
                return
            change = f"{stored.token_fingerprint} -> {self._token_fingerprint}"
            self._store.ledger.write("embedder", reason=f"{change}: the vectors of word pieces are made anew")
            self._store.archive.drop_token_vectors()
            self._store.said.drop_token_vectors()
        self._stored = None
        self._store.settings.put("embedder", self.embedder.fingerprint)
        self._store.settings.put("token_vectors", self._token_fingerprint)
        mark_unembedded(self._store)

    def _change(self) -> str | None:
        """Return which embedder made what is stored, and which one this is; None if both can be compared."""
        fingerprint, length, _ = self._load_stored()
        has_other_length = length is not None and self._length not in (None, length)
        if fingerprint in (None, self.embedder.fingerprint) and not has_other_length:
            return None
        change = f"{fingerprint} -> {self.embedder.fingerprint}"
        return f"{change}, now of {self._length} numbers" if has_other_length else change

    def _load_stored(self) -> _Stored:
        if self._stored is None:
            length = self._store.archive.dimension() or self._store.said.dimension()
            settings = self._store.settings
            stored = _Stored(settings.get("embedder"), length, settings.get("token_vectors"))
            if length is None or self._store.read_only or self._store.in_transaction:
                return stored  # the first vectors, another process or a rollback may change it
            self._stored = stored
        return self._stored

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
            self._store.ledger.write(event, reason=text)

    def log_again(self, *events: str) -> None:
        """Let `log_once` write these kinds of failures again, or all of them."""
        self._logged.difference_update(events or tuple(self._logged))
