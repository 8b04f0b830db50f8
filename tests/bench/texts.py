"""Texts for benchmarks: the same ones every time, English in their words and in how often each occurs."""

import zlib
from collections.abc import Iterator
from random import Random
from typing import Any

from pager.vectors.minilm import VOCABULARY

CHARACTERS_PER_TOKEN = 4.2
COMMON = 300  # the first words of the vocabulary, which is sorted by frequency: every sentence has some of them
_SHAPES = [
    "the {} {} at the {} was {} in {}",
    "{name} {} the {} {} with a {} and no {}",
    "on {} we {} the {} from {} to the {} because it was {}",
    "{name} {} that {} {} are {} for her {}, about {number} of them",
    "the {} of the {} {} {number} and is {} for {}",
    "{} is to {} the {} before {name} {} to {}",
]  # between the words from the vocabulary only such that say nothing


class Texts:
    """An endless supply of sentences. Two of the same seed say the same."""

    def __init__(self, seed: int = 2) -> None:
        self._random = Random(seed)
        pieces = zlib.decompress(VOCABULARY.read_bytes()).decode().split("\n")
        words = [piece for piece in pieces if piece.isascii() and piece.isalpha() and len(piece) > 2]
        self._common, self._rare = words[:COMMON], words[COMMON:]

    def _word(self) -> str:
        if self._random.random() < 0.3:
            return self._random.choice(self._common)
        # Zipf: a word's frequency is one over its rank.
        return self._rare[int(len(self._rare) ** self._random.random()) - 1]

    def sentence(self) -> str:
        shape = self._random.choice(_SHAPES)
        words = [self._word() for _ in range(shape.count("{}"))]
        name, number = self._random.choice(self._rare[:2000]).capitalize(), self._random.randrange(2, 900)
        return shape.format(*words, name=name, number=number)

    def said(self, sentences: int) -> str:
        return " ".join(f"{self.sentence().capitalize()}." for _ in range(sentences))

    def facts(self, count: int) -> list[str]:
        return [self.sentence() for _ in range(count)]

    def questions(self, facts: list[str]) -> Iterator[str]:
        """What a person would ask about some fact: a few of its words, among others."""
        while True:
            words = self._random.choice(facts).split()
            about = [word for word in words if len(word) > 3]
            yield f"what was it about the {' '.join(self._random.sample(about, min(3, len(about))))}?"


def characters(value: Any) -> int:
    """Count the characters of all texts in a JSON value."""
    if isinstance(value, dict):
        return sum(map(characters, value.values()))
    if isinstance(value, list):
        return sum(map(characters, value))
    return len(value) if isinstance(value, str) else 0
