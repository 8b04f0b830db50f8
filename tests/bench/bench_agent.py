"""The figures that the agent has to hold, as one table: `python -m tests.bench.bench_agent [turn prompt start]`

Times are medians; what is compared takes turns in this process. Exits with 1 when a limit does not hold.
"""

from __future__ import annotations

import sys

from tests.bench import agent_prompt_cost, agent_start_cost, agent_turn_cost
from tests.bench.running import run

BENCHES = {
    "turn": agent_turn_cost.figures,
    "prompt": agent_prompt_cost.figures,
    "start": agent_start_cost.figures,
}

if __name__ == "__main__":
    sys.exit(run(BENCHES, sys.argv[1:], "anthropic"))
