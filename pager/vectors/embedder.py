"""What turns texts into vectors: the seam between archival search and a model.

An embedder promises that the same text gives the same vector, up to float rounding, in whatever company it
comes; that rows have unit length, so a dot product is the cosine; and that any string is accepted, an empty one
too. It may be called from several threads. Making one is cheap: what is heavy is loaded at the first `embed`.

    >>> embedder = default_embedder()
    >>> seat, question = embedder.embed(["prefers window seats", "where to sit?"])
    >>> closeness = float(seat @ question)
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from pager.errors import PagerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EmbedderUnavailableError(PagerError):
    """Something that the embedder needs is missing or damaged. Search by words works without it."""


class Embedder(Protocol):
    @property
    def fingerprint(self) -> str:
        """Names the model, its weights and how they are used. Vectors of different fingerprints never meet."""
        ...

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, in their order: shape (len(texts), dimension)."""
        ...


def default_embedder() -> Embedder:
    """all-MiniLM-L6-v2, in pager.vectors.minilm. Raises EmbedderUnavailableError when a package is not installed."""
    # By name: implementations stand above their seam, which therefore must not import them.
    return cast("Embedder", import_module("pager.vectors.minilm").MiniLM())
