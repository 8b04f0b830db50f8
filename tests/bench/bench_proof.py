"""Proof, side by side in one run: `python -m tests.bench.bench_proof [cost overhead scale survival injected] [--quick]`

Five benchmarks, each of ours and of what else there is, before the same local servers. Peers come from the package
index into environments of their own (tests.bench.proof.environments); without a network they are left out, and that is
said. A run prints its tables; what it measured goes to `results/figures.json`, and from there to `results/figures.md`
and the tables of README and docs/benchmarks.md. `--quick` is a small one that writes nothing and installs nothing: it
shows that all of this runs.
"""

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from pager.types import Json
from tests.bench import question_sets
from tests.bench.bench_retrieval import DATA
from tests.bench.figures import machine
from tests.bench.proof import cost, environments, injected, overhead, scale, sides, survival, tables

ONLY_TIMED = (sides.WORDS, sides.SAME, sides.DELTA)  # variants: they take part where time is measured


@dataclass(frozen=True, slots=True)
class Run:
    work: Path
    data: Path
    cache: Path
    missing: dict[str, str]
    quick: bool

    def cost(self) -> Json:
        turns, window, fewer = (60, 10_000, 20) if self.quick else (1_000, 32_000, 300)
        return cost.figures(self.work, turns=turns, window=window, fewer=fewer)

    def overhead(self) -> Json:
        points, turns, seconds = ((10, 50), 10, 10) if self.quick else ((10, 100, 1_000, 10_000), 160, 240)
        names = sides.available(self.cache)
        figures = overhead.figures(self.work, self.cache, names, points=points, turns=turns, seconds=seconds)
        return {**figures, "missing": self.missing}

    def scale(self) -> Json:
        steps: tuple[int, ...] = (500,) if self.quick else (1_000, 10_000, 100_000)
        sizes: dict[str, tuple[int, ...]] = dict.fromkeys(scale.SIDES, steps)
        if not self.quick:
            sizes["ours, words only"] += (1_000_000,)
        return scale.figures(self.work, self.cache, sizes, agents=(1, 3) if self.quick else (1, 100), seconds=300)

    def survival(self) -> Json:
        names = [name for name in sides.available(self.cache) if name not in ONLY_TIMED]
        names, kills, torn_files = ([sides.OURS, sides.BARE], 1, 1) if self.quick else (names, 15, 12)
        figures = survival.figures(self.work, self.cache, names, kills=kills, torn_files=torn_files)
        return {**figures, "missing": self.missing}

    def injected(self) -> Json:
        lengths, most_pasts = ((10,), 2) if self.quick else ((10, 100, 1_000), None)
        return injected.figures(self.work, self.data, lengths=lengths, most_pasts=most_pasts)


BENCHES = {name: getattr(Run, name) for name in tables.SECTIONS}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_proof")
    parser.add_argument("bench", nargs="*", help=f"{', '.join(BENCHES)}; all of them without")
    parser.add_argument("--quick", action="store_true", help="small, without peers to install, and nothing written")
    parser.add_argument("--data", type=Path, default=DATA, help="where the conversations are")
    options = parser.parse_args()
    if unknown := [name for name in options.bench if name not in BENCHES]:
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    cache = environments.cache_directory(os.environ)
    missing: dict[str, str] = {}
    for peer in environments.PEERS:
        not_there = "" if environments.python(cache, peer) else "`make bench` installs it"
        if why := not_there if options.quick else environments.install(cache, peer):
            missing[peer] = why
            print(f"{peer} is left out: {why}", file=sys.stderr)
    results = tables.read() if options.bench else {}  # a run of all of them has nothing from before
    for name in options.bench or BENCHES:
        if name == "injected" and (lacking := question_sets.missing(options.data)):
            what = f"injected is left out: {options.data} lacks {', '.join(lacking)}"
            print(f"{what}, and so are the tables of README and docs/, which need all of them", file=sys.stderr)
            continue
        with TemporaryDirectory(prefix="bench-") as work:
            results[name] = _result(name, Run(Path(work), options.data, cache, missing, options.quick))
        print(f"{tables.section(name, results[name]['figures'])}\n", flush=True)
        if not options.quick:
            tables.write(results)
    return 0


def _result(name: str, run: Run) -> Json:
    print(f"{name} ...", file=sys.stderr, flush=True)
    described = machine(run.work, ["anthropic", "chromadb"])
    start = monotonic()
    figures = json.loads(json.dumps(BENCHES[name](run)))  # as it will be read again
    seconds = monotonic() - start
    print(f"{name}: {seconds:.0f} s", file=sys.stderr, flush=True)
    pins = ", ".join(environments.pinned(peer) for peer in environments.PEERS)
    return {
        "machine": f"{described}, load at the end {os.getloadavg()[0]:.1f}; peers {pins}",
        "seconds": seconds,
        "figures": figures,
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
