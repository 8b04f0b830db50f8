"""Measure if what is recalled before anybody asks has to do with the message, and if nothing is recalled otherwise.

Facts are the sentences of bfcl_memory (the thresholds were chosen on them) and the documents of tau2_banking. Messages
that have to do with them are their own questions; those that have not are another person's questions, and small talk.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pager import Memory, Prefetch
from pager.tiers.prefetch import FactChooser
from tests.bench import question_sets
from tests.bench.figures import grid
from tests.bench.finders import archive_texts
from tests.bench.question_sets import Question, QuestionSet

PREFETCH = Prefetch(k=4, budget_tokens=400)  # what an agent has if its YAML says nothing
UNRELATED = json.loads(Path(__file__).with_name("unrelated.json").read_text(encoding="utf-8"))


def show(data: Path, work: Path) -> None:
    people, [documents] = question_sets.by_sentence(data), question_sets.documents(data)
    everybody = [question for person in people for question in person.questions]
    rows = [["", "", "keeps what answers", "of another", "elsewhere", "small talk"]]
    for name, embedder in (("no embedder", None), ("default", "default")):
        shares = [
            _shares(
                person,
                [each for each in everybody if each not in person.questions],
                work / f"{name} {number}",
                embedder,
            )
            for number, person in enumerate(people)
        ]
        means = [sum(column) / len(people) for column in zip(*shares, strict=True)]
        rows.append(["bfcl_memory (chosen)", name, *(f"{value:.3f}" for value in means)])
        judged = _shares(documents, everybody, work / f"{name} documents", embedder)
        rows.append(["tau2_banking (judged)", name, *(f"{value:.3f}" for value in judged)])
    print("\nrecalled with a message, 4 facts at most: share of messages with a right fact; of others with any\n")
    print(grid(rows), flush=True)


def _shares(asked: QuestionSet, others: Sequence[Question], place: Path, embedder: Any) -> Iterator[float]:
    """Return the share of its own messages with a right fact, and of each kind of others with any."""
    with Memory.open(place, embedder=embedder) as memory:
        archive_texts(memory, asked.texts)
        chooser = FactChooser(PREFETCH, memory._tiers.archive, memory._store)

        def recalled(message: str) -> set[int]:
            return {int(each.hit.page_id[1:]) - 1 for each in chooser.choose(message)}

        yield _share(bool(recalled(question.text) & question.gold) for question in asked.questions)
        for texts in ([question.text for question in others], UNRELATED["elsewhere"], UNRELATED["small talk"]):
            yield _share(bool(recalled(text)) for text in texts)


def _share(hits: Iterator[bool]) -> float:
    counted = list(hits)
    return sum(counted) / len(counted)
