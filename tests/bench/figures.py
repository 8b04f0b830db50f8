"""Measure two sides alternately, print figures with their limits as a table, and run the benches that make them.

def turn(work: Path) -> list[Figure]: ...
sys.exit(run({"turn": turn}, sys.argv[1:], "anthropic"))
"""

import gc
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median, quantiles, stdev
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

ROOT = Path(__file__).parents[2]
OF_MEDIAN = 1.2533  # how much less exact a median is than a mean, where nothing disturbs
Timed = Callable[[], float]  # does the thing once; the seconds that counted
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table. Without a limit it is only reported."""

    what: str
    measured: str
    value: float
    limit: float | None = None
    unit: str = " x"

    @property
    def verdict(self) -> str:
        return "" if self.limit is None else "PASS" if self.value <= self.limit else "FAIL"

    def cells(self) -> list[str]:
        limit = "" if self.limit is None else f"{self.limit:g}{self.unit}"
        return [self.what, self.measured, f"{self.value:.2f}{self.unit}", limit, self.verdict]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides that were measured alternately, in seconds."""

    names: tuple[str, str]
    ours: Sequence[float]
    bare: Sequence[float]

    def medians(self, what: str, limit: float | None = None) -> Figure:
        """Compare the medians. Beside them: the fastest tenths, which others on the machine disturb less."""
        fast = [sorted(side)[len(side) // 10] for side in (self.ours, self.bare)]
        measured = f"{self._each(median)} (fastest tenths: {fast[0] / fast[1]:.2f} x)"
        return Figure(what, measured, median(self.ours) / median(self.bare), limit)

    def means(self, what: str) -> Figure:
        return Figure(what, self._each(fmean), fmean(self.ours) / fmean(self.bare))

    def rounds(self, what: str, limit: float | None = None) -> Figure:
        """Take the median of each round's own ratio: what slows a machine for minutes is in both its sides."""
        ratios = [ours / bare for ours, bare in zip(self.ours, self.bare, strict=True)]
        low, _, high = quantiles(ratios, n=4)
        error = OF_MEDIAN * stdev(ratios) / len(ratios) ** 0.5
        spread = f"half of {len(ratios)} rounds: {low:.2f} to {high:.2f} x; ± {error:.3f}"
        return Figure(what, f"{self._each(median)} ({spread})", median(ratios), limit)

    def _each(self, average: Callable[[Sequence[float]], float]) -> str:
        ours, bare = self.names
        return f"{1000 * average(self.ours):.2f} ms {ours}, {1000 * average(self.bare):.2f} ms {bare}"


def timed(action: Callable[..., object], *arguments: Any) -> float:
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


def with_each(arguments: Iterator[Item], action: Callable[[Item], object]) -> Timed:
    """Return a side that times the action with the next argument."""
    return lambda: timed(action, next(arguments))


def alternately(*sides: Timed, rounds: int, warm_up: int) -> list[list[float]]:
    """Each side once per round, the first one rotating. Garbage is collected after each, so that all begin alike: it
    is not collected on another's time, and what it does to the processor's caches is the same for all."""
    seconds: list[list[float]] = [[] for _ in sides]
    gc.collect()
    gc.disable()
    try:
        for number in range(-warm_up, rounds):
            for index in range(len(sides)):
                side = (number + index) % len(sides)
                measured = sides[side]()
                gc.collect(0)
                if number >= 0:
                    seconds[side].append(measured)
    finally:
        gc.enable()
    return seconds


def pair(ours: Timed, bare: Timed, names: tuple[str, str], *, rounds: int, warm_up: int) -> Pair:
    return Pair(names, *alternately(ours, bare, rounds=rounds, warm_up=warm_up))


def printed_by(program: str, *arguments: object) -> Any:
    """Run a Python program in a process of its own; return the JSON that it prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)


class Child:
    """A Python process that prints a line for each line that it reads. It ends with the `with` block."""

    def __init__(self, *arguments: object) -> None:
        command, pipe = [sys.executable, *map(str, arguments)], subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def ask(self, line: object = "") -> str:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.line()


def size_mb(directory: Path) -> float:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 1e6


def grid(rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row names its columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def report(figures: Sequence[Figure]) -> int:
    """Print the table; return the exit code: 1 when a limit does not hold."""
    print(grid([["what", "measured", "figure", "limit", ""], *(figure.cells() for figure in figures)]))
    return int(any(figure.verdict == "FAIL" for figure in figures))


def run(benches: Mapping[str, Callable[[Path], list[Figure]]], names: Sequence[str], *libraries: str) -> int:
    """Run all benches, or those that are named, each in a directory of its own. Say the versions of `libraries`."""
    if unknown := [name for name in names if name not in benches]:
        print(f"no bench {', '.join(unknown)}; there are {', '.join(benches)}", file=sys.stderr)
        return 2
    figures: list[Figure] = []
    with TemporaryDirectory(prefix="bench-") as folder:
        print(machine(Path(folder), libraries), "\n", flush=True)
        for name in names or benches:
            work = Path(folder, name)
            work.mkdir()
            print(f"{name} ...", file=sys.stderr, flush=True)
            figures += benches[name](work)
    return report(figures)


def machine(work: Path, libraries: Sequence[str]) -> str:
    """Describe what the absolute times depend on."""
    with (work / "sync").open("wb", buffering=0) as file:
        times = sorted(timed(lambda: (file.write(bytes(8192)), os.fsync(file.fileno()))) for _ in range(200))
    versions = ", ".join(f"{name} {version(name)}" for name in libraries)
    return (
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, fsync {1000 * times[100]:.2f} ms, "
        f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, {versions}"
    )
