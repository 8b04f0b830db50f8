"""mem0 beside the SDK: a search before each call, an `add` behind it, its vectors in Qdrant's local files (its
default).

`infer=False`: messages are kept as they are, no model is asked for facts. Its embedder would be a service or a
download: it gets ours, MiniLM, in its own process. Its telemetry is off.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anthropic

from pager.vectors.minilm import MiniLM
from tests.bench.peers.lines import INSTRUCTIONS, KEPT_TURNS, MAX_TOKENS, MODEL, serve

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


class Mem0:
    def __init__(self, base_url: str, directory: Path) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(directory), "ANTHROPIC_BASE_URL": base_url}
        from mem0 import Memory

        self._memory: Any = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(directory / "qdrant"), "embedding_model_dims": MiniLM.dimension, "on_disk": True,
                        "collection_name": "turns",
                    },
                },
                "llm": {"provider": "anthropic", "config": {"model": MODEL, "api_key": "none"}},
                "embedder": {"provider": "openai", "config": {"api_key": "none", "embedding_dims": MiniLM.dimension}},
                "history_db_path": str(directory / "history.db"),
            }
        )  # fmt: skip
        self._memory.embedding_model = Local()
        self._client = anthropic.Anthropic(base_url=base_url, api_key="none", max_retries=0)
        self._messages: list[Any] = []

    def grow(self, turns: Sequence[Sequence[str]]) -> None:
        for asked, answer in turns:
            self._keep(asked, answer)

    def _keep(self, asked: str, answer: str) -> None:
        pair = [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
        self._memory.add(pair, user_id=WHO, infer=False)
        self._messages += pair

    def turn(self, text: str) -> str:
        found = self._memory.search(text, filters={"user_id": WHO}, top_k=FOUND)["results"]
        system = "\n".join([INSTRUCTIONS, *(each["memory"] for each in found)])
        sent = [*self._messages[-2 * KEPT_TURNS + 2 :], {"role": "user", "content": text}]
        with self._client.messages.stream(model=MODEL, max_tokens=MAX_TOKENS, system=system, messages=sent) as stream:
            for _ in stream:
                pass
            message: Any = stream.get_final_message()
        self._keep(text, message.content[0].text)
        return message.content[0].text

    def said(self) -> list[str]:
        found = self._memory.get_all(filters={"user_id": WHO}, top_k=100_000)["results"]
        return [each["memory"] for each in found if each.get("role") == "user"]

    def close(self) -> None:
        self._client.close()
        self._memory.close()


if __name__ == "__main__":
    serve(Mem0)
