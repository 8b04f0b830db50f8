"""The figures that the debug view has to hold, as one table: `python -m tests.bench.bench_view [paint agent]`

Times are medians; what is compared takes turns. Needs a browser. Exits with 1 when a limit does not hold.
"""

from __future__ import annotations

import sys

from tests.bench import view_agent_cost, view_paint_cost
from tests.bench.running import run

BENCHES = {"paint": view_paint_cost.figures, "agent": view_agent_cost.figures}

if __name__ == "__main__":
    sys.exit(run(BENCHES, sys.argv[1:], "playwright"))
