"""What no built-in tool writes: files that say what the agent is, what runs as its tools, and where its memory is."""

import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from pathlib import Path

from agents.config.agent_config import AgentConfig
from agents.config.field_types import FUNCTION_PATTERN
from agents.config.tool_sections import FunctionTool

_MODULES = frozenset({".py", ".pyc", ".pyd", ".so", ".pth"})
_CACHE = "__pycache__"
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
        """Return the protected paths, and the modules and packages that are there.

        Python believes a compiled module whose source has not changed. Where there is no cache yet, one is made: what
        is not there cannot be protected.
        """
        found = [*self.paths]
        for folder in self.module_folders:
            with suppress(OSError):
                (folder / _CACHE).mkdir(exist_ok=True)
            found += [each for each in _entries(folder) if each.suffix in _MODULES or _is_package(each)]
        return found

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
        for reference, folder in _functions(agent):
            folders |= {folder.resolve(), *_imported_from(reference)}
    paths |= dict.fromkeys(_describing(config), _DESCRIBES)
    if directory:
        paths[directory] = "the agent's memory is in there"
    return Protected({path.resolve(): why for path, why in paths.items()}, frozenset(folders), directory)


def _functions(config: AgentConfig) -> Iterator[tuple[str, Path]]:
    """Yield the functions and classes that an agent's YAML names, each with the folder of its file."""
    for number, tool in enumerate(config.tools):
        if isinstance(tool, FunctionTool):
            yield tool.use, config.place("tools", number, tool.kind).file.parent
    for value, place in ((config.output, ("output",)), (config.model.script, ("model", "script"))):
        if value and re.fullmatch(FUNCTION_PATTERN, value):
            yield value, config.place(*place).file.parent


def _imported_from(reference: str) -> list[Path]:
    """Return the directories of the package that a function is in; none for a module without a package."""
    try:
        spec = find_spec(reference.partition(":")[0].partition(".")[0])
    except (ImportError, ValueError):
        return []
    return [Path(each).resolve() for each in (spec and spec.submodule_search_locations) or ()]


def _is_package(path: Path) -> bool:
    """Return True if Python may import something from a directory."""
    if not path.is_dir() or path.name.startswith("."):
        return False
    return path.name == _CACHE or any(each.suffix in _MODULES for each in _entries(path)) or _is_imported(path)


def _is_imported(path: Path) -> bool:
    inside = f"{path}{os.sep}"
    return any(
        isinstance(found := getattr(module, "__file__", None), str) and found.startswith(inside)
        for module in [*sys.modules.values()]
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # it is gone, or not ours to read
        return []


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
