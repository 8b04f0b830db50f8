"""Archives that grow, each in a process of its own, driven as any side: ours with vectors or with words only, and
Chroma.

Vectors cost nothing here and are the same for all: words hashed into 384 numbers. `Bare` is Chroma as it comes, which
keeps texts and vectors and answers by vectors alone: no words, no history, no search for what was true when.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.bench.figures import timed
from tests.bench.peers.lines import memory_mb, serve
from tests.bench.texts import Texts

DIMENSION, FOUND, SINGLE, SEARCHES = 384, 5, 60, 60
PIECE = 5_000


class HashedWords:
    fingerprint = "hashed words"
    dimension = DIMENSION

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for place, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                rows[place, zlib.crc32(word.encode()) % DIMENSION] += 1.0
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


class Archive:
    """What each side does in its own way: keep many, keep one for good, find."""

    def __init__(self, base_url: str, directory: Path, seed: str = "2") -> None:
        self._directory = directory
        self._texts = Texts(int(seed))
        self._sample: list[str] = []  # of what is kept
        self.open()

    def open(self) -> None: ...

    def keep(self, texts: list[str]) -> None: ...

    def keep_one(self, text: str) -> None: ...

    def find(self, text: str) -> Any: ...

    def settle(self) -> None: ...

    def close(self) -> None: ...

    # what is asked from outside

    def grow(self, count: int, within: float) -> dict[str, float]:
        """So many more, or as many as there is time for; how long it took until nothing was left to do for them."""
        start, done = time.monotonic(), 0
        while done < count and time.monotonic() < start + within:
            texts = self._texts.facts(min(PIECE, count - done))
            self.keep(texts)
            done += len(texts)
            self._sample = texts
        self.settle()
        return {"facts": done, "seconds": time.monotonic() - start}

    def figures(self) -> dict[str, float]:
        questions = self._texts.questions(self._sample)
        self.find(next(questions))
        finds = [timed(lambda: self.find(next(questions))) for _ in range(SEARCHES)]
        ones = [timed(lambda: self.keep_one(self._texts.sentence())) for _ in range(SINGLE)]
        return {
            "archive_ms": 1000 * median(ones), "search_ms": 1000 * median(finds), "memory_mb": memory_mb(),
            "child_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1_024,
        }  # fmt: skip

    def find_one(self) -> None:
        self.find("what was it about the hotel?")

    def disk_mb(self) -> float:
        return sum(path.stat().st_size for path in self._directory.rglob("*") if path.is_file()) / 1e6


class Ours(Archive):
    embedder: Any = HashedWords()

    def open(self) -> None:
        from pager import Memory

        self._memory = Memory.open(self._directory / "ours", embedder=self.embedder)

    def keep(self, texts: list[str]) -> None:
        from tests.bench.grown import archive_all

        archive_all(self._memory, texts)

    def keep_one(self, text: str) -> None:
        self._memory.archive(text)

    def find(self, text: str) -> Any:
        return self._memory.search_archive(text, limit=FOUND)

    def settle(self) -> None:
        self._memory.compact()

    def close(self) -> None:
        self._memory.close()


class Words(Ours):
    embedder = None


class Bare(Archive):
    def open(self) -> None:
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        self._client: Any = chromadb.PersistentClient(str(self._directory / "chroma"), settings=settings)
        self._collection = self._client.get_or_create_collection("facts", embedding_function=None)
        self._count = self._collection.count()

    def keep(self, texts: list[str]) -> None:
        ids = [str(self._count + place) for place in range(len(texts))]
        self._count += len(texts)
        self._collection.add(ids=ids, documents=texts, embeddings=HashedWords().embed(texts))

    def keep_one(self, text: str) -> None:
        self.keep([text])

    def find(self, text: str) -> Any:
        return self._collection.query(query_embeddings=HashedWords().embed([text]), n_results=FOUND)

    def close(self) -> None:
        self._client.close()


class Agents:
    """Many agents in one process, each with a memory of its own that has talked once."""

    def __init__(self, base_url: str, directory: Path) -> None:
        self._base_url, self._directory = base_url, directory
        self._agents: list[Any] = []

    def open_more(self, count: int) -> dict[str, float]:
        from agents import Agent
        from tests.bench.agent_turn_cost import ASSISTANT

        for _ in range(count):
            name = f"agent{len(self._agents)}"
            environ = {"ANTHROPIC_BASE_URL": self._base_url}
            agent = Agent.load(ASSISTANT, home=self._directory, as_name=name, environ=environ)
            agent.memory.archive(f"the person of {name} likes hats")
            agent.turn("What do I like?")
            self._agents.append(agent)
        files = len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0
        return {"agents": len(self._agents), "memory_mb": memory_mb(), "files": files, "threads": _threads()}

    def close(self) -> None:
        for agent in self._agents:
            agent.close()


def _threads() -> int:
    tasks = Path(f"/proc/{os.getpid()}/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 0


SIDES = {"ours": Ours, "words": Words, "chroma": Bare, "agents": Agents}

if __name__ == "__main__":
    serve(lambda base_url, directory, kind, *more: SIDES[kind](base_url, directory, *more))
