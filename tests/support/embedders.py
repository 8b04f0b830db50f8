"""Embedders that need no weights. Each keeps the promises of pager.vectors.embedder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from pager import EmbedderUnavailableError
from pager.vectors.embedder import TokenVectors
from pager.vectors.facts import FactVectors
from pager.vectors.quantized import TOKEN_DIMENSION


class Words:
    """Texts that share words are near each other; no two different texts are the same."""

    def __init__(self, fingerprint: str = "words-1", dimension: int = 32) -> None:
        self.fingerprint = fingerprint
        self.dimension = dimension
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> NDArray[np.float32]:
        row = 0.01 * self._direction(text)
        for word in re.findall(r"\w+", text.lower()):
            row = row + self._direction(word)
        return (row / np.linalg.norm(row)).astype(np.float32)

    def _direction(self, text: str) -> NDArray[np.float64]:
        seed = int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        return np.random.default_rng(seed).standard_normal(self.dimension)


class Pieces(Words):
    """Has a token vector for each word, too. The words of `same` have that of the word they stand beside."""

    def __init__(self, token_fingerprint: str = "tokens-1", **same: str) -> None:
        super().__init__("pieces-1")
        self.token_fingerprint, self._same = token_fingerprint, same

    def embed_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[TokenVectors]]:
        return self.embed(texts), [self._tokens(text) for text in texts]

    def _tokens(self, text: str) -> TokenVectors:
        words = re.findall(r"\w+", text)
        rows = [self._token(str(self._same.get(word.lower(), word.lower()))) for word in words]
        return TokenVectors(words, np.array(rows, dtype=np.float32).reshape(-1, TOKEN_DIMENSION))

    def _token(self, word: str) -> NDArray[np.float64]:
        row = np.random.default_rng([ord(letter) for letter in word]).standard_normal(TOKEN_DIMENSION)
        return row / np.linalg.norm(row)


class Letters(Words):
    """Means something by no more than a text's first letter: to see meaning and words disagree."""

    def __init__(self) -> None:
        super().__init__("letters-1")

    def _one(self, text: str) -> NDArray[np.float32]:
        row = self._direction(text[:1].lower()) + 0.01 * self._direction(text)
        return (row / np.linalg.norm(row)).astype(np.float32)


class Broken(Words):
    """Fails while `broken` is set: with that error, if it is one."""

    def __init__(self, broken: bool | Exception = True) -> None:
        super().__init__("broken-1")
        self.broken = broken

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if isinstance(self.broken, Exception):
            raise self.broken
        if self.broken:
            raise EmbedderUnavailableError("the weights are missing; install them.")
        return super().embed(texts)


class Careless(Words):
    """Breaks the seam's promises: its rows are what a test says, once they are asked for."""

    def __init__(self, change: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> None:
        super().__init__("careless-1")
        self._change = change

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._change(super().embed(texts))


def vector(meaning: FactVectors, text: str) -> NDArray[np.float32]:
    found = meaning.embedding.embed(text)
    assert found is not None
    return found.vector
