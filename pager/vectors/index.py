"""The vector index: generations, each built once by a child process, proven, and then only read.

An index is a cache. Every vector is in pager.db, so it can be deleted and built anew at any time, and it is never the
only way to a fact: what came after a generation is compared one by one, and so is everything while there is none to
ask.

    building    a child process writes the facts that have not ended, and compares its answers with exact ones
    publishing  its description replaces that of the one before; one that did not find enough is described and removed
    reading     changes nothing; what is not as it was built raises IndexDamagedError

`pager.vectors.chroma.places` says where generations are, in a directory or on a Chroma server, and has them built.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pager.errors import PagerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]  # one row per fact

Stop = Callable[[], bool]  # called now and then by what takes long; True ends it with BuildCancelledError
FORMAT = 3
RECALL = 0.995  # of the ten nearest facts that a generation must find


class IndexUnavailableError(PagerError):
    """The index cannot answer now. SQLite can, so nothing is lost."""


class IndexDamagedError(IndexUnavailableError):
    """A generation is not as it was built. The next one mends it."""


class BuildCancelledError(IndexUnavailableError):
    """The caller's `stop` ended it before it was done. Nothing is wrong."""


def never() -> bool:
    """Return False: a `Stop` that does not stop."""
    return False


@dataclass(frozen=True)
class ChromaServer:
    """A Chroma server that holds an archive's index. Chroma Cloud takes its key as the header x-chroma-token."""

    host: str
    port: int = 8000
    ssl: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    tenant: str = "default_tenant"
    database: str = "default_database"


class Generation(NamedTuple):
    """What a generation holds. A plan has no facts yet; one that failed its proof has no name."""

    stamp: str  # the embedder, and the length of its vectors
    through: int  # the last row of `vectors` that it may hold
    last: int  # the digest of the fact in that row: by it the database is known
    moment: int  # facts that had ended by then are not in it
    name: str
    facts: int = 0
    recall: float = 0.0
    files: dict[str, list[Any]] = {}  # noqa: RUF012 -- size and digest of each; never changed

    @property
    def is_proven(self) -> bool:
        """Return True if it found enough of what it holds to be asked."""
        return bool(self.name)

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps({"format": FORMAT, **self._asdict()})

    @classmethod
    def from_json(cls, text: str | bytes) -> Generation | None:
        """Read what `to_json` wrote; None for anything else."""
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            values = json.loads(text)
            if values.pop("format", 0) == FORMAT:
                found = cls(**values)
                kinds = map(type, cls("", 0, 0, 0, "", 0, 0.0, {}))
                fits = list(map(type, found)) == list(kinds)
                fits = fits and all(list(map(type, each)) == [int, int] for each in found.files.values())
                numbers = (found.through, found.last, found.moment, found.facts)
                return found if fits and all(-(2**63) <= number < 2**63 for number in numbers) else None  # of SQLite
        return None
