"""Whether what is recalled before anybody asks has to do with the message, and whether nothing is recalled otherwise.

Facts are the sentences of bfcl_memory (the thresholds were chosen on them) and the documents of tau2_banking. Messages
that have to do with them are their own questions; those that have not are another person's questions, and small talk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pager import Memory, Prefetch
from tests.bench import question_sets
from tests.bench.figures import grid
from tests.bench.question_sets import Asked, Told

K, BUDGET_TOKENS = 4, 400  # what an agent has if its YAML says nothing
SMALL_TALK = [
    "hello", "hi there", "good morning", "thanks", "thank you so much!", "ok", "okay, go on", "yes please", "no",
    "great", "cool, thanks", "how are you doing today?", "what can you do?", "can you help me?", "please continue",
    "never mind", "try again", "what do you mean?", "bye", "see you later", "good night", "hmm", "I see",
    "sounds good", "let's start", "nice to meet you", "who are you?", "what's up?", "perfect", "why?",
]  # fmt: skip
ELSEWHERE = [
    "What is the capital of Australia?", "Translate this sentence into French.", "What is 17 times 23?",
    "Explain quantum tunnelling in one paragraph.", "Give me a recipe for lentil soup.", "Write a haiku about rain.",
    "How do I undo the last git commit?", "Who won the world cup in 1998?", "What does HTTP 404 mean?",
]  # fmt: skip


def show(data: Path, work: Path) -> None:
    people = question_sets.by_sentence(data)
    rows = [["", "", "keeps what answers", "of another", "elsewhere", "small talk"]]
    for name, embedder in (("no embedder", None), ("default", "default")):
        figures = [_of(told, _others(people, told), work / f"{name} {number}", embedder)
                   for number, told in enumerate(people)]  # fmt: skip
        rows.append(
            [
                "bfcl_memory (chosen)",
                name,
                *(f"{sum(column) / len(people):.3f}" for column in zip(*figures, strict=True)),
            ]
        )
        [documents] = question_sets.documents(data)
        figure = _of(documents, [q for told in people for q in told.questions], work / f"{name} documents", embedder)
        rows.append(["tau2_banking (judged)", name, *(f"{value:.3f}" for value in figure)])
    print(f"\nrecalled with a message, {K} facts at most: share of messages with a right fact; of others with any\n")
    print(grid(rows), flush=True)


def _others(people: Sequence[Told], told: Told) -> list[Asked]:
    return [question for other in people if other is not told for question in other.questions]


def _of(told: Told, others: Sequence[Asked], place: Path, embedder: Any) -> list[float]:
    with _kept(told, place, embedder) as (memory, prefetch):

        def recalled(message: str) -> set[int]:
            hits = prefetch.choose(message, memory._tiers.archive, memory._store)
            return {int(hit.page_id[1:]) - 1 for hit in hits}

        right = [bool(recalled(question.text) & question.gold) for question in told.questions]
        wrong = [
            [bool(recalled(text)) for text in texts]
            for texts in ([question.text for question in others], ELSEWHERE, SMALL_TALK)
        ]
    return [sum(column) / len(column) for column in (right, *wrong)]


@contextmanager
def _kept(told: Told, place: Path, embedder: Any) -> Iterator[tuple[Memory, Prefetch]]:
    with Memory.open(place, embedder=embedder) as memory:
        with memory.transaction():
            for text in told.texts:
                memory.archive(text)
        yield memory, Prefetch(K, BUDGET_TOKENS)
