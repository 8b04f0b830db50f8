"""Starts the child process that writes a generation and proves it, and is that process.

It reads pager.db itself, and ends with its parent.

The proof compares answers with exact ones. It asks for the most isolated facts, which Chroma's graph loses first, for
others, and for what lies between two facts, as questions do.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import TYPE_CHECKING, Any

from pager.clock import SystemClock
from pager.store import Store
from pager.vectors.chroma.collection import (
    COLLECTION,
    DATABASE_FILE,
    Connection,
    LocalCollection,
    ServerCollection,
)
from pager.vectors.index import BuildCancelledError, ChromaServer, Generation, IndexUnavailableError, Stop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pager.vectors.index import Vectors

    Piece = tuple[list[Any], Vectors]

AT_ONCE = 5_000  # facts; Chroma refuses more than 5,461
ENOUGH = 0.999  # of what is near. More than RECALL: the proof's questions may be easier than those asked later
AT_ONCE_BY_WIRE = 300  # what Chroma Cloud takes
WIDTHS = (200, 800, 1600)  # how many candidates a query looks at: the first with which enough is found
ASKED = 100  # questions of each kind
SAMPLE = 500  # facts, for the others to be far from
NEAREST, CANDIDATES = 10, 64  # that must be found, among so many: what a search asks for
ROUNDING = 1e-5  # of a cosine
# Chroma writes a row into this table at each opening, and a reader must not change a generation.
_UNCHANGED = "CREATE TRIGGER unchanged BEFORE INSERT ON acquire_write BEGIN SELECT raise(IGNORE); END"

POLL_S = 0.1
# The child finds the package where this process imported it from, as the last entry of its path; -P keeps the working
# directory off the path.
_RUN = "import sys; sys.path.append(sys.argv[1]); from pager.vectors.chroma.build import main; main()"


def build_in_child(order: str, stop: Stop) -> tuple[int, float]:
    """Run `main` in a process of its own. Return the number of facts, and its recall."""
    # Chroma holds Python's lock while it writes, and may end the process that runs it.
    command = [sys.executable, "-P", "-c", _RUN, str(Path(__file__).resolve().parents[3])]
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


def build(store: Store, order: dict[str, Any]) -> tuple[int, float]:
    """Write a generation. Return how many facts it holds, and how much of what is near it finds."""
    plan = Generation.from_json(order["plan"])
    if plan is None:
        raise IndexUnavailableError("the plan cannot be read")
    is_local = "directory" in order
    place = Path(order["directory"]) if is_local else ChromaServer(**order["server"])
    name = COLLECTION if is_local else plan.name
    if isinstance(place, Path):
        place.mkdir(mode=0o700, parents=True)
    with closing(Connection(place)) as connection:
        collection = connection.create(name)
        for rows, vectors in _pieces(store, plan, AT_ONCE if is_local else AT_ONCE_BY_WIRE):
            collection.add(
                [f"f{row['fact']}" for row in rows], vectors, [_metadata(row) for row in rows],
                [row["text"] for row in rows],
            )  # fmt: skip
        count = collection.count()  # requests are answered in order: what was written before is flushed then
    proof, recall = Proof(lambda: _pieces(store, plan, AT_ONCE), count), 0.0
    for candidates in WIDTHS:
        with closing(Connection(place)) as connection:
            connection.get(name).modify(configuration={"hnsw": {"ef_search": candidates}})
        opened = LocalCollection(place) if isinstance(place, Path) else ServerCollection(place, name, count)
        with closing(opened):
            recall = proof.recall(opened)
        if recall >= ENOUGH:
            break
    if isinstance(place, Path):
        with closing(sqlite3.connect(place / DATABASE_FILE)) as database:
            database.execute(_UNCHANGED)
    return count, recall


def _pieces(store: Store, plan: Generation, limit: int) -> Iterator[Piece]:
    row = 0
    while row < plan.through:
        row, rows, vectors = store.archive.to_index(row, plan.through, limit, plan.moment)
        if rows:
            yield rows, vectors


def _metadata(row: Any) -> dict[str, Any]:
    """Return what a person can filter by. Chroma takes neither None nor an empty list."""
    origins = [(origin["source"], *origin.get("via", ())) for origin in json.loads(row["sources"])]
    sources = list(dict.fromkeys(name for names in origins for name in names))
    known = {"key": row["key"], "tags": json.loads(row["tags"]), "source": sources}
    times = {"valid_from": row["valid_from"] / 1e6, "at": row["at"] / 1e6}  # seconds since 1970
    return {name: value for name, value in known.items() if value} | times


class Proof:
    """Questions to a generation, and how near the nearest facts to them are."""

    def __init__(self, pieces: Callable[[], Iterator[Piece]], count: int) -> None:
        import numpy as np

        self._wanted = min(NEAREST, count)
        if not count:
            return
        sample = _rows_at(pieces(), range(0, count, max(1, count // SAMPLE)))
        alone = np.concatenate([vectors[_order_of_isolation(vectors, sample)[:ASKED]] for _, vectors in pieces()])
        alone = alone[_order_of_isolation(alone, sample)[:ASKED]]
        between = sample + np.roll(sample, 1, axis=0)
        between /= np.maximum(np.linalg.norm(between, axis=1, keepdims=True), 1e-9)
        step = max(1, len(sample) // ASKED)
        self._questions = np.concatenate([alone, sample[::step], between[::step]])
        nearest = np.full((len(self._questions), NEAREST), -2.0, dtype=np.float32)
        for _, vectors in pieces():
            cosines = np.hstack([nearest, self._questions @ vectors.T])
            nearest = np.partition(cosines, -NEAREST)[:, -NEAREST:]
        self._least: list[float] = np.sort(nearest)[:, -self._wanted].tolist()

    def recall(self, collection: LocalCollection | ServerCollection) -> float:
        """Return how much of the nearest facts of each question is among its candidates."""
        if not self._wanted:
            return 1.0
        found = 0
        for question, least in zip(self._questions, self._least, strict=True):
            near = collection.query(question, CANDIDATES)
            found += min(self._wanted, sum(cosine >= least - ROUNDING for _, cosine in near))
        return found / (self._wanted * len(self._questions))


def _rows_at(pieces: Iterator[Piece], places: range) -> Vectors:
    """Return the vectors at these places of all."""
    import numpy as np

    found, begin = list[Any](), 0
    for _, vectors in pieces:
        found.append(vectors[[place - begin for place in places if begin <= place < begin + len(vectors)]])
        begin += len(vectors)
    return np.concatenate(found)


def _order_of_isolation(vectors: Vectors, sample: Vectors) -> NDArray[np.int64]:
    """Return the places of vectors, those first that are farthest from all in the sample but from themselves."""
    import numpy as np

    cosines = vectors @ sample.T
    return np.argsort(np.where(cosines > 1 - ROUNDING, -2.0, cosines).max(axis=1))


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # until the parent closes it, or is gone
    os._exit(1)


def main() -> None:
    """Carry out the order on standard input. The last line says what came of it."""
    os.umask(0o077)  # Chroma creates its files for everybody
    if hasattr(os, "nice"):
        os.nice(19)
    order = json.loads(sys.stdin.buffer.readline() or "null")
    if order is None:
        sys.exit("its parent is gone")
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        with closing(Store(Path(order["database"]), SystemClock(), read_only=True)) as store:
            done = build(store, order)
    except Exception as error:  # noqa: BLE001 -- one line for the ledger
        _end(1, " ".join(f"{type(error).__name__}: {error}".split()))
    else:
        _end(0, json.dumps(done))


def _end(status: int, text: str) -> None:
    """End without waiting for Chroma's threads. Python's own way out would abort: a thread holds standard input."""
    os.write(1, f"\n{text}\n".encode(errors="replace"))
    os._exit(status)
