"""mem0 beside the SDK: a search before each call, an `add` behind it, its vectors in Qdrant's local files (its
default).

`infer=False`: messages are stored as they are, no model is asked for facts. Its embedder would be a service or a
download: it gets ours, MiniLM, in its own process. Its telemetry is off.
"""
# pyright: reportMissingImports=false

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pager.vectors.minilm import MiniLM
from tests.bench.peers.bare_sdk import Bare, streamed
from tests.bench.peers.lines import INSTRUCTIONS, MODEL, serve

FOUND = 4
WHO = "dana"


class Local:
    """Stands where its embedder would."""

    config = None

    def __init__(self) -> None:
        self._embedder = MiniLM()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return self._embedder.embed(texts).tolist()


class Mem0(Bare):
    def __init__(self, base_url: str, directory: Path) -> None:
        super().__init__(base_url, directory)
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(directory), "ANTHROPIC_BASE_URL": base_url}
        from mem0 import Memory

        size = MiniLM.dimension
        qdrant = {"path": str(directory / "qdrant"), "embedding_model_dims": size, "on_disk": True}
        self._memory: Any = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": {**qdrant, "collection_name": "turns"}},
                "llm": {"provider": "anthropic", "config": {"model": MODEL, "api_key": "none"}},
                "embedder": {"provider": "openai", "config": {"api_key": "none", "embedding_dims": size}},
                "history_db_path": str(directory / "history.db"),
            }
        )
        self._memory.embedding_model = Local()

    def store(self, text: str, answer: Any) -> None:
        super().store(text, answer if isinstance(answer, str) else answer[0].text)
        self._memory.add(self._messages[-2:], user_id=WHO, infer=False)

    def answer(self, messages: list[Any]) -> Any:
        found = self._memory.search(messages[-1]["content"], filters={"user_id": WHO}, top_k=FOUND)["results"]
        return streamed(self.client, messages, "\n".join([INSTRUCTIONS, *(each["memory"] for each in found)]))

    def said(self) -> list[str]:
        found = self._memory.get_all(filters={"user_id": WHO}, top_k=100_000)["results"]
        return [each["memory"] for each in found if each.get("role") == "user"]

    def close(self) -> None:
        super().close()
        self._memory.close()


if __name__ == "__main__":
    serve(Mem0)
