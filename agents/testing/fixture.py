"""The pytest fixture `scripted`, for tests of your own agents: no key, no network, every reply as you script it.

    def test_my_agent(scripted, tmp_path):
        scripted.script(call("lookup", order=17), "Order 17 is on its way.")
        with Agent.load("my_agent.yaml", home=tmp_path) as agent:
            assert "on its way" in agent.turn("Where is order 17?").text

It is a `ScriptedServer`. While the test runs, ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY lead there. An agent whose YAML
names another `base_url` needs `scripted.base_url` there. A mistake in the script fails the test.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agents.testing import ScriptedServer


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Generator[ScriptedServer]:
    """Return a running `ScriptedServer` that agents with `provider: anthropic` use."""
    from agents.testing.scripted_server import ScriptedServer  # pytest loads plugins at every start: keep that cheap

    with ScriptedServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield server
    if server.errors:
        raise server.errors[0]
