"""An agent with `memory.tools: anthropic`: the provider's memory tool, over the same tiers, on the strict stand-in."""

from pathlib import Path

import pytest

from pager import Limits, Memory, markup
from pager.memory_tool.files import DEFINITION
from tests.standin import Reply, Standin, call
from tests.support.stage import Stage, results, stage_in

MEMORY = "memory: {tools: anthropic}\ncore: {blocks: {human: {limit_tokens: 200}}}\n"


def test_the_request_holds_the_providers_definition_and_says_how_files_work(stage: Stage) -> None:
    create = {"command": "create", "path": "/memories/core/human.md", "file_text": "Dana"}
    commands = (create, {"command": "view", "path": "/etc/passwd"}, {"command": "fly"})
    stage.says(Reply(*(call("memory", command) for command in commands)), "Noted.")
    with stage.load(MEMORY, window=30_000) as agent:
        assert agent.turn("I am Dana.").text == "Noted."
        assert [block.value for block in agent.memory.core()] == ["Dana"]
        assert [move.actor for move in agent.memory.ledger(events=["core"])][-1] == "agent"
    first = stage.requests[0]
    assert first["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert first["system"][0]["text"] == markup.HOW_MEMORY_FILES_WORK
    assert results(stage.last) == [
        ("File created successfully at: /memories/core/human.md", False),
        ("Path must start with /memories, got: /etc/passwd", True),
        ("Unknown command: 'fly'. There are: view, create, str_replace, insert, delete, rename.", True),
    ]


@pytest.mark.parametrize("counts", [True, False])
def test_the_window_holds_although_the_providers_definition_is_not_seen(tmp_path: Path, counts: bool) -> None:
    with stage_in(tmp_path, Standin(limit_tokens=9_000)) as stage:
        limits = Limits.for_window(9_000, max_output_tokens=500)
        counter = stage.model().count_tokens if counts else None
        with Memory.open(
            tmp_path / "m", limits=limits, tools=[DEFINITION], embedder=None, model="m",
            count_tokens=counter,
        ) as memory:  # fmt: skip
            for number in range(60):
                memory.append_user(f"{number} 語 8271 " * 40)
                memory.append_assistant(stage.service.api.create({"model": "m", **memory.request().params}))
            assert memory.ledger(events=["evict"])
        stage.assert_over()
