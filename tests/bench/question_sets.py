"""The questions that retrieval is measured on; each names what answers it. The first two are in the shared data.

- bfcl_memory: five people tell an agent about themselves, and are asked questions afterwards. Gold: the message that
  holds the source of the answer; or, where each sentence is a message of its own, the sentences that do.
- tau2_banking: documents of a bank, and situations of customers as long as a page. Gold: the documents that one needs.
- talks: five conversations between two people over a year, with questions in other words than theirs. Written for this,
  each by a writer who knew neither the others nor how anything is searched, when all weights had been chosen.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TALKS = Path(__file__).parent / "talks"
PEOPLE = ("customer", "finance", "healthcare", "notetaker", "student")
NEEDED = ("bfcl_memory/BFCL_v4_memory.json", "bfcl_memory/possible_answer_BFCL_v4_memory.json",
          *(f"bfcl_memory/prereq_{person}.json" for person in PEOPLE),
          "tau2_banking/documents.jsonl", "tau2_banking/queries.jsonl")  # fmt: skip
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    gold: frozenset[int]  # places among the texts


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """One memory's worth: the texts in it, their sessions, and what it is asked."""

    texts: list[str]
    sessions: list[str]
    questions: list[Question]
    wholes: list[int] | None = None  # where gold speaks of more than a text: the whole that each is a piece of
    said: list[tuple[str, str]] | None = None  # where it is known: who said each, and when

    def whole(self, place: int) -> int:
        return place if self.wholes is None else self.wholes[place]


def missing(data: Path) -> list[str]:
    return [name for name in NEEDED if not (data / name).is_file()]


def by_message(data: Path) -> list[QuestionSet]:
    return [_person(data / "bfcl_memory", person, split=False) for person in PEOPLE]


def by_sentence(data: Path) -> list[QuestionSet]:
    return [_person(data / "bfcl_memory", person, split=True) for person in PEOPLE]


def in_one_memory(data: Path) -> list[QuestionSet]:
    return [together(by_message(data))]


def together(sets: Sequence[QuestionSet]) -> QuestionSet:
    """Put all people into one memory."""
    whole = QuestionSet([], [], [])
    for each in sets:
        first = len(whole.texts)
        whole.texts.extend(each.texts)
        whole.sessions.extend(each.sessions)
        whole.questions.extend(Question(q.text, frozenset(first + place for place in q.gold)) for q in each.questions)
    return whole


def documents(data: Path) -> list[QuestionSet]:
    texts, names, questions = _banking(data)
    return [QuestionSet(texts, names, questions)]


def by_line(data: Path) -> list[QuestionSet]:
    """Each document a session, each line of it a message; a document is found with any of its lines."""
    texts, names, questions = _banking(data)
    lines = [(line, place) for place, text in enumerate(texts) for line in text.splitlines() if re.search(r"\w", line)]
    wholes = [place for _, place in lines]
    return [QuestionSet([line for line, _ in lines], [names[place] for place in wholes], questions, wholes)]


def talks(_: Path | None = None) -> list[QuestionSet]:
    """They lie beside this file, wherever the other data is."""
    return [_talk(list(_lines(file))) for file in sorted(TALKS.glob("*.jsonl"))]


def _talk(lines: Sequence[Any]) -> QuestionSet:
    messages = [line for line in lines if "text" in line]
    sessions = [str(message["session"]) for message in messages]
    place = {f"{name}:{place - sessions.index(name) + 1}": place for place, name in enumerate(sessions)}
    questions = [
        Question(line["question"], frozenset(place[name] for name in line["gold"]))
        for line in lines
        if "question" in line
    ]
    said = [(message["name"], message["at"]) for message in messages]
    return QuestionSet([message["text"] for message in messages], sessions, questions, said=said)


def _banking(data: Path) -> tuple[list[str], list[str], list[Question]]:
    known = list(_lines(data / "tau2_banking/documents.jsonl"))
    place = {document["id"]: number for number, document in enumerate(known)}
    questions = [
        Question(query["situation"], frozenset(place[name] for name in query["required_documents"]))
        for query in _lines(data / "tau2_banking/queries.jsonl")
    ]
    return [f"{each['title']}\n{each['content']}" for each in known], [each["id"] for each in known], questions


def _person(folder: Path, person: str, *, split: bool) -> QuestionSet:
    sources = {answer["id"]: answer["source"] for answer in _lines(folder / "possible_answer_BFCL_v4_memory.json")}
    texts: list[str] = []
    sessions: list[str] = []
    for conversation in _lines(folder / f"prereq_{person}.json"):
        said = [message["content"] for messages in conversation["question"] for message in messages]
        pieces = [piece for text in said for piece in (_SENTENCE.split(text) if split else [text]) if piece.strip()]
        texts += pieces
        sessions += [conversation["id"]] * len(pieces)
    plain = [_plain(text) for text in texts]
    questions = [
        Question(question["question"][0][0]["content"], frozenset(_holding(plain, sources[question["id"]])))
        for question in _lines(folder / "BFCL_v4_memory.json")
        if question["scenario"] == person
    ]
    return QuestionSet(texts, sessions, questions)


def _holding(texts: Sequence[str], source: str | Sequence[str]) -> set[int]:
    """The texts that hold a piece of the source or are one; else the one that shares most words with it."""
    given = [source] if isinstance(source, str) else source
    pieces = [piece for text in given for each in re.split(r"\.\.\.|\u2026", text) if len(piece := _plain(each)) > 3]
    found = {
        place
        for place, text in enumerate(texts)
        if any(piece in text or (len(text) > 12 and text in piece) for piece in pieces)
    }
    words = {word for piece in pieces for word in piece.split()}
    return found or {max(range(len(texts)), key=lambda place: len(words & set(texts[place].split())))}


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def _lines(file: Path) -> Iterator[Any]:
    return map(json.loads, file.read_text(encoding="utf-8").splitlines())
