"""The protocol of an embedder: what turns texts into vectors.

The same text gives the same vector up to float rounding, whatever other texts are in the call. Only the direction of a
vector counts. Several threads may call it. Making one is cheap: what is heavy is loaded at the first `embed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pager.errors import PagerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]
else:
    Rows = Any  # importing this must not load numpy, and type hints of `embed` can be resolved


class EmbedderUnavailableError(PagerError):
    """The embedder is missing something, is damaged or does not answer. Search by words works without it."""


class TokenVectors(NamedTuple):
    """The vectors of a text's word pieces: of each the word that it belongs to, as written, and a unit vector."""

    words: list[str]
    rows: Rows


class Meaning(NamedTuple):
    """What an embedder makes of a text: its vector of unit length, and those of its word pieces if it has them."""

    vector: Rows
    tokens: TokenVectors | None


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def fingerprint(self) -> str:
        """Name the model, its weights and how they are used. Vectors of different fingerprints are never compared."""
        ...

    @property
    def dimension(self) -> int:
        """Return the length of a row."""
        ...

    def embed(self, texts: Sequence[str]) -> Rows:
        """Return one row per text, in their order. At least one text is given; a text may be empty."""
        ...


class TokenEmbedder(Embedder, Protocol):
    """An Embedder that also gives the vectors of a text's word pieces, `TOKEN_DIMENSION` numbers each."""

    @property
    def token_fingerprint(self) -> str:
        """Name how token vectors are made. Those of different fingerprints are never compared."""
        ...

    def embed_tokens(self, texts: Sequence[str]) -> tuple[Rows, list[TokenVectors]]:
        """Return what `embed` returns, and the token vectors of each text."""
        ...
