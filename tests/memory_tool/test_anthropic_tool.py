"""The memory tool for the SDK's own tool runner: a program that used the SDK's local file tool changes one line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic

from pager import BlockSpec, Memory
from pager.memory_tool.runner import AsyncTieredMemoryTool, TieredMemoryTool
from tests.standin import Reply, Standin, call
from tests.support.stage import Stage, results, stage_in

CREATE = {"command": "create", "path": "/memories/archive/seat", "file_text": "aisle"}
VIEW = {"command": "view", "path": "/memories/archive/seat"}
TOLD = [
    ("File created successfully at: /memories/archive/seat", False),
    ("Here's the content of /memories/archive/seat with line numbers:\n     1\taisle", False),
    ("The path /memories/archive/hat does not exist", True),
    ("Unknown command: 'look'. There are: view, create, str_replace, insert, delete, rename.", True),
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory", embedder=None, core={"human": BlockSpec()}) as memory:
        yield memory


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with stage_in(tmp_path, Standin(limit_tokens=60_000)) as stage:
        stage.says(
            Reply(call("memory", CREATE)),
            Reply(call("memory", VIEW)),
            Reply(call("memory", {"command": "delete", "path": "/memories/archive/hat"})),
            Reply(call("memory", {"command": "look"})),
            "Noted.",
        )
        yield stage
    stage.assert_over()


def told(stage: Stage) -> list[tuple[str, bool]]:
    messages = stage.requests[-1]["messages"]
    return [each for message in messages if message["role"] == "user" for each in _results(message["content"])]


def _results(content: Any) -> list[tuple[str, bool]]:
    if isinstance(content, str):
        return []
    parts = [{**each, "content": _blocks(each["content"])} for each in content if each["type"] == "tool_result"]
    return results(parts)


def _blocks(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def test_the_sdks_runner_works_with_the_tiers(stage: Stage, memory: Memory) -> None:
    with Anthropic(base_url=stage.base_url, api_key="none") as client:
        runner = client.beta.messages.tool_runner(
            model="m",
            max_tokens=1000,
            thread=False,  # the stand-in holds no conversations
            messages=[{"role": "user", "content": "An aisle seat, please."}],
            tools=[TieredMemoryTool(memory, cache_control={"type": "ephemeral"})],
        )
        final = runner.until_done()
    assert final is not None
    assert [block.text for block in final.content if block.type == "text"] == ["Noted."]
    tool = {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
    assert stage.requests[0]["tools"] == [tool]
    assert told(stage) == TOLD
    assert memory.search_archive("seat aisle")[0].text == "aisle"


def test_so_does_the_async_one(stage: Stage, memory: Memory) -> None:
    async def run() -> None:
        async with AsyncAnthropic(base_url=stage.base_url, api_key="none") as client:
            runner = client.beta.messages.tool_runner(
                model="m",
                max_tokens=1000,
                thread=False,  # the stand-in holds no conversations
                messages=[{"role": "user", "content": "An aisle seat, please."}],
                tools=[AsyncTieredMemoryTool(memory)],
            )
            await runner.until_done()

    asyncio.run(run())
    assert told(stage) == TOLD
    assert memory.search_archive("seat aisle")[0].text == "aisle"


def test_a_typed_command_can_be_given_by_hand(memory: Memory) -> None:
    from anthropic.types.beta import BetaMemoryTool20250818ViewCommand

    command = BetaMemoryTool20250818ViewCommand(command="view", path="/memories/core/human.md")
    expected = "Here's the content of /memories/core/human.md with line numbers:\n     1\t"
    assert TieredMemoryTool(memory).view(command) == expected
    assert asyncio.run(AsyncTieredMemoryTool(memory).execute(command)) == expected
