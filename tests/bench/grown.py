"""Agents with a past: so many turns, so many facts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pager import Memory, Request
from tests.bench.texts import Texts

INSTRUCTIONS = "You are a helpful assistant. Answer briefly, and keep what you learn about people and their plans."
CHARACTERS_PER_TOKEN = 4.2
BATCH = 100  # turns or facts per transaction while an agent grows: its rows are the same, the syncs are fewer


class Known:
    """An embedder whose vectors were made before, so that embedding costs nothing. Only these texts may come."""

    def __init__(self, vectors: dict[str, NDArray[np.float32]], fingerprint: str = "known") -> None:
        self._vectors = vectors
        self.fingerprint = fingerprint
        self.dimension = len(next(iter(vectors.values())))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) == 1:
            return self._vectors[texts[0]][np.newaxis]
        return np.stack([self._vectors[text] for text in texts])


def text_like_vectors(texts: list[str], dimension: int = 384) -> Known:
    """Unit vectors in clusters, as texts give them: some pairs are close, most are not."""
    random = np.random.default_rng(2)
    centres = random.standard_normal((200, dimension), dtype=np.float32)
    rows = centres[random.integers(0, len(centres), len(texts))]
    rows = rows + random.standard_normal((len(texts), dimension), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Known(dict(zip(texts, rows, strict=True)))


class Talk:
    """A conversation with one agent, and a model that says in its usage how many tokens it was asked."""

    def __init__(self, memory: Memory, texts: Texts) -> None:
        self._memory = memory
        self._texts = texts
        self._epoch = 0
        self._messages = 0
        self._characters = 0
        self.turns = 0

    def turn(self) -> float:
        """One turn; the seconds that the memory took for it."""
        asked, answer = self._texts.said(1), self._texts.said(2)
        start = time.perf_counter()
        self._memory.append_user(asked)
        request = self._memory.request()
        between = time.perf_counter()
        usage = self._usage(request, answer)
        resumed = time.perf_counter()
        self._memory.append_assistant(answer, usage)
        self.turns += 1
        return time.perf_counter() - resumed + between - start

    def turns_in_batches(self, count: int) -> None:
        for start in range(0, count, BATCH):
            with self._memory.transaction():
                for _ in range(min(BATCH, count - start)):
                    self.turn()

    def _usage(self, request: Request, answer: str) -> dict[str, int]:
        if request.epoch != self._epoch:
            self._epoch, self._messages = request.epoch, 0
            self._characters = _characters(request.params["system"])
        self._characters += _characters(request.messages[self._messages :])
        self._messages = len(request.messages)
        tokens = [int(characters / CHARACTERS_PER_TOKEN) for characters in (self._characters, len(answer))]
        return {"input_tokens": tokens[0], "output_tokens": tokens[1]}


def size_usage(request: Request, answer: str) -> dict[str, int]:
    """The usage of one reply, from the length of its request."""
    asked = _characters([request.params["system"], request.params.get("tools") or [], request.messages])
    tokens = [int(characters / CHARACTERS_PER_TOKEN) for characters in (asked, len(answer))]
    return {"input_tokens": tokens[0], "output_tokens": tokens[1]}


def _characters(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_characters, value.values()))
    if isinstance(value, list):
        return sum(map(_characters, value))
    return len(value) if isinstance(value, str) else 0


def archive_all(memory: Memory, facts: list[str]) -> None:
    for start in range(0, len(facts), BATCH):
        with memory.transaction():
            for number, text in enumerate(facts[start : start + BATCH], start=start):
                memory.archive(text, tags=[f"tag{number % 20}"])


def fill_log(memory: Memory, directory: Path) -> None:
    """Commit until the write-ahead log has its full length: a commit that makes a file longer takes twice the time."""
    length, before = -1, -2
    while length != before:
        before = length
        for _ in range(BATCH):
            memory.record("user", "one more turn, recorded elsewhere")
        length = (directory / "pager.db-wal").stat().st_size


def size_bytes(directory: Path) -> int:
    """What the files of a directory hold."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
