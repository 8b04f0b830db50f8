"""All frameworks and our memory in one environment: each is imported and used. Prints what was done."""

import asyncio
import importlib
import re
import sys
import tempfile
from contextlib import chdir
from importlib.metadata import version
from pathlib import Path
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
    assert hasattr(sys.modules["agents"], "Runner")  # the SDK's, not ours
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
    run_page(Path(__file__).parents[2] / "docs" / "frameworks" / "openai-agents.md")
    names = ("openai-agents", "langgraph", "pydantic-ai-slim", "claude-agent-sdk", "mem0ai", "selfpager-memory")
    print("works together:", ", ".join(f"{name} {version(name)}" for name in names))


def run_page(page: Path) -> None:
    """Run the example of the OpenAI Agents SDK, with a model that says what it found put in front of a message."""
    testing, types = (importlib.import_module(name) for name in ("agents.testing", "openai.types.responses"))
    model = testing.ScriptedModel()
    for text in ("A fine name.", "Melman"):
        said = [types.ResponseOutputText(text=text, type="output_text", annotations=[])]
        message = {"id": "1", "type": "message", "role": "assistant", "status": "completed", "content": said}
        model.enqueue([types.ResponseOutputMessage(**message)])
    [block] = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        exec(compile(block, page.name, "exec"), {"model": model})
    assert len(model.calls) == 2


if __name__ == "__main__":
    main()
