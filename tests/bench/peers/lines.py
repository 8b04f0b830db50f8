"""Drive a side of a comparison by JSON lines on its standard input, with one answer for each on its standard output.

Every side is a script that its own interpreter runs, ours among them; so this file needs nothing but the standard
library. `{"do": "turn", "text": "..."}` calls `side.turn(text="...")`; what it returns comes back as `{"did": ...}`,
what it raises as `{"failed": "ValueError: ..."}`. `measure` is answered here: some turns, each with its time.

A side has `turn(text)`; `grow(turns)`, which adds turns (what was said, what was answered) by the quickest way it has;
`said()`, all that it can bring back of what was said to it; and `close()`.

    serve(Side)         # Side(base_url, directory, ...), from the command line
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

KEPT_TURNS = 350  # what a side that has no window of its own sends at most: about what ours holds
MODEL = "m"
MAX_TOKENS = 1_000
INSTRUCTIONS = "You are a helpful assistant. Answer briefly."
MARK = "Remember: "  # a message that begins so has a fact to be kept


def serve(make: Callable[..., Any]) -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer

    def answer(action: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            value = action(*arguments, **named)
        except Exception as error:  # noqa: BLE001  that it fails may be what is measured
            line = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        else:
            line = {"did": value}
        out.write(json.dumps(line, default=lambda _: "opened") + "\n")
        return line.get("did")

    side = answer(make, sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
    if side is None:
        return
    try:
        for line in sys.stdin:
            arguments = json.loads(line)
            name = arguments.pop("do")
            answer(partial(measure, side) if name == "measure" else getattr(side, name), **arguments)
    finally:
        side.close()


def measure(side: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Take one turn for each text: the seconds of each, the CPU seconds of all."""
    walls: list[float] = []
    cpu = time.process_time()
    for text in texts:
        start = time.perf_counter()
        side.turn(text)
        walls.append(time.perf_counter() - start)
    return {"walls": walls, "cpu": time.process_time() - cpu}


def memory_mb() -> float:
    """Return what of this process is in memory now, where the system tells; else the most that it was."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1_024
