"""Proof, side by side in one run: `python -m tests.bench.bench_proof [cost overhead scale survival injected] [--quick]`

Five benchmarks, each of ours and of what else there is, before the same local servers. Peers come from the package
index into environments of their own (tests.bench.proof.environments); without a network they are left out, and that is
said. A run prints its tables; what it measured goes to `results/figures.json`, and from there to `results/figures.md`
and README. `--quick` is a small one that writes nothing and installs nothing: it shows that all of this runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from tests.bench import question_sets
from tests.bench.bench_retrieval import DATA
from tests.bench.proof import cost, environments, injected, overhead, scale, sides, survival, tables, written
from tests.bench.running import machine

Json = dict[str, Any]
ONLY_TIMED = (sides.WORDS, sides.SAME, sides.DELTA)  # variants: they take part where time is measured


@dataclass(frozen=True, slots=True)
class Run:
    work: Path
    data: Path
    cache: Path
    missing: dict[str, str]
    quick: bool

    def names(self, *left_out: str) -> list[str]:
        return [name for name in sides.available(self.cache) if name not in left_out]


def of_cost(run: Run) -> Json:
    size = (
        {"turns": 60, "window": 10_000, "fewer": 20} if run.quick else {"turns": 1_000, "window": 32_000, "fewer": 300}
    )
    return cost.figures(run.work, **size)


def of_overhead(run: Run) -> Json:
    size: Json = (
        {"points": (10, 50), "turns": 10, "seconds": 10}
        if run.quick
        else {"points": (10, 100, 1_000, 10_000), "turns": 160, "seconds": 240}
    )
    return {**overhead.figures(run.work, run.cache, run.names(), **size), "missing": run.missing}


def of_scale(run: Run) -> Json:
    steps = (500,) if run.quick else (1_000, 10_000, 100_000)
    sizes = {
        name: (*steps, *((1_000_000,) if name == "ours, words only" and not run.quick else ()))
        for name in sides.ARCHIVES
    }
    return scale.figures(run.work, run.cache, sizes, agents=(1, 3) if run.quick else (1, 100), seconds=300)


def of_survival(run: Run) -> Json:
    names = [sides.OURS, sides.BARE] if run.quick else run.names(*ONLY_TIMED)
    size = {"kills": 1, "torn_files": 1} if run.quick else {"kills": 15, "torn_files": 12}
    return {**survival.figures(run.work, run.cache, names, **size), "missing": run.missing}


def of_injected(run: Run) -> Json:
    if run.quick:
        return injected.figures(run.work, run.data, lengths=(10,), most_pasts=2)
    return injected.figures(run.work, run.data, lengths=(10, 100, 1_000))


BENCHES: dict[str, Callable[[Run], Json]] = {
    "cost": of_cost, "overhead": of_overhead, "scale": of_scale, "survival": of_survival, "injected": of_injected,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_proof")
    parser.add_argument("bench", nargs="*", help=f"{', '.join(BENCHES)}; all of them without")
    parser.add_argument(
        "--quick", action="store_true", help="small, without peers that are not there, and nothing written"
    )
    parser.add_argument("--data", type=Path, default=DATA, help="where the conversations are")
    asked = parser.parse_args()
    if unknown := [name for name in asked.bench if name not in BENCHES]:
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    cache = environments.cache_directory(dict(os.environ))
    missing = {peer: why for peer in environments.PEERS if (why := _absent(cache, peer, install=not asked.quick))}
    for peer, why in missing.items():
        print(f"{peer} is left out: {why}", file=sys.stderr)
    results = written.read() if asked.bench else {}  # a run of all of them has nothing from before
    for name in asked.bench or BENCHES:
        if name == "injected" and (lacking := question_sets.missing(asked.data)):
            what = f"injected is left out: {asked.data} lacks {', '.join(lacking)}"
            print(f"{what}, and so is README's table, which needs all of them", file=sys.stderr)
            continue
        with TemporaryDirectory(prefix="bench-") as work:
            result = _result(name, Run(Path(work), asked.data, cache, missing, asked.quick))
        print(f"{tables.section(name, result['figures'])}\n", flush=True)
        results[name] = result
        if not asked.quick:
            written.write(results)
    return 0


def _absent(cache: Path, peer: str, *, install: bool) -> str:
    """Why a peer takes no part, or nothing."""
    if install:
        return environments.install(cache, peer)
    return "" if environments.python(cache, peer) else "`make bench` installs it"


def _result(name: str, run: Run) -> Json:
    print(f"{name} ...", file=sys.stderr, flush=True)
    told = machine(run.work, ["anthropic", "chromadb"])
    start = monotonic()
    figures = json.loads(json.dumps(BENCHES[name](run)))  # as it will be read again
    seconds = monotonic() - start
    print(f"{name}: {seconds:.0f} s", file=sys.stderr, flush=True)
    pins = ", ".join(environments.pinned(peer) for peer in environments.PEERS)
    return {
        "machine": f"{told}, load at the end {os.getloadavg()[0]:.1f}; peers {pins}",
        "seconds": seconds,
        "figures": figures,
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
