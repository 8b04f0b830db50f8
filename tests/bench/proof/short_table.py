"""README's table: the line or two of each benchmark that say most. Pure, as `tables` is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.bench.figures import grid
from tests.bench.proof.tables import OURS, RERENDER, oftener, one_line

Json = Mapping[str, Any]
SLIDES = "slide by a turn"
EXPLAINS = "bare SDK, our requests"  # says why ours costs what it costs; nobody would choose it
PAGES, EXCERPTS, UNASKED, EVERYTHING = "search_recall, 5 pages", "search_recall", "prefetch", "everything"


def short(results: Json) -> str:
    rows = [["measured", OURS, "beside it"]]
    missing: dict[str, str] = {}
    for name, made in LINES.items():
        rows += made(results[name]["figures"])
        missing |= results[name]["figures"].get("missing", {})
    told = "; ".join(f"{peer} ({one_line(why)})" for peer, why in missing.items())
    return f"{grid(rows)}\n\nLeft out of this run: {told}." if told else grid(rows)


def cost(figures: Json) -> list[list[str]]:
    bills = figures["policies"]
    slides = min(bill["usd"] for name, bill in bills.items() if name.startswith(SLIDES))
    what = f"price of {figures['turns']:,} turns, core edited in every {figures['edit_every']}th"
    unmarked = bills[RERENDER.replace("marked", "unmarked")]["usd"]
    share = bills[OURS]["usd"] / bills[RERENDER]["usd"]
    beside = (
        f"${bills[RERENDER]['usd']:.2f} re-rendering core (${unmarked:.2f} without cache marks on messages), "
        f"${slides:.2f} sliding by a turn. Of re-rendering ours is {share:.0%}, as little as such rare edits "
        f"allow; with more of them {oftener(figures)}"
    )
    return [[what, f"${bills[OURS]['usd']:.2f}", beside]]


def overhead(figures: Json) -> list[list[str]]:
    rows: list[list[str]] = []
    for point, told in figures["points"].items():
        others = [
            f"{name} {each['wall_ms']:.1f}{_where(each, int(point))}"
            for name, each in told.items()
            if not name.startswith(OURS) and name != EXPLAINS
        ]
        ours = f"{told[OURS]['wall_ms']:.1f}{_where(told[OURS], int(point))}" if OURS in told else "-"
        rows.append([f"ms added to a turn, at {int(point):,} turns", ours, ", ".join(others)])
    return rows


def _where(told: Json, point: int) -> str:
    return "" if told["at"] >= point else f" (at {told['at']:,})"


def scale(figures: Json) -> list[list[str]]:
    rows: list[list[str]] = []
    for name in (OURS, "ours, words only"):
        if not (sizes := figures["archives"][name]):
            continue
        told = list(sizes.values())[-1]
        bare = figures["archives"]["bare Chroma"].get(str(told["facts"]))
        what = f"ms to search, to keep one, at {told['facts']:,} facts{name.removeprefix(OURS)}"
        rows.append([what, _both(told), f"bare Chroma {_both(bare)}" if bare else ""])
    return rows


def _both(told: Json) -> str:
    return f"{told['search_ms']:.1f}, {told['archive_ms']:.1f}"


def injected(figures: Json) -> list[list[str]]:
    length, people = list(figures["people"].items())[-1]
    talks = figures["talks"]
    told = {
        f"{int(length):,} past turns for a question": (people, PAGES),
        f"{talks['turns']:,.0f} past turns for a question in other words": (talks, EXCERPTS),
    }
    return [
        [f"tokens of {what}", f"{_held(of['ways'][way])} searched, {_held(of['ways'][UNASKED])} unasked",
         f"{_held(of['ways'][EVERYTHING])} everything"]
        for what, (of, way) in told.items()
    ]  # fmt: skip


def _held(way: Json) -> str:
    return f"{way['tokens']:,.0f} (answer in it: {way['found']:.0%})"


def survival(figures: Json) -> list[list[str]]:
    told = figures["ordeals"]["kill -9"]
    others = "; ".join(f"{name}: {_left(each)}" for name, each in told.items() if name != OURS)
    return [[f"{figures['kills']} times kill -9 in the middle of a turn", _left(told[OURS]), others]]


def _left(text: str) -> str:
    return one_line(text).partition(": ")[2]


LINES = {"cost": cost, "overhead": overhead, "scale": scale, "injected": injected, "survival": survival}
