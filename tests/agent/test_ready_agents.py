"""The agents that come along do what their comments say, with a scripted model."""

from pathlib import Path

import pytest

from agents.agent import Agent
from agents.testing import Reply, ScriptedServer, call

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.slow
def test_the_researcher_reads_the_proposals_and_recommends_one(tmp_path: Path) -> None:
    with ScriptedServer() as model:
        model.script(
            call("core_append", block="plan", text="- [ ] read notes/\n- [ ] compare the costs in december"),
            call("list_files", path="notes"),
            Reply(*(call("read_file", path=f"notes/proposal-{letter}.md") for letter in "abc")),
            call("archive", text="Quickcart allows 25,000 orders; December had 31,000 (notes/proposal-c.md)."),
            call("core_replace", block="plan", old_text="[ ] read notes/", new_text="[x] read notes/"),
            call("task_done", summary="Kessler: what it costs does not depend on the orders."),
        )
        environ = {"ANTHROPIC_BASE_URL": model.base_url, "ANTHROPIC_API_KEY": "none"}
        file = CONFIGS / "researcher.yaml"
        with Agent.load(file, home=tmp_path, environ=environ, task=True) as agent:
            outcome = agent.run("Compare the three proposals in notes/ and recommend one.")
            assert outcome.stopped.reason == "done"
            said = str([request["messages"] for request in model.requests])
            assert all(words in said for words in ("proposal-b.md", "31,000 euros once", "Quickcart"))
            [fact] = agent.memory.inspect.newest_facts()
            assert any(name.startswith("file:") for name in fact.via)
