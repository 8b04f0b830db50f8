"""docs/frameworks: every Python block of a page is run in an empty folder, and prints what its comments promise.

A page whose framework is not here is left out; `make judges` has all of them. The block of openai-agents.md runs in
tests/judges/together.py: beside our own package `agents` it could not.
"""

import re
from pathlib import Path
from typing import Any

import pytest

FRAMEWORKS = Path(__file__).parents[2] / "docs" / "frameworks"
NEEDS = {
    "pydantic-ai-conversations": "pydantic_ai.conversation_store",
    "langgraph": "langgraph.graph", "claude-agent-sdk": "claude_agent_sdk",
    "pydantic-ai": "pydantic_ai_harness.memory", "mem0": "pager", "hermes": "agent.memory_provider",
}  # fmt: skip


@pytest.mark.parametrize("page", NEEDS)
def test_the_blocks_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(NEEDS[page])
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (FRAMEWORKS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, f"{page}.md", "exec"), names)
    printed = capsys.readouterr().out
    for promised in re.findall(r"^# -> (.*)$", "\n".join(blocks), re.MULTILINE):
        assert promised in printed


def test_every_page_is_listed() -> None:
    pages = {page.stem for page in FRAMEWORKS.glob("*.md")} - {"index"}
    index = (FRAMEWORKS / "index.md").read_text(encoding="utf-8")
    assert pages == {*NEEDS, "openai-agents"}
    assert all(f"({page}.md)" in index for page in pages)
