"""What must hold with any model behind any server of the Messages API or of Chat Completions, however little it can.
Never what it says.

Opt in with `make test-local URL=http://127.0.0.1:8080`, or with `URL=http://127.0.0.1:8080/v1 PROVIDER=openai`.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.agent import Agent
from agents.models.patience import Patience

STORY = (
    "Here is the log of day {day}; nothing has to be done about it. " + "Clouds from the west, wind 3, no rain. " * 40
)
ASKED = ("My name is Dana and I am a baker. Please remember that.", "What is my name?")
YAML = """\
name: local
model: {{provider: {provider}, id: "{model}", base_url: "{url}", api_key: "{key}",
  max_output_tokens: 300, thinking: off}}
instructions: Answer in one short sentence. Archive what you are asked to remember.
window: {{limit_tokens: {window}}}
core: {{blocks: {{human: {{description: Who the person is., limit_tokens: 200}}}}}}
archival: {{embedder: none}}
limits: {{max_steps: 8}}
"""
STORED = re.compile(r"^Stored as (f\d+)\.", re.MULTILINE)


@dataclass(frozen=True)
class Life:
    """What happened, for the person who asked."""

    turns: int
    calls: int
    facts_by_agent: int
    evictions: int

    @property
    def untried(self) -> list[str]:
        """What could not be tried, because the model did nothing of the kind."""
        tried = {
            "a call is sent back with its result (it called no tool)": self.calls,
            "a fact that the model stores is there, as its own (it stored none)": self.facts_by_agent,
        }
        return [law for law, times in tried.items() if not times]

    def __str__(self) -> str:
        did = f"{self.turns} turns, {self.calls} tool calls, {self.facts_by_agent} facts stored by the model"
        first = f"{did}, {self.evictions} steps evicted"
        return "\n".join((first, *(f"NOT TRIED with this model: {law}" for law in self.untried)))


def live(
    folder: Path, url: str, *, provider: str = "anthropic", model: str = "local", key: str = "", window: int = 8192,
    turns: int = 14,
) -> Life:  # fmt: skip
    """Talk until steps have left the window, then look over everything; a law that does not hold is an error."""
    file = folder / "local.yaml"
    file.write_text(YAML.format(provider=provider, model=model, url=url, key=key, window=window), encoding="utf-8")
    texts = [ASKED[0], *(STORY.format(day=day) for day in range(turns)), ASKED[1]]
    with Agent.load(file, home=folder, environ={}, patience=Patience(total_seconds=60)) as agent:
        memory = agent.memory
        fact = memory.archive("the oven is repaired on Friday", key="oven")
        for text in texts:
            agent.turn(text)
            assert memory.accepts_message
            assert not memory.open_calls
        moves = memory.ledger()
        steps = [step.page_id for day in memory.history.days() for step in memory.history.steps_on(day)]
        stored = [found for step in steps for found in STORED.findall(memory.page_text(step))]
        assert all(memory.fact(page).actor == "agent" for page in stored)
        assert memory.search_archive("oven")[0].page_id == fact.id
        assert any(move.event == "evict" for move in moves), "nothing was paged out"
        assert memory.search_recall("log of day 0")[0].text
        assert memory.check() == []
        calls = sum(block.get("type") == "tool_use" for step in steps for block in memory.history.blocks_of(step))
        evicted = sum(move.event == "evict" for move in moves)
        return Life(len(texts), calls, len(set(stored)), evicted)


def test_the_laws_hold_with_a_model_of_your_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    provider, model, key, window = (os.environ.get(f"LOCAL_{name}") for name in ("PROVIDER", "MODEL", "KEY", "WINDOW"))
    life = live(
        tmp_path, os.environ["LOCAL_BASE_URL"], provider=provider or "anthropic", model=model or "local", key=key or "",
        window=int(window or 8192),
    )  # fmt: skip
    with capsys.disabled():
        print(f"\n{life}")  # noqa: T201 - what this model can do is what its owner wants to know
