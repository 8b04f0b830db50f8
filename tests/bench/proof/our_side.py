"""Ours, driven like any other side: an agent as configs/assistant.yaml has it, with MiniLM, prefetch and all tools.

Beside it two that explain it: `words` has no embedder, as peers have whose vectors cost them nothing here, and `again`
is the SDK alone with the last request that ours made.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents import Agent
from agents.models.patience import Patience
from tests.bench.bench_agent import ASSISTANT, Repeating
from tests.bench.grown import BATCH, Talk
from tests.bench.peers.lines import MARK, serve

WITHOUT_EMBEDDER = {"archival": {"embedder": "none"}}
WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "again": WITHOUT_EMBEDDER,
    "words": WITHOUT_EMBEDDER,
    "survives": {
        "window": {"limit_tokens": 20_000},
        "tools": [{"use": "tests.bench.peers.giant_tool:read_everything"}],
        "recall": {"digest": {"summarize": {"model": "down"}}},
    },
}


class Ours:
    def __init__(self, base_url: str, directory: Path, way: str = "") -> None:
        file = directory / "agent.yaml"
        file.write_text(json.dumps({"extends": str(ASSISTANT), "name": "ours", **WAYS[way]}), encoding="utf-8")
        self._repeating = Repeating("m", base_url=base_url) if way == "again" else None
        environ, patience = {"ANTHROPIC_BASE_URL": base_url}, Patience(total_seconds=0)
        self.agent = Agent.load(file, home=directory, environ=environ, patience=patience, model=self._repeating)
        self._has_request = False

    def grow(self, turns: Sequence[Sequence[str]]) -> None:
        memory, talk = self.agent.memory, Talk(self.agent.memory)
        for start in range(0, len(turns), BATCH):
            with memory.transaction():
                for text, answer in turns[start : start + BATCH]:
                    talk.take(text, answer)
                    if text.startswith(MARK):
                        memory.archive(text)
        while memory.embed_pending():  # in life that happens between the turns
            pass
        self._has_request = False

    def turn(self, text: str) -> str:
        if self._repeating and self._has_request:
            for _ in range(2 if text.startswith(MARK) else 1):  # keeping a fact takes a second request
                self._repeating.again()
            return ""
        self._has_request = True
        return self.agent.turn(text).text

    def resume(self) -> str:
        return self.agent.resume().text

    def archive(self, texts: Sequence[str]) -> None:
        with self.agent.memory.transaction():
            for text in texts:
                self.agent.memory.archive(text)

    def search(self, text: str, limit: int = 4) -> list[str]:
        return [hit.text for hit in self.agent.memory.search_archive(text, limit=limit)]

    def said(self) -> list[str]:
        hits = self.agent.memory.search_recall("", limit=1_000_000)
        return [hit.text for hit in reversed(hits) if hit.who == "user"]

    def moved(self) -> dict[str, int]:
        """Count the events of the ledger."""
        return Counter(movement.event for movement in self.agent.memory.ledger(limit=100_000))

    def close(self) -> None:
        self.agent.close()


if __name__ == "__main__":
    serve(Ours)
