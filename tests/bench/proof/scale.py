"""Scale: an archive of a thousand facts and one of a million; a hundred agents in one process.

Each archive grows in a process of its own and is asked at each size: what keeping one more for good takes, what a
search takes, the time from opening to the first answer, disk, and the memory of its process. Beside ours stands Chroma
as it comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.proof.sides import AGENTS, ARCHIVES, WRONG, Side
from tests.bench.quick_server import QuickServer

Json = dict[str, Any]


def figures(
    work: Path, cache: Path, sizes: Mapping[str, Sequence[int]], *, agents: Sequence[int], seconds: float
) -> Json:
    """`sizes` by side; `seconds`: for what a side takes to grow from one size to the next."""
    found: Json = {"archives": {}, "stopped": {}, "agents": []}
    for name, steps in sizes.items():
        with Side.start(name, "none", work / name.replace(" ", "_"), cache, command=ARCHIVES[name]) as side:
            found["archives"][name] = _grown(side, steps, seconds, found["stopped"])
    place = work / "agents"
    with QuickServer() as server, Side.start("agents", server.base_url, place, cache, command=AGENTS) as side:
        for count in agents:
            so_far = found["agents"][-1]["agents"] if found["agents"] else 0
            found["agents"].append(side.ask("open_more", count=count - int(so_far)))
    return found


def _grown(side: Side, steps: Sequence[int], seconds: float, stopped: Json) -> Json:
    rows: Json = {}
    held = 0
    for size in steps:
        try:
            held += side.ask("grow", count=size - held, within=seconds)
            told = {"facts": held, **side.ask("figures"), "disk_mb": side.ask("disk_mb")}
            rows[str(size)] = {**told, "open_ms": 1000 * side.ask("first_search")}
        except WRONG as error:
            stopped[side.name] = f"at {held:,} facts: {error}"
            break
        if held < size:
            stopped[side.name] = f"stopped at {held:,} facts: {seconds:g} s were not enough for more"
            break
    return rows
