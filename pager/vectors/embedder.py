"""The protocol of an embedder: what turns texts into vectors.

The same text gives the same vector up to float rounding, whatever other texts are in the call. Only the direction of a
vector counts. Several threads may call it. Making one is cheap: what is heavy is loaded at the first `embed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pager.errors import PagerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]
else:
    Rows = Any  # importing this must not load numpy, and type hints of `embed` can be resolved


class EmbedderUnavailableError(PagerError):
    """The embedder is missing something, is damaged or does not answer. Search by words works without it."""


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
