"""How a side of a comparison is driven: JSON lines on its standard input, one answer for each on its standard output.

Every side is a script that its own interpreter runs, ours among them; so this file needs nothing but the standard
library. `{"do": "turn", "text": "..."}` calls `side.turn(text="...")`; what it returns comes back as `{"did": ...}`,
what it raises as `{"failed": "ValueError: ..."}`. `measure` is answered here: some turns, each with its time.

    serve(Side)         # Side(base_url, directory, ...), from the command line
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

KEPT_TURNS = 350  # what a side that has no window of its own sends at most: about what ours holds
MODEL = "m"
MAX_TOKENS = 1_000
INSTRUCTIONS = "You are a helpful assistant. Answer briefly."
MARK = "Remember: "  # a message that begins so has a fact to be kept


class Side(Protocol):
    def grow(self, turns: Sequence[Sequence[str]]) -> None:
        """These turns (what was said, what was answered) lie behind it, by the quickest way it has."""
        ...

    def turn(self, text: str) -> str: ...

    def said(self) -> list[str]:
        """All that it can bring back of what was said to it, in order."""
        ...

    def close(self) -> None: ...


def serve(make: Callable[..., Any]) -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    side: Any = None
    try:
        side = make(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
        _say(out, {"did": "opened"})
        for line in sys.stdin:
            asked = json.loads(line)
            _say(out, _answered(side, asked.pop("do"), asked))
    except Exception as error:  # noqa: BLE001  whoever drives this tells it
        _say(out, {"failed": _told(error)})
    finally:
        if side is not None:
            side.close()


def _answered(side: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        done = measure(side, **arguments) if name == "measure" else getattr(side, name)(**arguments)
    except Exception as error:  # noqa: BLE001  that it fails is what may be asked for
        return {"failed": _told(error)}
    return {"did": done}


def measure(side: Side, texts: Sequence[str]) -> dict[str, Any]:
    """One turn for each text: the seconds of each, the processor's seconds of all."""
    walls: list[float] = []
    cpu = time.process_time()
    for text in texts:
        start = time.perf_counter()
        side.turn(text)
        walls.append(time.perf_counter() - start)
    return {"walls": walls, "cpu": time.process_time() - cpu}


def memory_mb() -> float:
    """What of this process is in memory now, where the system tells; else the most that it was."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1_024


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _say(out: Any, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()
