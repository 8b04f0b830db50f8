"""How well memory finds, one table for each set of questions: `python -m tests.bench.bench_retrieval [--data DIR]`

R@k is the share of what answers a question among the first k hits, `any@k` the share of questions with some of it
there; nDCG looks at the order of the first ten, and R<250 at what fits into so many tokens when hits are read in order.
Weights were chosen on the first sets and are judged on others; each table says which it is. Then: what is recalled
before anybody asks, and what a search and a new message cost in a memory of 100,000 messages. Exits with 1 when a
limit does not hold.

The data is not part of the project: `../shared/data` beside the repository, or what --data says.
"""

import argparse
import math
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

from pager import tokens
from tests.bench import finders, prefetched, question_sets, recall_cost
from tests.bench.figures import ROOT, Figure, grid, machine, report
from tests.bench.question_sets import QuestionSet

DATA = ROOT.parent / "shared" / "data"
COLUMNS = ("R@1", "R@5", "R@10", "any@5", "any@10", "nDCG@10", "R<250", "R<1000", "R<4000")
BUDGETS = (250, 1000, 4000)


Read = Callable[[Path], list[QuestionSet]]


@dataclass(frozen=True, slots=True)
class Bench:
    name: str
    role: str  # what it was used for
    tier: str
    read: Read
    at_least: dict[str, float] = field(default_factory=dict)
    beats: Sequence[str] = ()  # by R@10


PEOPLE, SAME = "bfcl_memory", "the same questions"
CHOSEN = "weights of recall were chosen here"
JUDGES = "judges the weights of recall: nothing was chosen here"
LONG = "judges the weights of recall; how much word pieces count in questions of a page was chosen here"
OF_PEOPLE = {"any@5": 0.981, "any@10": 0.993}
BENCHES = (
    Bench(f"{PEOPLE}, each sentence a message", CHOSEN, "recall", question_sets.by_sentence),
    Bench(PEOPLE, SAME, "recall", question_sets.by_message, OF_PEOPLE),
    Bench(f"{PEOPLE}, five people in one memory", SAME, "recall", question_sets.in_one_memory),
    Bench("tau2_banking, each line a message", LONG, "recall", question_sets.by_line, {"R@10": 0.324}),
    Bench("talks of two people, asked in other words", JUDGES, "recall", question_sets.talks, {"R@10": 0.60}),
    Bench(f"{PEOPLE}, each sentence a fact", "chosen here", "archive", question_sets.by_sentence),
    Bench("tau2_banking, documents as facts", "judged", "archive", question_sets.documents, {"R@10": 0.324},
          beats=("words alone", "meaning alone")),
)  # fmt: skip


def measure(sets: Sequence[QuestionSet], maker: finders.Maker, work: Path) -> tuple[dict[str, float], float]:
    """Return each column, and the milliseconds of a query."""
    rows: list[list[float]] = []
    seconds: list[float] = []
    for number, asked in enumerate(sets):
        with ExitStack() as opened:
            find = maker(asked, work / str(number), opened)
            sizes = [tokens.total(text) for text in asked.texts]
            for question in asked.questions:
                start = time.perf_counter()
                places = find(question.text)
                seconds.append(time.perf_counter() - start)
                first: dict[int, int] = {}  # of each whole the size of the piece with which it was found
                for place in places:
                    first.setdefault(asked.whole(place), sizes[place])
                rows.append(_judge(first, question.gold))
    means = [fmean(column) for column in zip(*rows, strict=True)]
    return dict(zip(COLUMNS, means, strict=True)), 1000 * median(seconds)


def _judge(sizes: Mapping[int, int], gold: frozenset[int]) -> list[float]:
    """The value of each column, from the sizes of what was found, best first."""
    hits = [whole in gold for whole in sizes]
    gain = sum(1 / math.log2(rank + 2) for rank, hit in enumerate(hits[:10]) if hit)
    best = sum(1 / math.log2(rank + 2) for rank in range(min(len(gold), 10)))
    read = list(accumulate(sizes.values()))
    within = [sum(hits[: bisect_right(read, budget)]) / len(gold) for budget in BUDGETS]
    recalls = [sum(hits[:k]) / len(gold) for k in (1, 5, 10)]
    return [*recalls, any(hits[:5]), any(hits[:10]), gain / best, *within]


def show(bench: Bench, data: Path, work: Path) -> list[Figure]:
    """Print its table; return what has a limit."""
    sets = bench.read(data)
    questions = sum(len(each.questions) for each in sets)
    texts = sum(len(each.texts) for each in sets)
    print(f"\n{bench.name} ({bench.role}): {questions} questions, {texts:,} texts\n")
    makers = finders.all_of(bench.tier)
    results = {name: measure(sets, maker, work / f"{name} {bench.name}") for name, maker in makers.items()}
    rows = [["", *COLUMNS, "ms"]]
    rows += [[name, *(f"{found[c]:.3f}" for c in COLUMNS), f"{ms:.1f}"] for name, (found, ms) in results.items()]
    print(grid(rows), flush=True)
    ours = results["ours"][0]
    missed = [
        Figure(f"{bench.name}: {name} missed", f"{ours[name]:.3f} found", 1 - ours[name], round(1 - least, 3), "")
        for name, least in bench.at_least.items()
    ]
    others = {side: results[side][0]["R@10"] for side in bench.beats}
    return missed + [
        Figure(
            f"{bench.name}: R@10 against {side}", f"{ours['R@10']:.3f} against {other:.3f}", other / ours["R@10"], 1.0
        )
        for side, other in others.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="where bfcl_memory/ and tau2_banking/ are")
    data: Path = parser.parse_args().data
    if absent := question_sets.missing(data):
        print(f"in {data} these are missing: {', '.join(absent)}. Say with --data where they are.", file=sys.stderr)
        return 2
    with TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        print(machine(work, ("onnxruntime",)), flush=True)
        figures = [figure for bench in BENCHES for figure in show(bench, data, work)]
        figures += prefetched.show(data, work)
        figures += recall_cost.figures(work / "cost")
    print()
    return report(figures)


if __name__ == "__main__":
    sys.exit(main())
