"""Measure what is recalled before anybody asks: if it has to do with the message, and if small talk recalls nothing.

- questions: the share for which something that answers is put in, within 400 tokens. The five talks, as turns; the
  people of bfcl_memory, each sentence a fact.
- of others: the same memories asked about something else, the share for which anything is put in.
- small talk: lines in six languages (`small_talk/`), the share for which anything is put in; for English in each talk
  and in a memory of all five, for the other languages in a short talk in that language. No line is one of those that
  selfpager ships.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from pager import Memory, Prefetch
from pager.tiers.prefetch import PageChooser
from tests.bench import question_sets
from tests.bench.figures import Figure, grid
from tests.bench.finders import archive_texts, record_texts
from tests.bench.question_sets import Question, QuestionSet

PREFETCH = Prefetch(k=12, budget_tokens=400)  # what an agent has if its YAML says nothing
FOLDER = Path(__file__).with_name("small_talk")
OTHERS = ("de", "fr", "es", "ja", "zh")
COLUMNS: tuple[str, ...] = ("right", "any", "of others", "small talk")


@dataclass(frozen=True, slots=True)
class Asked:
    """A memory's worth with the messages for it."""

    own: QuestionSet
    others: Sequence[str]
    small_talk: Sequence[str]


def lines(language: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))


def show(data: Path, work: Path) -> list[Figure]:
    """Print the table; return what has a limit."""
    english = lines("en")
    people, talks = question_sets.by_sentence(data), question_sets.talks()
    [documents] = question_sets.documents(data)
    everybody = [question.text for person in people for question in person.questions]
    of_talks = [question.text for talk in talks for question in talk.questions]

    def others(asked: QuestionSet, texts: Sequence[str]) -> list[str]:
        own = {question.text for question in asked.questions}
        return [*english["elsewhere"], *(text for text in texts if text not in own)][::3]

    sets: dict[str, tuple[str, list[Asked]]] = {
        "talks, as turns": ("turns", [Asked(each, others(each, everybody), english["small talk"]) for each in talks]),
        "five talks in one memory": ("turns", [Asked(_together(talks), everybody[::3], english["small talk"])]),
        "bfcl_memory, as facts": (
            "facts", [Asked(each, others(each, of_talks), english["small talk"]) for each in people]
        ),
        "tau2_banking, as facts": ("facts", [Asked(documents, everybody[::3], english["small talk"])]),
        **{f"a talk in {name}, as turns": ("turns", [_of_language(name)]) for name in OTHERS},
    }  # fmt: skip
    rows, figures = [["", "embedder", *COLUMNS]], list[Figure]()
    for name, (kind, each) in sets.items():
        for embedder in ("default", None):
            place = work / f"{name} {embedder}"
            shares = [_shares(asked, place / str(number), embedder, kind) for number, asked in enumerate(each)]
            found: dict[str, float] = dict(zip(COLUMNS, map(fmean, zip(*shares, strict=True)), strict=True))
            rows.append([name, str(embedder or "none"), *(f"{found[column]:.3f}" for column in COLUMNS)])
            if embedder:
                figures += _figures(name, found)
    print(f"\nrecalled with a message, within {PREFETCH.budget_tokens} tokens: share of messages\n")
    print(grid(rows), flush=True)
    return figures


def _figures(name: str, found: dict[str, float]) -> list[Figure]:
    least = {"talks, as turns": 0.57, "bfcl_memory, as facts": 0.87}
    most = {"talks, as turns": 0.02, "five talks in one memory": 0.03}
    figures = list[Figure]()
    if name in least:
        missed = 1 - found["right"]
        what = f"{name}: nothing that answers is recalled"
        figures.append(Figure(what, f"{found['right']:.3f} found", missed, round(1 - least[name], 3), ""))
    if name in most or name.startswith("a talk in"):
        figures.append(Figure(f"{name}: recalled for small talk", "", found["small talk"], most.get(name, 0.25), ""))
    return figures


def _together(talks: Sequence[QuestionSet]) -> QuestionSet:
    whole = question_sets.together(talks)
    whole.sessions[:] = [f"{number} {name}" for number, talk in enumerate(talks) for name in talk.sessions]
    said = [each for talk in talks for each in talk.said or ()]
    return QuestionSet(whole.texts, whole.sessions, whole.questions, said=said)


def _of_language(name: str) -> Asked:
    given = lines(name)
    said = [
        (line["name"], f"2026-03-{place // 4 + 1:02}T18:{place % 4:02}") for place, line in enumerate(given["memory"])
    ]
    questions = [Question(text, frozenset(gold)) for text, gold in given["questions"]]
    texts = [line["text"] for line in given["memory"]]
    return Asked(QuestionSet(texts, [at[:10] for _, at in said], questions, said=said), [], given["small talk"])


def _shares(asked: Asked, place: Path, embedder: Any, kind: str) -> list[float]:
    """Return the share of its questions with a right page, with any page, and of each kind of others with any."""
    with Memory.open(place, embedder=embedder) as memory:
        places = record_texts(memory, asked.own) if kind == "turns" else archive_texts(memory, asked.own.texts)
        chooser = PageChooser(PREFETCH, memory._tiers.archive, memory._tiers.recall, memory._store)

        def recalled(message: str) -> set[int]:
            return {places[each.hit.page_id] for each in chooser.choose(message, ())}

        answers = [(recalled(question.text), question.gold) for question in asked.own.questions]
        share = partial(_share, chooser)
        right, found = [bool(pages & gold) for pages, gold in answers], [bool(pages) for pages, _ in answers]
        return [fmean(right), fmean(found), share(asked.others), share(asked.small_talk)]


def _share(chooser: PageChooser, texts: Sequence[str]) -> float:
    return fmean(bool(chooser.choose(text, ())) for text in texts) if texts else 0.0
