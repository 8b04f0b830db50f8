"""One run of benches: what the machine is, each bench in a directory of its own, the table. Exits with 1 on a FAIL."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.figures import Figure, table, timed

Bench = Callable[[Path], list[Figure]]


def run(benches: Mapping[str, Bench], wanted: Sequence[str], *libraries: str) -> int:
    """All of them, or those that are wanted. The versions of `libraries` are told."""
    if unknown := [name for name in wanted if name not in benches]:
        print(f"no bench {', '.join(unknown)}; there are {', '.join(benches)}", file=sys.stderr)
        return 2
    found: list[Figure] = []
    with TemporaryDirectory(prefix="bench-") as work:
        print(machine(Path(work), libraries), "\n", flush=True)
        for name in wanted or benches:
            place = Path(work, name)
            place.mkdir()
            print(f"{name} ...", file=sys.stderr, flush=True)
            found += benches[name](place)
    print(table(found))
    return int(any(figure.verdict == "FAIL" for figure in found))


def machine(work: Path, libraries: Sequence[str]) -> str:
    """What the absolute times depend on."""
    with (work / "sync").open("wb", buffering=0) as file:
        times = sorted(timed(lambda: (file.write(bytes(8192)), os.fsync(file.fileno()))) for _ in range(200))
    versions = ", ".join(f"{name} {version(name)}" for name in libraries)
    return (
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, fsync {1000 * times[100]:.2f} ms, "
        f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, {versions}"
    )
