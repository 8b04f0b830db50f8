"""How the figures read: markdown tables, from the plain values that a run has written. Nothing is measured here.

Each benchmark has a section, with the reasons where a peer is better (`reasons.yaml`), and the line or two of it that
say most, for docs/benchmarks.md. README has the shortest table, which fits a screen.

    python -m tests.bench.proof.tables      # renders the page and both tables anew from figures.json
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.bench.figures import ROOT, grid
from tests.bench.proof.cost_rivals import RERENDER
from tests.bench.proof.sides import OURS, SAME

RESULTS = ROOT / "tests" / "bench" / "results"
FIGURES, PAGE = RESULTS / "figures.json", RESULTS / "figures.md"
README, DOCS = ROOT / "README.md", ROOT / "docs" / "benchmarks.md"
HEAD = "# Figures\n\nMade by `make bench` from figures.json beside it; not written by hand.\n\n"
Json = Mapping[str, Any]
Rows = list[list[str]]
REASONS: dict[str, str] = yaml.safe_load(Path(__file__).with_name("reasons.yaml").read_text(encoding="utf-8"))
CELLS = "{facts:,}|{grow_s:.1f}|{archive_ms:.2f}|{search_ms:.2f}|{start_ms:.0f}|{disk_mb:.0f}|{memory_mb:.0f}"
KNOWN = {"bare SDK": "SDK", "mem0": "mem0", "langgraph + SQLite": "langgraph"}
CUT_OFF = re.compile(r"of (\d+) turns cut off (\d+) are on disk")
EVERY = {"1": "", "3": "third "}
WAYS = {
    "everything": "everything",
    "newest": "newest messages, as many tokens as the 5 pages",
    "prefetch": "ours, unasked: up to 4 facts",
    "search_recall": "ours, search: 10 excerpts",
    "search_recall, 5 pages": "ours, search: the 5 best messages whole",
}


def read() -> dict[str, Any]:
    return json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}


def write(results: Json) -> None:
    rounded = json.loads(json.dumps(results), parse_float=lambda text: round(float(text), 4))
    render(rounded)  # first: what cannot be shown is not stored
    FIGURES.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


def render(results: Json) -> None:
    PAGE.write_text(page(results), encoding="utf-8")
    if set(SECTIONS) <= set(results):
        for path, table in ((README, shortest(results)), (DOCS, short(results))):
            path.write_text(with_table(path.read_text(encoding="utf-8"), table), encoding="utf-8")


def with_table(text: str, table: str) -> str:
    """Return a page with this table between its marks."""
    between = re.compile(r"(<!-- figures: .*? -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)
    return between.sub(lambda found: f"{found[1]}\n{table}\n\n{found[3]}", text)


def page(results: Json) -> str:
    """Return every section that there is."""
    parts = [
        f"## {section(name, results[name]['figures'])}\n\nMachine: {results[name]['machine']}.\n"
        for name in SECTIONS
        if name in results
    ]
    return HEAD + "\n".join(parts)


def section(name: str, figures: Json) -> str:
    title, made, _ = SECTIONS[name]
    rows, values = made(figures)
    absent = [f" {name}: {why}." for name, why in figures.get("stopped", {}).items()]
    absent += [f" {name} is not here: {why}." for name, why in figures.get("missing", {}).items()]
    return f"{title}\n\n{grid(rows)}\n\n{REASONS[name].format(**values)}{''.join(absent)}"


def short(results: Json) -> str:
    """Return the table of docs/benchmarks.md."""
    rows = [["measured", OURS, "beside it"]]
    missing: dict[str, str] = {}
    for name, (_, _, lines) in SECTIONS.items():
        rows += lines(results[name]["figures"])
        missing |= results[name]["figures"].get("missing", {})
    absent = "; ".join(f"{peer} ({one_line(why)})" for peer, why in missing.items())
    return f"{grid(rows)}\n\nLeft out of this run: {absent}." if absent else grid(rows)


def shortest(results: Json) -> str:
    """Return README's table: a line of figures each, beside the peers that most readers know."""
    figures = {name: results[name]["figures"] for name in SECTIONS}
    usd = {name: bill["usd"] for name, bill in figures["cost"]["policies"].items()}
    slides = min(price for name, price in usd.items() if name.startswith("slide by a turn"))
    beside = f"{usd[RERENDER]:.2f} re-rendering core, {slides:.2f} sliding by a turn"
    rows = [["measured", OURS, "beside it"], ["dollars for 1,000 turns", f"{usd[OURS]:.2f}", beside]]
    for point in ("100", "10000"):
        sides = figures["overhead"]["points"].get(point, {})
        times = {name: _times(sides.get(name), point, "wall_ms") for name in (OURS, *KNOWN)}
        rows.append([f"ms added to a turn, after {int(point):,}", times.pop(OURS), _listed(times)])
    for size, ours in list(figures["scale"]["archives"][OURS].items())[-1:]:
        bare = figures["scale"]["archives"]["bare Chroma"].get(size)
        rows.append(
            [f"ms to search, to store, at {int(size):,} facts", _both(ours), f"Chroma {_both(bare)}" if bare else ""]
        )
    cut = {name: CUT_OFF.search(text) for name, text in figures["survival"]["ordeals"]["kill -9"].items()}
    stored = {name: f"{found[2]} of {found[1]}" for name, found in cut.items() if found}
    known = {name: stored[name] for name in KNOWN if name in stored}
    rows.append(
        [f"turns on disk that {figures['survival']['kills']} `kill -9` cut off", stored.get(OURS, "-"), _listed(known)]
    )
    length, past = list(figures["injected"]["people"].items())[-1]
    ways = past["ways"]
    for what, way in (("searched", "search_recall, 5 pages"), ("unasked", "prefetch")):
        ours, all_ = (f"{ways[each]['tokens']:,.0f} ({ways[each]['found']:.0%})" for each in (way, "everything"))
        rows.append([f"tokens of {int(length):,} messages {what} (answer in them)", ours, f"{all_} everything"])
    return grid(rows)


def _listed(figures: Mapping[str, str]) -> str:
    return ", ".join(f"{KNOWN[name]} {figure}" for name, figure in figures.items())


def one_line(text: str) -> str:
    """Return it as a cell of a table."""
    return " ".join(text.replace("|", "/").split())


def cost(figures: Json) -> tuple[Rows, Json]:
    policies = figures["policies"]
    ours, rival = policies[OURS], policies[RERENDER]
    rows = [["policy", "dollars", "of that, ours", "read from cache", "largest prompt", "turns not answered"]]
    for name, bill in policies.items():
        share = f"{ours['usd'] / bill['usd']:.0%}" if bill["turns"] == ours["turns"] and name != OURS else ""
        read, largest = f"{bill['read'] / bill['input']:.1%}", f"{bill['largest']:,}"
        rows.append([name, f"{bill['usd']:.2f}", share, read, largest, f"{bill['overflows']:,}"])
    # The share of re-rendering's price that is not of edits: as if it wrote as little to the cache as ours does.
    more_written = max(0, rival["written"] - ours["written"])
    floor = 1 - more_written * (3.75e-6 - 0.3e-6) / rival["usd"]
    return rows, {**figures, "floor": floor, "more_often": _more_often(figures)}


def _more_often(figures: Json) -> str:
    """Compare ours with re-rendering, where core is edited more often."""
    parts: list[str] = []
    for every, run in figures["oftener"].items():
        share = run["policies"][OURS]["usd"] / run["policies"][RERENDER]["usd"]
        parts.append(f"{share:.0%} (edited in every {EVERY.get(every, every)}turn, {run['turns']:,} turns)")
    return " and ".join(parts)


def cost_lines(figures: Json) -> Rows:
    usd = {name: bill["usd"] for name, bill in figures["policies"].items()}
    slides = min(price for name, price in usd.items() if name.startswith("slide by a turn"))
    what = f"price of {figures['turns']:,} turns, core edited in every {figures['edit_every']}th"
    beside = (
        f"${usd[RERENDER]:.2f} re-rendering core (${usd[RERENDER.replace('marked', 'unmarked')]:.2f} without cache "
        f"marks on messages), ${slides:.2f} sliding by a turn. Of re-rendering ours is "
        f"{usd[OURS] / usd[RERENDER]:.0%}, as little as such rare edits allow; with more of them {_more_often(figures)}"
    )
    return [[what, f"${usd[OURS]:.2f}", beside]]


def overhead(figures: Json) -> tuple[Rows, Json]:
    points = figures["points"]
    rows = [["wall, processor (ms per turn)", *(f"at {int(point):,} turns" for point in points)]]
    for name in dict.fromkeys(name for sides in points.values() for name in sides):
        cells = [_times(sides.get(name), point, "wall_ms", "cpu_ms") for point, sides in points.items()]
        rows.append([name, *cells])
    return rows, {}


def overhead_lines(figures: Json) -> Rows:
    rows: Rows = []
    for point, sides in figures["points"].items():
        # `SAME` says why ours costs what it costs; nobody would choose it.
        others = {name: each for name, each in sides.items() if not name.startswith(OURS) and name != SAME}
        beside = ", ".join(f"{name} {_times(each, point, 'wall_ms')}" for name, each in others.items())
        rows.append([f"ms added to a turn, at {int(point):,} turns", _times(sides.get(OURS), point, "wall_ms"), beside])
    return rows


def _times(side: Json | None, point: str, *names: str) -> str:
    if side is None:
        return "-"
    at = "" if side["at"] >= int(point) else f" (at {side['at']:,})"
    return ", ".join(f"{side[name]:.1f}" for name in names) + at


def scale(figures: Json) -> tuple[Rows, Json]:
    times = ["to grow (s)", "keep one (ms)", "search (ms)", "start to first answer (ms)"]
    rows = [["archive of", "facts", *times, "disk (MB)", "memory (MB)"]]
    for name, sizes in figures["archives"].items():
        for each in sizes.values():
            child = f" + {each['child_mb']:.0f}" if each["child_mb"] else ""
            rows.append([name, *(CELLS.format_map(each) + child).split("|")])
    first, last = figures["agents"][0], figures["agents"][-1]
    each_mb = (last["memory_mb"] - first["memory_mb"]) / max(1, last["agents"] - first["agents"])
    return rows, {**last, "each_mb": each_mb}


def scale_lines(figures: Json) -> Rows:
    rows: Rows = []
    for name in (OURS, f"{OURS}, words only"):
        if sizes := figures["archives"][name]:
            largest = list(sizes.values())[-1]
            bare = figures["archives"]["bare Chroma"].get(str(largest["facts"]))
            what = f"ms to search, to keep one, at {largest['facts']:,} facts{name.removeprefix(OURS)}"
            rows.append([what, _both(largest), f"bare Chroma {_both(bare)}" if bare else ""])
    return rows


def _both(archive: Json) -> str:
    return f"{archive['search_ms']:.1f}, {archive['archive_ms']:.1f}"


def survival(figures: Json) -> tuple[Rows, Json]:
    ordeals = figures["ordeals"]
    names = list(next(iter(ordeals.values())))
    return [["", *names], *([title, *(one_line(ends[name]) for name in names)] for title, ends in ordeals.items())], {}


def survival_lines(figures: Json) -> Rows:
    ends = {name: one_line(text).partition(": ")[2] for name, text in figures["ordeals"]["kill -9"].items()}
    ours = ends.pop(OURS)
    others = "; ".join(f"{name}: {end}" for name, end in ends.items())
    return [[f"{figures['kills']} times kill -9 in the middle of a turn", ours, others]]


def injected(figures: Json) -> tuple[Rows, Json]:
    talks = figures["talks"]
    columns = {f"{int(length):,} messages": past for length, past in figures["people"].items()}
    columns[f"talks of {talks['messages']:,.0f} messages, asked in other words"] = talks
    rows = [["tokens of the past, answer in them", *columns]]
    for way, name in WAYS.items():
        cells = [past["ways"][way] for past in columns.values()]
        rows.append([name, *(f"{cell['tokens']:,.0f}, {cell['found']:.0%}" for cell in cells)])
    return rows, {"asked": ", ".join(f"{past['questions']} at {column}" for column, past in columns.items())}


def injected_lines(figures: Json) -> Rows:
    length, people = list(figures["people"].items())[-1]
    talks = figures["talks"]
    of_talks = f"{talks['messages']:,.0f} past messages for a question in other words"
    return [
        _injected_line(f"{int(length):,} past messages for a question", people["ways"], "search_recall, 5 pages"),
        _injected_line(of_talks, talks["ways"], "search_recall"),
    ]


def _injected_line(what: str, ways: Json, search: str) -> list[str]:
    found, unasked, everything = (
        f"{ways[way]['tokens']:,.0f} (answer in it: {ways[way]['found']:.0%})"
        for way in (search, "prefetch", "everything")
    )
    return [f"tokens of {what}", f"{found} searched, {unasked} unasked", f"{everything} everything"]


SECTIONS: dict[str, tuple[str, Callable[[Json], tuple[Rows, Json]], Callable[[Json], Rows]]] = {
    "cost": ("Cost of memory", cost, cost_lines),
    "overhead": ("Overhead per turn", overhead, overhead_lines),
    "scale": ("Scale", scale, scale_lines),
    "survival": ("Survival", survival, survival_lines),
    "injected": ("Injected tokens", injected, injected_lines),
}

if __name__ == "__main__":
    render(read())
