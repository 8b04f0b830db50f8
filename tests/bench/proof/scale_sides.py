"""Archives that grow, each in a process of its own, driven as any side: ours with vectors or with words only, and
Chroma.

Vectors cost nothing here and are the same for all: a direction for each word, in 384 numbers of which 32 are free, as
few are in those of a model. `Chroma` is Chroma as it comes, which keeps texts and vectors and answers by vectors alone:
no words, no history, no search for what was true when.
"""

import re
import resource
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.bench.figures import ROOT, size_mb, timed, with_each
from tests.bench.peers.lines import memory_mb, serve
from tests.bench.texts import Texts

DIMENSION, FREE, FOUND, SINGLE, SEARCHES = 384, 32, 5, 60, 60
_NOWHERE = np.full(FREE, 1e-6, dtype=np.float32)
PIECE = 5_000


class Directions:
    fingerprint = "directions of words"
    dimension = DIMENSION

    def __init__(self) -> None:
        self._frame = np.random.default_rng(7).standard_normal((FREE, DIMENSION)).astype(np.float32)
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.stack([sum(map(self._direction, re.findall(r"\w+", text.lower())), _NOWHERE) for text in texts])
        rows = rows @ self._frame
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _direction(self, word: str) -> NDArray[np.float32]:
        if word not in self._known:  # a long word is a rare one, and says more
            random = np.random.default_rng(zlib.crc32(word.encode()))
            self._known[word] = random.standard_normal(FREE).astype(np.float32) * min(len(word), 8)
        return self._known[word]


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
    embedder: Any = Directions()
    server: Any = None

    def open(self) -> None:
        from pager import Memory

        self._memory = Memory.open(self._directory / "ours", embedder=self.embedder, index=self.server)

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


class OnServer(Ours):
    """The index is on a Chroma server beside it."""

    def open(self) -> None:
        from pager import ChromaServer

        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [Path(sys.executable).with_name("chroma"), "run", "--path", self._directory / "server"]
        self._process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        self.server = ChromaServer("127.0.0.1", port)
        super().open()

    def close(self) -> None:
        super().close()
        self._process.kill()
        self._process.wait()


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
        self._collection.add(ids=ids, documents=texts, embeddings=Ours.embedder.embed(texts))

    def close(self) -> None:
        self._client.close()

    def search(self, text: str) -> int:
        return len(self._collection.query(query_embeddings=Ours.embedder.embed([text]), n_results=FOUND)["ids"])


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


SIDES = {"ours": Ours, "server": OnServer, "words": Words, "chroma": Chroma, "agents": Agents}

if __name__ == "__main__":
    serve(lambda base_url, directory, kind, *more: SIDES[kind](base_url, directory, *more))
