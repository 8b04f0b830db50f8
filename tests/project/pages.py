"""README and the pages of docs/ as their tests read them: blocks, files in blocks, lines of commands."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
README, DOCS = ROOT / "README.md", ROOT / "docs"

# Everything on the pages that is not run, and why. A key is a page, and the first line of a block or a command's line.
FRAMEWORK = "its framework is not here: tests/adapters/test_docs.py runs it in the environments of `make judges`"
NO_POSTGRES = "there is no Postgres here; tests/log runs these commands on one"
OPERATED = "needs a Postgres: tests/log/test_operations.py has one"
SERVED = "needs a running server: tests/serve/test_docs.py has one"
NOT_RUN: dict[tuple[str, str], str] = {
    ("docs/serve.md", "# make an agent, once"): SERVED,
    ("docs/serve.md", "# a client in Python"): SERVED,
    ("docs/serve.md", "export URL=http://127.0.0.1:8300 KEY=sp_..."): SERVED,
    ("docs/serve.md", "// a client in TypeScript"): SERVED,
    ("docs/serve.md", "# the Anthropic SDK in Python"): SERVED,
    (
        "docs/serve.md",
        "// the Anthropic SDK in TypeScript",
    ): "needs npm; it was run by hand, with @anthropic-ai/sdk 1.10",
    ("docs/frameworks/langgraph.md", "from langgraph.graph import START, MessagesState, StateGraph"): FRAMEWORK,
    ("docs/frameworks/claude-agent-sdk.md", "from claude_agent_sdk import ClaudeAgentOptions"): FRAMEWORK,
    ("docs/frameworks/openai-agents.md", "from agents import Agent, RunConfig, Runner"): FRAMEWORK,
    ("docs/frameworks/pydantic-ai.md", "import asyncio"): FRAMEWORK,
    ("docs/frameworks/pydantic-ai-conversations.md", "import asyncio"): FRAMEWORK,
    ("docs/frameworks/hermes.md", "from pager.adapters.hermes import register_memory_provider as register"): FRAMEWORK,
    ("docs/messages-front.md", "from anthropic import Anthropic"): "needs a server; see tests/serve/test_messages.py",
    ("docs/frameworks/hermes.md", "memory:"): "a file of Hermes, not of an agent",
    ("docs/operations.md", "# a standby: on its machine"): OPERATED,
    ("docs/operations.md", "# an address of both"): OPERATED,
    ("docs/operations.md", "# the primary is gone: on the machine of the standby"): OPERATED,
    ("docs/operations.md", "# a dump"): OPERATED,
    ("docs/operations.md", "# a copy, and all that is written from then on"): OPERATED,
    ("docs/operations.md", "# as it was at $MOMENT, from the copy"): OPERATED,
    ("docs/operations.md", "# who waits, who is late, what is large"): OPERATED,
    ("docs/fleet.md", "createdb selfpager"): NO_POSTGRES,
    ("docs/fleet.md", "selfpager export assistant a.db --home ./state"): "there is no such agent",
    ("docs/fleet.md", "selfpager restore assistant --at 2026-05-03T14:30+02:00 --as assistant-before"): NO_POSTGRES,
    ("docs/fleet.md", "pip install 'selfpager[encryption]'                    # cryptography"): NO_POSTGRES,
    ("docs/fleet.md", 'selfpager restore assistant --at "2h ago" --as assistant-before'): NO_POSTGRES,
    (
        "docs/fleet.md",
        "selfpager import a.db --as assistant --home postgresql://ann@db.example/selfpager",
    ): NO_POSTGRES,
}

# Commands that go on until somebody ends them: their arguments are only checked.
ENDLESS = re.compile(r"selfpager (view|demo|serve|mcp \S+ .*--http|show .*--watch)\b")


@dataclass(frozen=True)
class Block:
    page: str
    kind: str
    text: str

    @property
    def file(self) -> str | None:
        """Its name, when it is a file: the first line says so."""
        named = re.match(r"# ([\w./-]+\.(?:py|yaml))\n", self.text)
        return named[1] if named else None

    @property
    def lines(self) -> list[str]:
        """Its commands, without remarks; a line that ends with a backslash goes on."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]

    def is_run(self, line: str | None = None) -> bool:
        return (self.page, line or self.text.splitlines()[0]) not in NOT_RUN


def pages() -> list[Path]:
    return [README, *sorted(path for path in DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```([\w{}]+)[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(re.findall(r"^\s*```", text, re.MULTILINE)) == 2 * len(found), page
    return [Block(name_of(page), kind, text) for kind, text in found]


def files(page: Path) -> dict[str, str]:
    """The files that the pages show, and those of this page before others of the same name."""
    every = [block for each in (*pages(), page) for block in blocks(each)]
    return {block.file: block.text for block in every if block.file}


def extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])
