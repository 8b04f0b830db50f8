"""An agent whose YAML changes between two runs, or in the middle of a task: a new epoch, and no request refused.

Real agents from files, the strict stand-in, thinking that is bound to what stood before it.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents import Agent
from agents.agent import Turn
from agents.events import Event, Replied, Stopped, ToolFinished
from tests.standin import Reply, Standin, call, thinking
from tests.support import HandClock
from tests.support.stage import Stage, last, leave_at, stage_in

TOOLS = '''
def look(city: str) -> str:
    """Look at the sky."""
    return f"sunny in {city}"


def order(number: int) -> str:
    """Look up an order."""
    return f"order {number} is on its way"
'''
SKY = "Tell me about the sky over Porto."
LOOK = Reply(thinking("I look."), call("look", {"city": "Porto"}))
DONE = Reply(thinking("Done."), call("task_done", {"summary": "sunny"}))


Json = dict[str, Any]
pytestmark = pytest.mark.slow


@dataclass
class Place:
    """An agent's folder: its YAML as data, its tools, a file in core, its home. Every `agent()` reads it all anew."""

    folder: Path
    stage: Stage
    config: Json = field(default_factory=dict)
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        (self.folder / "skies.py").write_text(TOOLS, encoding="utf-8")
        (self.folder / "notes.md").write_text("the first notes", encoding="utf-8")
        self.config = {
            "name": "x",
            "model": {"id": "m", "base_url": self.stage.base_url, "thinking": "adaptive", "max_output_tokens": 1_000},
            "instructions": "Be brief.",
            "window": {"limit_tokens": 30_000},
            "core": {"blocks": {"human": {"limit_tokens": 300}, "project": {"file": "notes.md", "read_only": True}}},
            "archival": {"embedder": "none"},
            "tools": [{"use": "skies:look"}],
        }

    def agent(self, *, task: bool = False) -> Agent:
        file = self.folder / "x.yaml"
        file.write_text(json.dumps(self.config), encoding="utf-8")  # every JSON is YAML
        return Agent.load(file, home=self.folder / "home", environ={}, clock=self.clock, task=task)

    def ask(self, text: str, *lines: Reply) -> Turn:
        self.stage.says(*lines)
        with self.agent() as agent:
            return agent.turn(text)

    def epochs(self) -> list[str]:
        """Why each epoch began."""
        with self.agent() as agent:
            return [move.reason for move in agent.memory.ledger(limit=1_000) if move.event == "epoch"]

    @property
    def requests(self) -> list[Json]:
        return self.stage.requests

    def assert_fine(self) -> None:
        self.stage.assert_over()
        with self.agent() as agent:
            assert not agent.memory.check()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "skies", raising=False)
    with stage_in(tmp_path, Standin(limit_tokens=40_000), windows={"small": 12_000}) as stage:
        place = Place(tmp_path, stage)
        yield place
        place.assert_fine()


def put(config: Json, path: str, value: Any) -> None:
    *sections, key = path.split(".")
    for section in sections:
        config = config[section]
    config[key] = value


def leave_task(place: Place, kind: type[Event]) -> None:
    """Start a task, and end the process at the first event of this kind."""
    place.stage.says(LOOK)
    with place.agent(task=True) as agent:
        leave_at(agent.tasks().start(SKY), kind)
        assert agent.memory.turn_is_open


def resume_task(place: Place) -> None:
    place.stage.says(DONE)
    with place.agent(task=True) as agent:
        assert last(agent.tasks().resume()) == Stopped("done", "sunny")


CHANGES: dict[str, tuple[str, Any, str]] = {  # what changes: path, value, what the ledger says
    "instructions": ("instructions", "Be long.", "the instructions changed"),
    "no instructions": ("instructions", "", "the instructions changed"),
    "another tool": ("tools", [{"use": "skies:look"}, {"use": "skies:order"}], "the tools changed"),
    "other tools": ("tools", [{"use": "skies:order"}], "the tools changed"),
    "no tools of its own": ("tools", [], "the tools changed"),
    "no memory tools": ("memory", {"tools": "none"}, "the tools changed"),
    "model": ("model.id", "m2", "changed: model"),
    "a model with a smaller window": ("window.limit_tokens", 10_000, ""),
    "thinking": ("model.thinking", "off", "changed: thinking"),
    "reply": ("model.max_output_tokens", 500, "changed: max_output_tokens"),
    "cache": ("model.cache_ttl", "1h", "changed: cache_ttl"),
}


def thought(request: Json) -> list[Json]:
    return [
        block
        for message in request["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] in {"thinking", "redacted_thinking"}
    ]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_two_runs(place: Place, change: str) -> None:
    path, value, why = CHANGES[change]
    place.ask("How is the sky over Porto?", LOOK, Reply(thinking("I see."), "Sunny."))
    assert place.ask("Thank you.", Reply(thinking("Kind."), "You are welcome.")).text == "You are welcome."
    assert len(thought(place.requests[-1])) == 2
    assert place.epochs() == ["first request"]
    put(place.config, path, value)
    assert place.ask("And now?", Reply(thinking("Hm."), "Still sunny.")).text == "Still sunny."
    assert place.ask("Good.", Reply("Yes.")).text == "Yes."
    if why:
        assert place.epochs() == ["first request", why]
        assert [len(thought(request)) for request in place.requests[-2:]] == [0, 1]
    said = json.dumps(place.requests[-1])
    assert "sunny in Porto" in said
    assert "You are welcome." in said


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("left_at", [Replied, ToolFinished])
def test_a_change_in_the_middle_of_a_task(place: Place, change: str, left_at: type[Event]) -> None:
    path, value, why = CHANGES[change]
    leave_task(place, left_at)
    put(place.config, path, value)
    resume_task(place)
    resumed = place.requests[-1]
    messages = json.dumps(resumed["messages"])
    assert "sky over Porto" in messages
    is_gone = change in {"other tools", "no tools of its own"} and left_at is Replied
    assert ("There is no tool 'look'" if is_gone else "sunny in Porto") in messages
    if why:
        assert place.epochs() == ["first request", why]
        assert thought(resumed) == []


def test_a_changed_file_in_the_middle_of_a_task(place: Place) -> None:
    leave_task(place, Replied)
    (place.folder / "notes.md").write_text("the second notes", encoding="utf-8")
    resume_task(place)
    assert "the second notes" in json.dumps(place.requests[-1]["messages"][-1])
    assert len(thought(place.requests[-1])) == 1
