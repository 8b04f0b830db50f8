"""The vector index: generations, each built once by a child process, proven, and then only read.

An index is a cache. Every vector is in pager.db, so it can be deleted and built anew at any time, and it is never the
only way to a fact: what came after a generation is compared itself, and so is everything while none can be asked.

    building    a child process writes the facts that have not ended, and compares its answers with exact ones
    publishing  its description replaces that of the one before; one that did not find enough is described and removed
    reading     changes nothing; what is not as it was built raises IndexDamagedError

`pager.vectors.chroma.places` says where generations are: in a directory, or on a Chroma server.
"""

from __future__ import annotations

import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from pager.errors import PagerError
from pager.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pager.vectors.chroma.collection import Collection

    Vectors = NDArray[np.float32]  # one row per fact

Stop = Callable[[], bool]  # called now and then by what takes long; True ends it with BuildCancelledError
FORMAT = 3
RECALL = 0.995  # of the ten nearest facts that a generation must find
POLL_S = 0.1
# The child finds the package where this process imported it from, as the last entry of its path; -P keeps the working
# directory off the path.
_RUN = "import sys; sys.path.append(sys.argv[1]); from pager.vectors.chroma.build import main; main()"


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
        with suppress(ValueError, TypeError, AttributeError):
            values = json.loads(text)
            if values.pop("format", 0) == FORMAT:
                found = cls(**values)
                kinds = map(type, cls("", 0, 0, "", 0, 0.0, {}))
                return found if list(map(type, found)) == list(kinds) else None
        return None


class Index(ABC):
    """The generations of one archive. Only `build` may run without the memory's lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._building = Lock()

    @abstractmethod
    def newest(self) -> Generation | None:
        """Return what was published last, and what is known of it."""

    @abstractmethod
    def next_name(self) -> str:
        """Return a name for the next generation."""

    @abstractmethod
    def open(self, generation: Generation) -> Collection:
        """Open a generation to read it."""

    @abstractmethod
    def publish(self, built: Generation) -> None:
        """Make it the newest, and remove all others."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a generation, if it exists."""

    @abstractmethod
    def clear(self) -> None:
        """Remove every byte of all of them. Raises StorageError."""

    @abstractmethod
    def order(self, name: str) -> dict[str, Any]:
        """Return where a child process writes the generation."""

    def described(self, built: Generation) -> Generation:
        """Return it with what `open` checks."""
        return built

    def build(self, plan: Generation, stop: Stop) -> Generation:
        """Build a generation and prove it. Nobody is asked to use it before `publish`."""
        with self._building:
            self.remove(plan.name)
            try:
                order = {"database": str(self._store.path.absolute()), "plan": plan.to_json(), **self.order(plan.name)}
                try:
                    facts, recall = build_in_child(json.dumps(order), stop)
                except OSError as error:
                    raise IndexUnavailableError(f"could not start building the index: {error}") from error
                built = plan._replace(facts=facts, recall=recall)
                if recall >= RECALL:
                    return self.described(built)
            except BaseException:
                with suppress(IndexUnavailableError):
                    self.remove(plan.name)
                raise
            self.remove(plan.name)
            return built._replace(name="")

    def wait(self) -> None:
        """Wait until no other thread is building."""
        with self._building:
            pass


def build_in_child(order: str, stop: Stop) -> tuple[int, float]:
    """Run `pager.vectors.chroma.build` in a process of its own. Return the number of facts, and its recall."""
    # Chroma holds Python's lock while it writes, and may end the process that runs it.
    command = [sys.executable, "-P", "-c", _RUN, str(Path(__file__).resolve().parents[2])]
    with TemporaryFile() as output:
        # In a session of its own: a Ctrl-C at the terminal is for this process.
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True)
        assert child.stdin is not None
        try:
            with suppress(BrokenPipeError):  # it has ended; its output says why
                child.stdin.write(order.encode() + b"\n")
                child.stdin.flush()
            while child.poll() is None:
                if stop():
                    raise BuildCancelledError("the index was not built to its end")
                with suppress(subprocess.TimeoutExpired):
                    child.wait(POLL_S)
        finally:
            child.kill()
            child.wait()
            with suppress(BrokenPipeError):
                child.stdin.close()
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines() or ["no message"]
    if child.returncode != 0:
        raise IndexUnavailableError(f"building the index ended with {child.returncode}: {lines[-1][:500]}")
    facts, recall = json.loads(lines[-1])
    return facts, recall
