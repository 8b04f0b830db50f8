"""Ours, driven like any other side: an agent as configs/assistant.yaml has it, with MiniLM, prefetch and all tools.

Beside it two that explain it: `words` has no embedder, as peers have whose vectors cost them nothing here, and `again`
is the SDK alone with the last request that ours made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents import Agent
from agents.loop import Patience
from tests.bench.agent_turn_cost import ASSISTANT, Watched
from tests.bench.grown import BATCH, size_usage
from tests.bench.peers.lines import MARK, serve

WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "again": {"archival": {"embedder": "none"}},
    "words": {"archival": {"embedder": "none"}},
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
        self._model = Watched("m", base_url=base_url) if way == "again" else None
        self.agent = Agent.load(
            file, home=directory, environ={"ANTHROPIC_BASE_URL": base_url}, patience=Patience(total_seconds=0),
            model=self._model,
        )  # fmt: skip
        self._asked = False

    def grow(self, turns: Sequence[Sequence[str]]) -> None:
        memory = self.agent.memory
        for start in range(0, len(turns), BATCH):
            with memory.transaction():
                for asked, answer in turns[start : start + BATCH]:
                    memory.append_user(asked)
                    memory.append_assistant(answer, size_usage(memory.request(), answer))
                    if asked.startswith(MARK):
                        memory.archive(asked)
        while memory.embed_pending():  # in life that happens between the turns
            pass
        self._asked = False

    def turn(self, text: str) -> str:
        if self._model and self._asked:
            self._model.again()
            return ""
        self._asked = True
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
        """How often what was moved, by the ledger."""
        counted: dict[str, int] = {}
        for movement in self.agent.memory.ledger(limit=100_000):
            counted[movement.event] = counted.get(movement.event, 0) + 1
        return counted

    def close(self) -> None:
        self.agent.close()


if __name__ == "__main__":
    serve(Ours)
