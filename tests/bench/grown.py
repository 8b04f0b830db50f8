"""Agents with a past: so many turns, so many facts."""

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pager import Memory, Request
from pager.vectors.embedder import Embedder
from tests.bench.texts import CHARACTERS_PER_TOKEN, Texts, characters

INSTRUCTIONS = "You are a helpful assistant. Answer briefly, and keep what you learn about people and their plans."
BATCH = 100  # turns or facts per transaction while an agent grows: its rows are the same, the syncs are fewer
YOUNG = 10  # turns


class CachedVectors:
    """An embedder whose vectors were made before, so that embedding costs nothing. Only these texts may come."""

    def __init__(self, vectors: dict[str, NDArray[np.float32]], fingerprint: str = "cached") -> None:
        self._vectors = vectors
        self.fingerprint = fingerprint
        self.dimension = len(next(iter(vectors.values())))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) == 1:
            return self._vectors[texts[0]][np.newaxis]
        return np.stack([self._vectors[text] for text in texts])


def text_like_vectors(texts: list[str], dimension: int = 384) -> CachedVectors:
    """Unit vectors in clusters, as texts give them: some pairs are close, most are not."""
    random = np.random.default_rng(2)
    centres = random.standard_normal((200, dimension), dtype=np.float32)
    rows = centres[random.integers(0, len(centres), len(texts))]
    rows = rows + random.standard_normal((len(texts), dimension), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return CachedVectors(dict(zip(texts, rows, strict=True)))


def embed_all(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    return np.concatenate([embedder.embed(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)])


class Talk:
    """A conversation with one agent, and a model that says in its usage how many tokens it was sent."""

    def __init__(self, memory: Memory, texts: Texts | None = None) -> None:
        self._memory = memory
        self._texts = texts or Texts()
        self._epoch = 0
        self._messages = 0
        self._characters = 0

    def turn(self) -> float:
        return self.take(self._texts.said(1), self._texts.said(2))

    def take(self, text: str, answer: str) -> float:
        """Take one turn; return the seconds that the memory needed for it."""
        start = time.perf_counter()
        self._memory.append_user(text)
        request = self._memory.request()
        between = time.perf_counter()
        usage = self._usage(request, answer)
        resumed = time.perf_counter()
        self._memory.append_assistant(answer, usage)
        return time.perf_counter() - resumed + between - start

    def turns_in_batches(self, count: int) -> None:
        for start in range(0, count, BATCH):
            with self._memory.transaction():
                for _ in range(min(BATCH, count - start)):
                    self.turn()

    def _usage(self, request: Request, answer: str) -> dict[str, int]:
        if request.epoch != self._epoch:
            self._epoch, self._messages = request.epoch, 0
            self._characters = characters([request.params["system"], request.params.get("tools") or []])
        self._characters += characters(request.messages[self._messages :])
        self._messages = len(request.messages)
        tokens = [int(count / CHARACTERS_PER_TOKEN) for count in (self._characters, len(answer))]
        return {"input_tokens": tokens[0], "output_tokens": tokens[1]}


class Young:
    """A side that is always about `YOUNG` turns old: after as many it starts anew, from a copy of `seed`.

    `start` opens what is in a directory, and returns what takes a turn and times it.
    """

    def __init__(self, seed: Path, start: Callable[[Path, ExitStack], Callable[[], float]]) -> None:
        self._seed, self._start = seed, start
        self._opened = ExitStack()
        self._left = 0

    def turn(self) -> float:
        if not self._left:
            self.close()
            copy = self._seed.with_name("copy")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self._seed, copy)
            self._turn = self._start(copy, self._opened)
            self._turn()  # the first one after opening reads what the others find in memory
            self._left = YOUNG
        self._left -= 1
        return self._turn()

    def close(self) -> None:
        self._opened.close()


def archive_all(memory: Memory, facts: Sequence[str]) -> None:
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
            memory.record("user", "one more message, recorded elsewhere")
        length = (directory / "pager.db-wal").stat().st_size
