"""How the figures read: markdown tables, from the plain values that a run has written. Pure; nothing is measured here.

What is worse than at a peer has its reason beside it. README's short table is made in `short_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.bench.figures import grid

Json = Mapping[str, Any]
OURS, RERENDER = "ours", "re-render core on each edit, messages marked"
EVERY = {"1": "", "3": "third "}
LETTA = (
    "Given, not measured here: the archived Letta server took 402 ms of wall time and 106 ms of the processor for a "
    "turn at 10 turns on such a machine, 1,845 ms and 694 ms at 1,000."
)
WHY_MORE_THAN_BARE = (
    "Wall time is of the median round of ten turns, two of which keep a fact. Why ours takes longer than the bare SDK, "
    "which keeps nothing: a turn is two durable commits, four with a fact; each message is embedded by MiniLM and "
    "looked up (that costs the difference to ours without an embedder; mem0 has the same embedder, langgraph has none: "
    "its store's vectors need an extension of SQLite, for which many a Python is not built); a request carries tools, "
    "core, and blocks instead of strings, which the SDK copies one by one (`bare SDK, our requests` is that alone); "
    "and what has left is embedded in the background, which is processor time that no turn waits for."
)
WHY_FACTS_COST = (
    "Why ours takes more than bare Chroma, which has vectors alone: a search compares every vector (a graph loses what "
    "lies apart from many that are alike), ranks words, looks at what is true now, and writes into the ledger what it "
    "found and what it just missed; texts, versions, words and vectors are in SQLite as well, from which the index can "
    "be made again. What is kept is in SQLite, and found, at once; the index follows when nobody waits, and `to grow` "
    "has that in it. Its writer is a process of its own, whose memory stands behind the plus. 75 MB of ours are the "
    "tokenizer's table, which says how full a prompt is."
)
WHY_STARTS = (
    "The first answer is that of a fresh process. Ours does not open the index for it (that is left to the background, "
    "with a digest of every file, since a torn one can end the process): it reads every vector out of SQLite."
)
WHOSE_QUESTIONS = (
    "The people are those of bfcl_memory, on which the weights of searching turns and the thresholds of prefetch were "
    "chosen, and each sentence of theirs is a fact here, as an agent would keep it at best: take these shares as the "
    "better end. A past of 1,000 turns has talks of others between theirs. The talks of the last column judge: nothing "
    "was chosen on them, their questions avoid the words of the answer, and each turn is a fact, which no agent would "
    "keep: take those shares as the worse end."
)
WHY_RERENDER = (
    "What an edit costs the others is the window written anew. Without it, and with everything else as it is (replies, "
    "the window read at each request, new text, the window written after pauses), re-rendering would still cost "
    "{floor:.0%} of its price, so no memory that keeps as much in its window costs less while edits are as rare as "
    "here. Even if nothing but the window cost anything, eleven requests that read it are 49% of ten that do and one "
    "that writes it anew. With more edits ours is {oftener} of its price."
)
WHY_TORN = (
    "A torn file is more than kill -9 leaves. Of ours two files hold what cannot be made again, pager.db and its log; "
    "the others are the vector index, which is. A torn log of SQLite (pager.db-wal) loses the newest turns without a "
    "word: it ends where its checksums do."
)


def whole(results: Json) -> str:
    """Every section that there is, as a page."""
    parts = [
        f"## {title}\n\n{made(results[name]['figures'])}\n\n{_machine(results[name])}\n"
        for name, (title, made) in SECTIONS.items()
        if name in results
    ]
    return "\n".join(parts)


def section(name: str, figures: Json) -> str:
    title, made = SECTIONS[name]
    return f"{title}\n\n{made(figures)}"


def _machine(result: Json) -> str:
    return f"Machine: {result['machine']}."


# one section each


def cost(figures: Json) -> str:
    policies = figures["policies"]
    ours = policies[OURS]
    rows = [["policy", "dollars", "of that, ours", "read from cache", "largest prompt", "turns not answered"]]
    for name, bill in policies.items():
        share = f"{ours['usd'] / bill['usd']:.0%}" if bill["turns"] == ours["turns"] and name != OURS else ""
        rows.append(
            [name, f"{bill['usd']:.2f}", share, f"{bill['read'] / bill['input']:.1%}", f"{bill['largest']:,}",
             f"{bill['overflows']:,}"]
        )  # fmt: skip
    told = (
        f"{figures['turns']:,} turns, core edited in every {figures['edit_every']}th, a window of "
        f"{figures['window']:,} tokens ({figures['usable']:,} for the prompt), $3 / $15 / $0.30 / $3.75 per million of "
        f"tokens of input, output, read from and written to the cache."
    )
    why = WHY_RERENDER.format(floor=floor(policies), oftener=oftener(figures))
    return f"{grid(rows)}\n\n{told} {why}"


def floor(policies: Json) -> float:
    """The share of re-rendering's price that is not of edits: as if it wrote as little to the cache as ours does, and
    read the rest."""
    rival, ours = policies[RERENDER], policies[OURS]
    more = max(0, rival["written"] - ours["written"])
    return 1 - more * (3.75e-6 - 0.3e-6) / rival["usd"]


def oftener(figures: Json) -> str:
    """Ours against re-rendering, where core is edited more often."""
    told: list[str] = []
    for every, run in figures["oftener"].items():
        share = run["policies"][OURS]["usd"] / run["policies"][RERENDER]["usd"]
        told.append(f"{share:.0%} (edited in every {EVERY.get(every, every)}turn, {run['turns']:,} turns)")
    return " and ".join(told)


def overhead(figures: Json) -> str:
    points = figures["points"]
    names = list(dict.fromkeys(name for row in points.values() for name in row))
    rows = [["wall, processor (ms per turn)", *(f"at {int(point):,} turns" for point in points)]]
    rows += [[name, *(_pair(row.get(name), int(point)) for point, row in points.items())] for name in names]
    return f"{grid(rows)}\n\n{WHY_MORE_THAN_BARE}\n\n{LETTA}{_left_out(figures)}"


def _left_out(figures: Json) -> str:
    stopped = [f" {name}: {why}." for name, why in figures.get("stopped", {}).items()]
    missing = [f" {name} is not here: {why}." for name, why in figures.get("missing", {}).items()]
    return "".join(stopped + missing)


def _pair(told: Json | None, point: int) -> str:
    if told is None:
        return "-"
    at = "" if told["at"] >= point else f" (at {told['at']:,})"
    return f"{told['wall_ms']:.1f}, {told['cpu_ms']:.1f}{at}"


def scale(figures: Json) -> str:
    rows = [
        ["archive of", "facts", "to grow (s)", "keep one (ms)", "search (ms)", "start to first answer (ms)",
         "disk (MB)", "memory (MB)"]
    ]  # fmt: skip
    rows += [_archive(name, told) for name, sizes in figures["archives"].items() for told in sizes.values()]
    first, last = figures["agents"][0], figures["agents"][-1]
    each = (last["memory_mb"] - first["memory_mb"]) / max(1, last["agents"] - first["agents"])
    agents = (
        f"{last['agents']} agents in one process, each having talked: {last['memory_mb']:.0f} MB, {each:.2f} MB for "
        f"each further one, {last['files']} open files, {last['threads']} threads."
    )
    return f"{grid(rows)}\n\n{WHY_FACTS_COST} {WHY_STARTS}\n\n{agents}{_left_out(figures)}"


def _archive(name: str, told: Json) -> list[str]:
    times = [f"{told['archive_ms']:.2f}", f"{told['search_ms']:.2f}", f"{told['start_ms']:.0f}"]
    child = f" + {told['child_mb']:.0f}" if told["child_mb"] else ""
    memory = f"{told['memory_mb']:.0f}{child}"
    return [name, f"{told['facts']:,}", f"{told['grow_s']:.1f}", *times, f"{told['disk_mb']:.0f}", memory]


def survival(figures: Json) -> str:
    ordeals = figures["ordeals"]
    names = list(next(iter(ordeals.values())))
    rows = [["", *names]]
    rows += [[title, *(one_line(told[name]) for name in names)] for title, told in ordeals.items()]
    return (
        f"{grid(rows)}\n\nIn the first two and the last every turn asks to remember a fact, so that a side which keeps "
        f"only facts has every chance. {WHY_TORN}{_left_out(figures)}"
    )


def one_line(text: str) -> str:
    """As a cell of a table."""
    return " ".join(text.replace("|", "/").split())


WAYS = {
    "everything": "everything",
    "newest": "newest turns, as many tokens as the 5 pages",
    "prefetch": "ours, unasked: up to 4 facts",
    "search_recall": "ours, search: 10 excerpts",
    "search_recall, 5 pages": "ours, search: the 5 best turns whole",
}


def injected(figures: Json) -> str:
    people, talks = figures["people"], figures["talks"]
    columns = {**{f"{int(length):,} turns": told for length, told in people.items()}, _talk(talks): talks}
    rows = [["tokens of the past, answer in them", *columns]]
    for way, name in WAYS.items():
        cells = [told["ways"][way] for told in columns.values()]
        rows.append([name, *(f"{cell['tokens']:,.0f}, {cell['found']:.0%}" for cell in cells)])
    asked = ", ".join(f"{told['questions']} at {column}" for column, told in columns.items())
    what = f"Questions: {asked}. The answer counts as there when a sentence that holds it is, whole. {WHOSE_QUESTIONS}"
    return f"{grid(rows)}\n\n{what}"


def _talk(told: Json) -> str:
    return f"talks of {told['turns']:,.0f} turns, asked in other words"


SECTIONS: dict[str, tuple[str, Callable[[Json], str]]] = {
    "cost": ("Cost of memory", cost),
    "overhead": ("Overhead per turn", overhead),
    "scale": ("Scale", scale),
    "survival": ("Survival", survival),
    "injected": ("Injected tokens", injected),
}
