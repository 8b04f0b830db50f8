"""Scale: an archive of a thousand facts and one of a million; a hundred agents in one process.

Each archive grows in a process of its own and is asked at each size: how long it grew, its index included, what
archiving one more takes, what a search takes, disk, the memory of its process and of one that it started; then a fresh
process, how long it takes from its start to its first answer. Beside ours stands Chroma as it comes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from pager.types import Json
from tests.bench.proof.sides import FAILURES, Side
from tests.bench.quick_server import QuickServer

SIDES = {
    "ours": "archive", "ours, index on a server": "archive on a server", "ours, words only": "archive, words only",
    "bare Chroma": "bare Chroma",
}  # fmt: skip


def figures(
    work: Path, cache: Path, sizes: Mapping[str, Sequence[int]], *, agents: Sequence[int], seconds: float
) -> Json:
    """`sizes` by side; `seconds`: for what a side takes to grow from one size to the next."""
    archives, stopped, opened = {}, {}, []
    for name, steps in sizes.items():
        archives[name], why = _grow(SIDES[name], work / name.replace(" ", "_"), cache, steps, seconds)
        if why:
            stopped[name] = why
    with QuickServer() as server, Side.start("agents", server.base_url, work / "agents", cache) as side:
        for count, before in zip(agents, (0, *agents), strict=False):
            opened.append(side.ask("open_more", count=count - before))
    return {"archives": archives, "stopped": stopped, "agents": opened}


def _grow(name: str, place: Path, cache: Path, steps: Sequence[int], seconds: float) -> tuple[Json, str]:
    """Return the figures of each size that was reached, and why not all were."""
    rows: Json = {}
    size, grew = 0, 0.0
    side = Side.start(name, "none", place, cache, str(size))
    try:
        for step in steps:
            grown = side.ask("grow", count=step - size, within=seconds)
            size, grew = size + grown["facts"], grew + grown["seconds"]
            row = {"facts": size, "grow_s": grew, **side.ask("figures"), "disk_mb": side.ask("disk_mb")}
            side.close()
            start = monotonic()
            side = Side.start(name, "none", place, cache, str(size))  # its texts are others than those it has
            side.ask("search", text="what was it about the hotel?")
            rows[str(step)] = {**row, "start_ms": 1000 * (monotonic() - start)}
            if size < step:
                return rows, f"stopped at {size:,} facts: {seconds:g} s were not enough for more"
    except FAILURES as error:
        return rows, f"at {size:,} facts: {error}"
    finally:
        side.close()
    return rows, ""
