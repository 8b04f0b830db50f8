"""How well memory finds, one table for each set of questions: `python -m tests.bench.bench_retrieval [--data DIR]`

R@k is the share of what answers a question among the first k hits, `any@k` the share of questions with some of it
there; nDCG looks at the order of the first ten, and R<250 at what fits into so many tokens when hits are read in order.
Weights were chosen on the first sets and are judged on others; each table says which it is. Then: what is recalled
before anybody asks, and what a search and a new turn cost in a memory of 100,000 turns. Exits with 1 when a limit does
not hold.

The data is not part of the project: `../shared/data` beside the repository, or what --data says.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

from pager import tokens
from tests.bench import finders, prefetched, question_sets, recall_cost
from tests.bench.figures import Figure, grid, table
from tests.bench.question_sets import Asked, Told
from tests.bench.running import machine

DATA = Path(__file__).parents[3] / "shared" / "data"
COLUMNS = ("R@1", "R@5", "R@10", "any@5", "any@10", "nDCG@10", "R<250", "R<1000", "R<4000")
BUDGETS = (250, 1000, 4000)
OURS = "ours"


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    role: str  # what it was used for
    tier: str
    read: Callable[[Path], list[Told]]
    at_least: dict[str, float]


SETS = (
    QuestionSet(
        "bfcl_memory, each sentence a turn", "weights of turns were chosen here", "recall", question_sets.by_sentence,
        {},
    ),
    QuestionSet(
        "bfcl_memory", "the same questions", "recall", question_sets.by_turn, {"any@5": 0.96, "any@10": 0.98}
    ),
    QuestionSet(
        "bfcl_memory, five people in one memory", "the same questions", "recall",
        lambda data: question_sets.together(question_sets.by_turn(data)), {},
    ),
    QuestionSet(
        "tau2_banking, each line a turn", "judges the weights of turns: nothing was chosen here", "recall",
        question_sets.by_line, {},
    ),
    QuestionSet(
        "talks of two people, asked in other words", "judges the weights of turns: nothing was chosen here", "recall",
        lambda _: question_sets.talks(), {},
    ),
    QuestionSet("bfcl_memory, each sentence a fact", "chosen here", "archive", question_sets.by_sentence, {}),
    QuestionSet("tau2_banking, documents as facts", "judged", "archive", question_sets.documents, {}),
)  # fmt: skip


def measure(sets: Sequence[Told], maker: finders.Maker, work: Path) -> tuple[dict[str, float], float]:
    """Each column, and the milliseconds of a query."""
    rows: list[list[float]] = []
    seconds: list[float] = []
    for number, told in enumerate(sets):
        with ExitStack() as opened:
            find = maker(told, work / str(number), opened)
            sizes = [tokens.total(text) for text in told.texts]
            for asked in told.questions:
                start = time.perf_counter()
                found = find(asked.text)
                seconds.append(time.perf_counter() - start)
                rows.append(_judged(found, asked, told, sizes))
    means = [fmean(column) for column in zip(*rows, strict=True)]
    return dict(zip(COLUMNS, means, strict=True)), 1000 * median(seconds)


def _judged(found: Sequence[int], asked: Asked, told: Told, sizes: Sequence[int]) -> list[float]:
    gold = asked.gold
    first: dict[int, int] = {}  # of each whole the size of the piece with which it was found
    for place in found:
        first.setdefault(told.whole(place), sizes[place])
    hits = [whole in gold for whole in first]
    gain = sum(1 / math.log2(rank + 2) for rank, hit in enumerate(hits[:10]) if hit)
    best = sum(1 / math.log2(rank + 2) for rank in range(min(len(gold), 10)))
    within = [_within(first, gold, budget) for budget in BUDGETS]
    return [
        *(sum(hits[:k]) / len(gold) for k in (1, 5, 10)), *(float(any(hits[:k])) for k in (5, 10)),
        gain / best, *within,
    ]  # fmt: skip


def _within(found: Mapping[int, int], gold: frozenset[int], budget: int) -> float:
    read = 0
    for whole, size in found.items():
        budget -= size
        if budget < 0:
            break
        read += whole in gold
    return read / len(gold)


def show(each: QuestionSet, data: Path, work: Path) -> list[Figure]:
    """Print its table; what has a limit comes back."""
    sets = each.read(data)
    questions = sum(len(told.questions) for told in sets)
    texts = sum(len(told.texts) for told in sets)
    print(f"\n{each.name} ({each.role}): {questions} questions, {texts:,} texts\n")
    measured = {
        name: measure(sets, maker, work / f"{name} {each.name}") for name, maker in finders.all_of(each.tier).items()
    }
    rows = [["", *COLUMNS, "ms"]]
    rows += [[name, *(f"{found[c]:.3f}" for c in COLUMNS), f"{ms:.1f}"] for name, (found, ms) in measured.items()]
    print(grid(rows), flush=True)
    shipped = measured[OURS][0]
    figures = [
        Figure(f"{each.name}: {name} missed", f"{shipped[name]:.3f} found", 1 - shipped[name], round(1 - least, 3), "")
        for name, least in each.at_least.items()
    ]
    if each.read is question_sets.documents:
        figures += [
            Figure(f"{each.name}: R@10 against {side}", f"{shipped['R@10']:.3f} against {known['R@10']:.3f}",
                   known["R@10"] / shipped["R@10"], 1.0)
            for side, (known, _) in measured.items() if side in ("words alone", "meaning alone")
        ]  # fmt: skip
    return figures


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="where bfcl_memory/ and tau2_banking/ are")
    data: Path = parser.parse_args(arguments).data
    if absent := question_sets.missing(data):
        print(f"in {data} these are missing: {', '.join(absent)}. Say with --data where they are.", file=sys.stderr)
        return 2
    figures: list[Figure] = []
    with TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        print(machine(work, ("onnxruntime",)), flush=True)
        for each in SETS:
            figures += show(each, data, work)
        prefetched.show(data, work)
        figures += recall_cost.figures(work / "cost")
    print(f"\n{table(figures)}")
    return int(any(figure.verdict == "FAIL" for figure in figures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
