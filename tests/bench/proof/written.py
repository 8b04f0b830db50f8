"""What a run has measured, on disk, and what is made from it: a page with every table, and the table in README.

python -m tests.bench.proof.written      # renders both anew from figures.json
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.bench.figures import ROOT
from tests.bench.proof import tables

RESULTS = ROOT / "tests" / "bench" / "results"
FIGURES, PAGE, README = RESULTS / "figures.json", RESULTS / "figures.md", ROOT / "README.md"
_TABLE = re.compile(r"(<!-- figures: .*? -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)
HEAD = "# Figures\n\nMade by `make bench` from figures.json beside it; not written by hand.\n\n"


def read() -> dict[str, Any]:
    return json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}


def write(results: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    rounded = json.loads(json.dumps(results), parse_float=lambda text: round(float(text), 4))
    render(rounded)  # first: what cannot be shown is not kept
    FIGURES.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


def render(results: dict[str, Any]) -> None:
    PAGE.write_text(page(results), encoding="utf-8")
    if set(tables.SECTIONS) <= set(results):
        README.write_text(with_table(README.read_text(encoding="utf-8"), results), encoding="utf-8")


def page(results: dict[str, Any]) -> str:
    return HEAD + tables.whole(results)


def with_table(text: str, results: dict[str, Any]) -> str:
    """README with the table as these results give it."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables.short(results)}\n\n{found[3]}", text)


if __name__ == "__main__":
    render(read())
