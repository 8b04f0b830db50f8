"""Scale: an archive of a thousand facts and one of a million; a hundred agents in one process.

Each archive grows in a process of its own and is asked at each size: how long it grew, its index included, what
keeping one more for good takes, what a search takes, disk, the memory of its process and of one that it started; then
a fresh process, how long it takes from its start to its first answer. Beside ours stands Chroma as it comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
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
        found["archives"][name] = _grown(name, work / name.replace(" ", "_"), cache, steps, seconds, found["stopped"])
    place = work / "agents"
    with QuickServer() as server, Side.start("agents", server.base_url, place, cache, command=AGENTS) as side:
        for count in agents:
            so_far = found["agents"][-1]["agents"] if found["agents"] else 0
            found["agents"].append(side.ask("open_more", count=count - int(so_far)))
    return found


def _grown(name: str, place: Path, cache: Path, steps: Sequence[int], seconds: float, stopped: Json) -> Json:
    rows: Json = {}
    held, grew = 0, 0.0
    side = _started(name, place, cache, held)
    try:
        for size in steps:
            grown = side.ask("grow", count=size - held, within=seconds)
            held, grew = held + grown["facts"], grew + grown["seconds"]
            row = {"facts": held, "grow_s": grew, **side.ask("figures"), "disk_mb": side.ask("disk_mb")}
            side.close()
            start = monotonic()
            side = _started(name, place, cache, held)
            side.ask("find_one")
            rows[str(size)] = {**row, "start_ms": 1000 * (monotonic() - start)}
            if held < size:
                stopped[name] = f"stopped at {held:,} facts: {seconds:g} s were not enough for more"
                break
    except WRONG as error:
        stopped[name] = f"at {held:,} facts: {error}"
    finally:
        side.close()
    return rows


def _started(name: str, place: Path, cache: Path, held: int) -> Side:
    """Its texts are others than those it has."""
    return Side.start(name, "none", place, cache, str(held), command=ARCHIVES[name])
