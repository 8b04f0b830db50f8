"""The figures that the memory has to hold, as one table: `python -m tests.bench.bench_memory [turn archive ...]`

Every figure is a ratio of two sides that take turns in this process (or an absolute bound, where that was asked for),
the median of hundreds of rounds after a warm-up. Disk and clock are the machine's own: set TMPDIR to choose the disk.
Exits with 1 when a limit does not hold.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import archive_cost, disk_use, search_cost, start_cost, turn_cost
from tests.bench.figures import Figure, table, timed

BENCHES = {
    "turn": turn_cost.figures,
    "archive": archive_cost.figures,
    "search": search_cost.figures,
    "disk": disk_use.figures,
    "start": start_cost.figures,
}


def main(wanted: list[str]) -> int:
    if unknown := [name for name in wanted if name not in BENCHES]:
        print(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    found: list[Figure] = []
    with TemporaryDirectory(prefix="bench-memory-") as work:
        print(machine(Path(work)), "\n", flush=True)
        for name in wanted or BENCHES:
            place = Path(work, name)
            place.mkdir()
            print(f"{name} ...", file=sys.stderr, flush=True)
            found += BENCHES[name](place)
    print(table(found))
    return int(any(figure.verdict == "FAIL" for figure in found))


def machine(work: Path) -> str:
    """What the absolute times depend on."""
    with (work / "sync").open("wb", buffering=0) as file:
        times = sorted(timed(lambda: (file.write(bytes(8192)), os.fsync(file.fileno()))) for _ in range(200))
    return (
        f"{os.cpu_count()} cores, fsync {1000 * times[100]:.2f} ms, Python {sys.version.split()[0]}, "
        f"SQLite {sqlite3.sqlite_version}, chromadb {version('chromadb')}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
