"""Built-in tools as an agent gets them from its YAML, and what they answer."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from agents.assembly import own_tools
from agents.config.agent_config import load
from agents.tools.functions import Tool, ToolCallError
from pager import RejectedError


class BuiltIns:
    """The tools of one entry under `tools`, in FOLDER/x.yaml. The agent's memory would be in FOLDER/home/x."""

    def __init__(self, folder: Path, tool: str, *, more: str = "", part_tokens: int = 2_000) -> None:
        self.file = folder / "x.yaml"
        self.file.write_text(f"name: x\ntools:\n  - {{{tool}}}\n{more}", encoding="utf-8")
        self.opened = ExitStack()
        config = load(self.file, {})
        made = own_tools(config, self.opened, directory=folder / "home" / "x", part_tokens=part_tokens)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in made}

    def __call__(self, name: str, **arguments: Any) -> str:
        """What a tool answers, also if it refuses."""
        return self.sourced(name, **arguments)[0]

    def sourced(self, name: str, **arguments: Any) -> tuple[str, Collection[str]]:
        """The same, with the sources of the answer."""
        try:
            output, sources = self.tools[name].run_limited(arguments)
        except (ToolCallError, RejectedError) as error:
            return f"refused: {error}", ()
        assert isinstance(output, str)
        return output, sources
