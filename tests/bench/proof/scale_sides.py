"""Archives that grow, each in a process of its own, driven as any side: ours with vectors or with words only, and
Chroma.

Vectors cost nothing here and are the same for all: words hashed into 384 numbers. `Chroma` is Chroma as it comes, which
keeps texts and vectors and answers by vectors alone: no words, no history, no search for what was true when.
"""

import re
import resource
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.bench.figures import ROOT, size_mb, timed, with_each
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
    """What is asked of every archive; each adds, searches and settles in its own way."""

    def __init__(self, base_url: str, directory: Path, seed: str = "2") -> None:
        self._directory = directory
        self._texts = Texts(int(seed))
        self._sample: list[str] = []  # of what it holds
        self.open()

    def open(self) -> None: ...

    def add(self, texts: list[str]) -> None: ...

    def add_one(self, text: str) -> None:
        self.add([text])

    def search(self, text: str) -> int:
        raise NotImplementedError

    def settle(self) -> None: ...

    def close(self) -> None: ...

    def grow(self, count: int, within: float) -> dict[str, float]:
        """Add so many, or as many as there is time for; return how long it took until nothing was left to do."""
        start, done = time.monotonic(), 0
        while done < count and time.monotonic() < start + within:
            self._sample = self._texts.facts(min(PIECE, count - done))
            self.add(self._sample)
            done += len(self._sample)
        self.settle()
        return {"facts": done, "seconds": time.monotonic() - start}

    def figures(self) -> dict[str, float]:
        questions = self._texts.questions(self._sample)
        self.search(next(questions))
        search = with_each(questions, self.search)
        searches = [search() for _ in range(SEARCHES)]
        singles = [timed(self.add_one, self._texts.sentence()) for _ in range(SINGLE)]
        child_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1_024
        times = {"archive_ms": 1000 * median(singles), "search_ms": 1000 * median(searches)}
        return {**times, "memory_mb": memory_mb(), "child_mb": child_mb}

    def disk_mb(self) -> float:
        return size_mb(self._directory)


class Ours(Archive):
    embedder: Any = HashedWords()

    def open(self) -> None:
        from pager import Memory

        self._memory = Memory.open(self._directory / "ours", embedder=self.embedder)

    def add(self, texts: list[str]) -> None:
        from tests.bench.grown import archive_all

        archive_all(self._memory, texts)

    def add_one(self, text: str) -> None:
        self._memory.archive(text)

    def settle(self) -> None:
        self._memory.compact()

    def close(self) -> None:
        self._memory.close()

    def search(self, text: str) -> int:
        return len(self._memory.search_archive(text, limit=FOUND))


class Words(Ours):
    embedder = None


class Chroma(Archive):
    def open(self) -> None:
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        self._client: Any = chromadb.PersistentClient(str(self._directory / "chroma"), settings=settings)
        self._collection = self._client.get_or_create_collection("facts", embedding_function=None)
        self._count = self._collection.count()

    def add(self, texts: list[str]) -> None:
        ids = [str(self._count + place) for place in range(len(texts))]
        self._count += len(texts)
        self._collection.add(ids=ids, documents=texts, embeddings=HashedWords().embed(texts))

    def close(self) -> None:
        self._client.close()

    def search(self, text: str) -> int:
        return len(self._collection.query(query_embeddings=HashedWords().embed([text]), n_results=FOUND)["ids"])


class Agents:
    """Many agents in one process, each with a memory of its own that has talked once."""

    def __init__(self, base_url: str, directory: Path) -> None:
        self._environ, self._directory = {"ANTHROPIC_BASE_URL": base_url}, directory
        self._agents: list[Any] = []

    def open_more(self, count: int) -> dict[str, float]:
        from agents import Agent

        file = ROOT / "configs" / "assistant.yaml"
        for _ in range(count):
            name = f"agent{len(self._agents)}"
            agent = Agent.load(file, home=self._directory, as_name=name, environ=self._environ)
            agent.memory.archive(f"the person of {name} likes hats")
            agent.turn("What do I like?")
            self._agents.append(agent)
        files, threads = (len(list(Path("/proc/self", name).glob("*"))) for name in ("fd", "task"))  # 0 but on Linux
        return {"agents": len(self._agents), "memory_mb": memory_mb(), "files": files, "threads": threads}

    def close(self) -> None:
        for agent in self._agents:
            agent.close()


SIDES = {"ours": Ours, "words": Words, "chroma": Chroma, "agents": Agents}

if __name__ == "__main__":
    serve(lambda base_url, directory, kind, *more: SIDES[kind](base_url, directory, *more))
