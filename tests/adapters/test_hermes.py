"""Hermes' memory provider, loaded by Hermes itself from a home as a user makes it."""

import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("agent.memory_provider")
hermes: Any = importlib.import_module("pager.adapters.hermes")


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    plugin = tmp_path / "plugins" / "selfpager"
    plugin.mkdir(parents=True)
    line = "from pager.adapters.hermes import register_memory_provider as register\n"
    (plugin / "__init__.py").write_text(line, encoding="utf-8")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    loader: Any = pytest.importorskip("plugins.memory")
    loaded = loader.load_memory_provider("selfpager")
    assert loaded.is_available()
    loaded.initialize("one", hermes_home=str(tmp_path), platform="cli")
    yield loaded
    loaded.shutdown()


def call(provider: Any, name: str, **arguments: str) -> Any:
    return json.loads(provider.handle_tool_call(name, arguments))


def test_what_was_said_in_a_session_helps_in_the_next(provider: Any) -> None:
    provider.sync_turn("my giraffe is called Melman", "A fine name.")
    provider.on_session_switch("two")
    assert "my giraffe is called Melman" in provider.prefetch("how is my giraffe called?")
    assert provider.prefetch("hello!") == ""
    provider.sync_turn("bye", "Bye.", session_id="three")
    memory = provider._memory
    assert [each.name for each in memory.inspect.sessions("hermes/")] == ["hermes/one", "hermes/three"]


def test_the_tools_store_search_and_end_facts(provider: Any) -> None:
    assert {each["name"] for each in provider.get_tool_schemas()} == set(hermes.TOOLS)
    assert call(provider, "selfpager_store", text="prefers window seats", key="seat")["stored"] == "f1"
    assert call(provider, "selfpager_store", text="prefers aisle seats", key="seat")["supersedes"] == "f1"
    assert call(provider, "selfpager_search", query="which seats?")["found"][0]["text"] == "prefers aisle seats"
    assert call(provider, "selfpager_forget", id="f2", reason="it was a joke") == {"ended": "f2"}
    assert "error" in call(provider, "selfpager_forget", id="f9", reason="nothing")
    assert "error" in call(provider, "selfpager_search")
    provider.on_memory_write("add", "user", "has two cats")
    assert [use.fact.text for use in provider._memory.inspect.facts("current").rows] == ["has two cats"]


def test_a_helper_s_turns_are_not_stored(provider: Any) -> None:
    provider.initialize("helper", hermes_home="unused", agent_context="subagent")
    provider.sync_turn("a prompt of a schedule", "done")
    assert provider._memory.inspect.sessions() == []


def test_it_registers_itself_as_hermes_asks() -> None:
    given: list[Any] = []
    hermes.register_memory_provider(SimpleNamespace(register_memory_provider=given.append))
    assert [each.name for each in given] == ["selfpager"]
