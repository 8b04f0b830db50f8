"""All frameworks and our memory in one environment: each is imported and used. Prints what was done."""

import asyncio
import importlib
import sys
import tempfile
from importlib.metadata import version
from typing import Any

from pager import Memory
from pager.adapters.claude_agent import PagerSessionStore
from pager.adapters.langgraph import PagerStore
from pager.adapters.mem0 import PagerMem0
from pager.adapters.openai_agents import PagerSession
from pager.adapters.pydantic_ai import PagerMemoryStore

FOREIGN = ("agents", "langgraph.graph", "pydantic_ai", "claude_agent_sdk", "mem0")
ITEM = {"role": "user", "content": "my giraffe is called Melman"}
ENTRY: Any = {"type": "user", "uuid": "u1", "message": {"content": "the giraffe lives in the barn"}}


def main() -> None:
    for name in FOREIGN:
        importlib.import_module(name)
    assert sys.modules["agents"].Agent.__module__ == "agents.agent" and hasattr(sys.modules["agents"], "Runner")
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        PagerStore(memory).put(("users", "dana"), "seat", {"text": "prefers window seats"})
        PagerMem0(memory).add("has two cats", user_id="dana", infer=False)
        asyncio.run(PagerMemoryStore(memory).write("dana/MEMORY.md", "allergic to peanuts", expected_version=None))
        asyncio.run(PagerSession("dana", memory).add_items([ITEM]))
        asyncio.run(PagerSessionStore(memory).append({"project_key": "p", "session_id": "s"}, [ENTRY]))
        found = memory.search("where does she like to sit?", limit=1)[0].text
        assert "window seats" in found, found
        assert {hit.text for hit in memory.search_recall("giraffe")} == {
            ITEM["content"],
            "the giraffe lives in the barn",
        }
    names = ("openai-agents", "langgraph", "pydantic-ai-slim", "claude-agent-sdk", "mem0ai", "selfpager-memory")
    print("works together:", ", ".join(f"{name} {version(name)}" for name in names))


if __name__ == "__main__":
    main()
