"""What no built-in tool writes: files that say what the agent is, what runs as its tools, and where its memory is."""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from agents.config.agent_config import AgentConfig
from agents.config.tool_sections import FunctionTool

_MODULES = frozenset({".py", ".pyc", ".pyd", ".so", ".pth"})
_DESCRIBES = "it describes this agent"
_IN_GIT = "it belongs to git, whose settings and hooks run commands"


@dataclass(frozen=True, slots=True)
class Protected:
    """Paths that are not written, with what is below them, each with the reason."""

    paths: Mapping[Path, str]
    module_folders: frozenset[Path] = frozenset()  # Python in there may be imported when the agent is opened
    memory: Path | None = None  # where the agent's memory is

    def reason(self, path: Path) -> str:
        """Return why an absolute path without links is not written; empty if it may be."""
        if any(part.casefold() == ".git" for part in path.parts):
            return _IN_GIT
        above = {_plain(each) for each in (path, *path.parents)}
        for each, why in self.paths.items():
            if _plain(each) in above:
                return why
        if path.suffix.casefold() in _MODULES and any(_plain(each) in above for each in self.module_folders):
            return "the modules of this agent's tools are imported from there"
        return ""

    def files(self) -> list[Path]:
        """Return the protected paths, and the modules that are there."""
        modules = [each for folder in self.module_folders for each in folder.iterdir() if each.suffix in _MODULES]
        return [*self.paths, *modules]

    def memories(self) -> list[Path]:
        """Return where this agent's memory is, and those of the agents beside it."""
        if self.memory is None:
            return []
        beside = self.memory.parent.iterdir() if self.memory.parent.is_dir() else ()
        return [self.memory, *(each for each in beside if (each / "pager.db").exists())]


def protected_by(config: AgentConfig, directory: Path | None) -> Protected:
    """Return what the tools of an agent do not write. `directory` is where its memory is. What an agent is that works
    with it, as a helper or as the one that it helps, is not written either."""
    paths, folders = dict[Path, str](), set[Path]()
    for agent in config.team:
        paths |= dict.fromkeys(_describing(agent), f"it describes {agent.name}, which works with this agent")
        paths |= {Path(block.file): "a core block shows it" for block in agent.core.blocks.values() if block.file}
        folders |= {
            agent.place("tools", number, tool.kind).file.parent.resolve()
            for number, tool in enumerate(agent.tools)
            if isinstance(tool, FunctionTool)
        }
    paths |= dict.fromkeys(_describing(config), _DESCRIBES)
    if directory:
        paths[directory] = "the agent's memory is in there"
    return Protected({path.resolve(): why for path, why in paths.items()}, frozenset(folders), directory)


def _describing(config: AgentConfig) -> Iterator[Path]:
    """Yield what describes an agent: its YAML files, and what they name."""
    yield from config.files
    for steps in (("skills",), ("output",), ("model", "script")):
        value = reduce(lambda section, key: getattr(section, key, None), steps, config)
        if isinstance(value, str):
            yield config.place(*steps).file.parent / value


def _plain(path: Path) -> str:
    """Return a path so that what some file systems take for the same is the same."""
    return unicodedata.normalize("NFC", str(path)).casefold()
