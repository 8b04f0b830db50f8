"""An agent from its file: its window, its log, what is closed with it, and the names that a caller needs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

import agents
import pager
from agents import Agent, Event, assembly
from agents.config.agent_config import AgentConfig
from agents.logs import log
from agents.models.anthropic import AnthropicModel
from tests.support.cli import command_line
from tests.support.stage import Stage


@pytest.mark.parametrize(
    ("recorded", "window", "remarks"), [(150_000, 150_000, 0), (1_000_000, 200_000, 0), (None, 100_000, 1)]
)
def test_the_window_is_the_models_but_no_million_that_is_billed(recorded: Any, window: int, remarks: int) -> None:
    found: list[str] = []
    model: Any = SimpleNamespace(max_input_tokens=lambda: recorded)
    assert assembly.window_limits(AgentConfig(name="a"), model, found).limit_tokens == window
    assert len(found) == remarks


@pytest.mark.parametrize("file", [5, None, b"x"])
def test_the_file_of_an_agent_is_a_path(file: Any) -> None:
    with pytest.raises(pager.RejectedError, match="give the path of a YAML file"):
        Agent.load(file)


def test_the_trace_of_a_failing_tool_is_shown_with_debug_only(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text('def broken() -> None:\n    """Fail."""\n    raise OSError("no disk")\n')
    (tmp_path / "replies.yaml").write_text("- call: {broken: }\n- {otherwise: true, say: It is broken.}\n")
    model = "{provider: scripted, script: replies.yaml}"
    more = "archival: {embedder: none}\ntools: [{use: 'broken:broken'}]\n"
    (tmp_path / "x.yaml").write_text(f"name: x\nmodel: {model}\n{more}", encoding="utf-8")
    arguments = ["run", tmp_path / "x.yaml", "Break it.", "--home", tmp_path]
    handlers = list(log.handlers)
    assert "Traceback" not in command_line(*arguments).err
    assert 'raise OSError("no disk")' in command_line(*arguments, "--new", "--debug").err
    assert log.handlers == handlers


def test_the_model_is_closed_with_the_agent(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[AnthropicModel] = []
    close = AnthropicModel.close
    monkeypatch.setattr(AnthropicModel, "close", lambda self: (closed.append(self), close(self)))
    with stage.load() as agent:
        agent.turn("hello")
        assert closed == []
    assert len(closed) == 1


def test_every_event_is_exported_where_the_agent_is() -> None:
    """What signatures name: test_public_types.py."""
    assert {getattr(agents, name) for name in agents.__all__} >= set(get_args(Event))
