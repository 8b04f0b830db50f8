"""The memory tool for the SDK's own tool runner: a program that used the SDK's local file tool changes one line."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types.beta import BetaMemoryTool20250818ViewCommand

from pager import BlockSpec, Memory
from pager.memory_tool.runner import AsyncTieredMemoryTool, TieredMemoryTool
from tests.standin import Reply, Standin, call
from tests.support.stage import Stage, stage_in

COMMANDS = [
    {"command": "create", "path": "/memories/archive/seat", "file_text": "aisle"},
    {"command": "view", "path": "/memories/archive/seat"},
    {"command": "delete", "path": "/memories/archive/hat"},
    {"command": "look"},
]
ANSWERS = [
    ("File created successfully at: /memories/archive/seat", False),
    ("Here's the content of /memories/archive/seat with line numbers:\n     1\taisle", False),
    ("The path /memories/archive/hat does not exist", True),
    ("Unknown command: 'look'. There are: view, create, str_replace, insert, delete, rename.", True),
]
REQUEST: dict[str, Any] = {
    "model": "m",
    "max_tokens": 1000,
    "thread": False,  # the stand-in stores no conversations
    "messages": [{"role": "user", "content": "An aisle seat, please."}],
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory", embedder=None, core={"human": BlockSpec()}) as memory:
        yield memory


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with stage_in(tmp_path, Standin(limit_tokens=60_000)) as stage:
        stage.says(*(Reply(call("memory", command)) for command in COMMANDS), "Noted.")
        yield stage
    stage.assert_over()


def answers(stage: Stage) -> list[tuple[str, bool]]:
    contents = [message["content"] for message in stage.requests[-1]["messages"] if message["role"] == "user"]
    results = [block for content in contents[1:] for block in content if block["type"] == "tool_result"]
    return [(_text(block["content"]), block.get("is_error", False)) for block in results]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@pytest.mark.slow
def test_the_sdks_runner_works_with_the_tiers(stage: Stage, memory: Memory) -> None:
    tool = TieredMemoryTool(memory, cache_control={"type": "ephemeral"})
    with Anthropic(base_url=stage.base_url, api_key="none") as client:
        final = client.beta.messages.tool_runner(**REQUEST, tools=[tool]).until_done()
    assert final is not None
    assert [block.text for block in final.content if block.type == "text"] == ["Noted."]
    definition = {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
    assert stage.requests[0]["tools"] == [definition]
    assert answers(stage) == ANSWERS
    assert memory.search_archive("seat aisle")[0].text == "aisle"


def test_the_async_runner_does_too(stage: Stage, memory: Memory) -> None:
    async def run() -> None:
        async with AsyncAnthropic(base_url=stage.base_url, api_key="none") as client:
            await client.beta.messages.tool_runner(**REQUEST, tools=[AsyncTieredMemoryTool(memory)]).until_done()

    asyncio.run(run())
    assert answers(stage) == ANSWERS
    assert memory.search_archive("seat aisle")[0].text == "aisle"


def test_a_typed_command_can_be_given_by_hand(memory: Memory) -> None:
    command = BetaMemoryTool20250818ViewCommand(command="view", path="/memories/core/human.md")
    expected = "Here's the content of /memories/core/human.md with line numbers:\n     1\t"
    assert TieredMemoryTool(memory).view(command) == expected
    assert asyncio.run(AsyncTieredMemoryTool(memory).execute(command)) == expected
