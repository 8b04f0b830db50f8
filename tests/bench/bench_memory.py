"""The figures that the memory has to hold, as one table: `python -m tests.bench.bench_memory [turn archive ...]`

Every figure is a ratio of two sides that take turns in this process (or an absolute bound, where that was asked for),
the median of hundreds of rounds after a warm-up. Disk and clock are the machine's own: set TMPDIR to choose the disk.
Exits with 1 when a limit does not hold.
"""

from __future__ import annotations

import sys

from tests.bench import archive_cost, disk_use, search_cost, start_cost, turn_cost
from tests.bench.running import run

BENCHES = {
    "turn": turn_cost.figures,
    "archive": archive_cost.figures,
    "search": search_cost.figures,
    "disk": disk_use.figures,
    "start": start_cost.figures,
}

if __name__ == "__main__":
    sys.exit(run(BENCHES, sys.argv[1:], "chromadb"))
