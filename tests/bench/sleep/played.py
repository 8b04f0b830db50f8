"""An extractor of known quality in the place of a model: what it finds, misses and invents is decided beforehand."""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from random import Random

from agents.events import Text
from agents.models.model import FinishedReply, Model
from agents.sleep import requests
from pager import count_tokens
from pager.types import Json
from tests.bench.sleep import made

LINE = re.compile(r"\[(s\d+)\] (.*?) \(\d{4}-\d\d-\d\d\): (.*)")
PERSONS = (
    (r"\bI'm\b|\bI am\b", "{} is"),
    (r"\bI've\b|\bI have\b", "{} has"),
    (r"\bI'll\b", "{} will"),
    (r"\bI'd\b", "{} would"),
    (r"\bI\b|\b[Mm]e\b|\bmyself\b", "{}"),
    (r"\b[Mm]y\b", "{}'s"),
)


def third_person(text: str, name: str) -> str:
    """What somebody says of themselves, as somebody else would note it."""
    name, text = "the user" if name == "user" else name, text.replace("\u2019", "'")
    for pattern, form in PERSONS:
        text = re.sub(pattern, form.format(name), text)
    return text[:1].upper() + text[1:]


class PlayedExtractor(Model):
    """Notes a share of the sentences, or of whole messages, and puts invented facts in the place of some."""

    name = "played"

    def __init__(
        self, share: float, wrong: float, others: Sequence[str], *, whole: bool = False,
        judge: Mapping[tuple[str, str], str] | None = None, seed: int = 3,
    ) -> None:  # fmt: skip
        self._share, self._wrong, self._others, self._whole = share, wrong, others, whole
        self._judge = judge or {}
        self._random = Random(seed)
        self.right, self.invented = set[str](), dict[str, str]()  # what it said; of what it invented, the kind
        self.asked: list[int] = []  # tokens of each request

    def stream(self, params: Json) -> Generator[Text, None, FinishedReply]:
        text = params["messages"][-1]["content"][0]["text"]
        system = params["system"]
        answer = json.dumps(self._facts(text) if system == requests.FACTS else self._verdicts(text))
        size = count_tokens(system) + count_tokens(text)
        self.asked.append(size)
        yield Text(answer)
        usage = {"input_tokens": size, "output_tokens": count_tokens(answer)}
        content = [{"type": "text", "text": answer}]
        return FinishedReply({"content": content, "stop_reason": "end_turn", "usage": usage})

    def _facts(self, text: str) -> list[Json]:
        found = list[Json]()
        for step, who, said in LINE.findall(text):
            whole = said.replace("\\n", " ")
            pieces = [whole] if self._whole else made.SENTENCE.split(whole)
            for piece in pieces:
                if len(piece.split()) >= 4 and self._random.random() < self._share:
                    found.append({"fact": self._noted(piece, who), "step": step, "quote": piece})
        return found

    def _noted(self, piece: str, who: str) -> str:
        fact = third_person(piece.strip(), who)[:480]
        if self._random.random() < self._wrong:
            kinds = list(made.INVENTED)
            self._random.shuffle(kinds)
            for kind in kinds:
                invented = made.INVENTED[kind](fact, self._random, self._others)
                if invented and invented != fact:
                    self.invented[invented[:480]] = kind
                    return invented[:480]
        self.right.add(fact)
        return fact

    def _verdicts(self, text: str) -> list[Json]:
        pairs = re.findall(r"Pair (\d+)\n  older: (.*)\n  newer: (.*)", text)
        return [{"pair": int(number), "answer": self._judge.get((old, new), "both")} for number, old, new in pairs]
