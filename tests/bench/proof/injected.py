"""Injected tokens: how much of the past stands in the prompt for a question, and whether what answers it is in there.

The people of bfcl_memory tell, one after the other, and are asked afterwards; the source of each answer is one of their
sentences. A past of 10 or 100 messages is a stretch of that conversation with the questions whose sources are in it;
one of 1,000 messages is all of it, with sessions of the talks (tests/bench/talks) between its own. Then the talks
themselves, each a past with its own questions, where what answers one is a message. Ways to bring it along:

- everything: every message, word for word.
- prefetch: up to 4 facts in 400 tokens, no messages, without anybody asking. No model is at work
  here, so each sentence that was told is a fact.
- search_recall: what the tool answers to the question as it stands: ten excerpts.
- search_recall, 5 pages: the five best messages, word for word.
- newest: as many tokens of the newest messages as those five took. What that finds, any prompt would.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from statistics import fmean

from pager import Memory, Prefetch, tokens
from pager.tiers.prefetch import PageChooser
from pager.types import Json
from tests.bench import question_sets
from tests.bench.finders import archive_texts
from tests.bench.question_sets import QuestionSet

EXCERPTS, PAGES = 10, 5
PREFETCH = Prefetch(k=4, budget_tokens=400, kinds=("facts",))


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    sources: tuple[str, ...]  # the sentences that hold the answer; one of them is enough
    messages: frozenset[int]  # where they stand


@dataclass(frozen=True, slots=True)
class Past:
    messages: list[str]
    sessions: list[str]
    facts: list[str]
    questions: list[Question]


def pasts(data: Path, length: int) -> list[Past]:
    """Return conversations of so many messages; a rest of less than half of that belongs to the one before."""
    messages = question_sets.together(question_sets.by_message(data))
    sentences = question_sets.together(question_sets.by_sentence(data))
    sources = [_sources(sentences, question.gold) for question in sentences.questions]
    whole = Past(messages.texts, messages.sessions, sentences.texts, [
        Question(asked.text, found, asked.gold) for asked, found in zip(messages.questions, sources, strict=True)
    ])  # fmt: skip
    if length > len(whole.messages):
        return [_among_talks(whole, length)]
    starts = list(range(0, len(whole.messages), length))
    if len(whole.messages) - starts[-1] < length / 2:
        del starts[-1]
    return [_stretch(whole, range(start, end)) for start, end in pairwise([*starts, len(whole.messages)])]


def _sources(asked: QuestionSet, places: frozenset[int]) -> tuple[str, ...]:
    return tuple(asked.texts[place] for place in sorted(places))


def _stretch(whole: Past, places: range) -> Past:
    messages = [whole.messages[place] for place in places]
    text = "\n".join(messages)
    questions = [
        replace(each, messages=frozenset(place - places.start for place in each.messages & set(places)))
        for each in whole.questions
        if each.messages & set(places) and any(source in text for source in each.sources)
    ]
    facts = [fact for fact in whole.facts if fact in text]
    return Past(messages, whole.sessions[places.start : places.stop], facts, questions)


def _among_talks(whole: Past, length: int) -> Past:
    """Sessions of the talks, of so many messages, between the sessions of the people, in an order by chance."""
    others = [
        (f"talk {number} {name}", text)
        for number, talk in enumerate(question_sets.talks())
        for name, text in zip(talk.sessions, talk.texts, strict=True)
    ][: length - len(whole.messages)]
    sessions: dict[str, list[str]] = {}
    for name, text in [*zip(whole.sessions, whole.messages, strict=True), *others]:
        sessions.setdefault(name, []).append(text)
    names = list(sessions)
    Random(5).shuffle(names)
    messages = [text for name in names for text in sessions[name]]
    place = {text: number for number, text in enumerate(messages)}
    questions = [
        replace(each, messages=frozenset(place[whole.messages[old]] for old in each.messages))
        for each in whole.questions
    ]
    facts = whole.facts + [text for _, text in others]
    return Past(messages, [name for name in names for _ in sessions[name]], facts, questions)


def talks() -> list[Past]:
    return [
        Past(talk.texts, talk.sessions, talk.texts, [
            Question(question.text, _sources(talk, question.gold), question.gold) for question in talk.questions
        ])
        for talk in question_sets.talks()
    ]  # fmt: skip


def figures(work: Path, data: Path, *, lengths: Sequence[int], most_pasts: int | None = None) -> Json:
    of_people = {str(length): _shares(pasts(data, length)[:most_pasts], work / str(length)) for length in lengths}
    return {"people": of_people, "talks": _shares(talks()[:most_pasts], work / "talks")}


def _shares(chosen: Sequence[Past], work: Path) -> Json:
    rows = [row for number, past in enumerate(chosen) for row in _asked(past, work / str(number))]
    ways = {
        way: {"tokens": fmean(row[way][0] for row in rows), "found": fmean(row[way][1] for row in rows)}
        for way in rows[0]
    }
    return {"messages": fmean(len(past.messages) for past in chosen), "questions": len(rows), "ways": ways}


def _asked(past: Past, place: Path) -> Iterator[dict[str, tuple[int, bool]]]:
    """For each question and each way: the tokens it brings along, and whether a source is among them."""
    sizes = [tokens.total(text) for text in past.messages]
    with Memory.open(place) as memory:
        messages = zip(past.messages, past.sessions, strict=True)
        memory.record_many({"role": "user", "text": text, "session": session} for text, session in messages)
        archive_texts(memory, past.facts)
        chooser = PageChooser(PREFETCH, memory._tiers.archive, memory._tiers.recall, memory._store)
        for question in past.questions:
            hits = memory.search_recall(question.text, limit=EXCERPTS)
            excerpts = [f"{hit.page_id} {hit.who}: {hit.text}" for hit in hits]
            pages = [past.messages[int(hit.page_id[1:]) - 1] for hit in hits[:PAGES]]
            facts = [each.line for each in chooser.choose(question.text, ())]
            whole = _measured(pages, question)
            yield {
                "everything": (sum(sizes), _holds(past.messages, question)),
                "newest": _measured(_newest(past.messages, sizes, whole[0]), question),
                "prefetch": _measured(facts, question),
                "search_recall": _measured(excerpts, question),
                "search_recall, 5 pages": whole,
            }


def _measured(texts: Sequence[str], question: Question) -> tuple[int, bool]:
    return sum(map(tokens.total, texts)), _holds(texts, question)


def _holds(texts: Sequence[str], question: Question) -> bool:
    """Return True if a source is there, whole. An excerpt may break its lines elsewhere."""
    text = " ".join("\n".join(texts).split())
    return any(" ".join(source.split()) in text for source in question.sources)


def _newest(messages: Sequence[str], sizes: Sequence[int], budget: int) -> list[str]:
    fitting = bisect_right(list(accumulate(reversed(sizes))), budget)
    return list(reversed(messages))[:fitting]
