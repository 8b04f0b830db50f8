"""Skills: folders with a SKILL.md, which has a name and a description in its front matter.

The text behind the front matter is a page of the memory. Other files in the folder stay files; the page says where they
are. A folder that cannot be used is a problem with its place.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agents.config.agent_config import AgentConfig
from agents.config.errors import ConfigError, ConfigPlace, ConfigProblem
from agents.config.tool_sections import FilesTool, ShellTool
from agents.config.yaml_file import Document, read_front_matter
from pager import SkillSpec
from pager.errors import brief

FILE = "SKILL.md"


def load(config: AgentConfig) -> list[SkillSpec]:
    """Return the skills that the configuration names, by their folders' names. Raise ConfigError with all problems."""
    if config.skills is None:
        return []
    place = config.place("skills")
    directory = place.file.parent / config.skills
    if not directory.is_dir():
        why = f"there is no directory {directory}. Create it, with a folder for each skill, or correct the path."
        raise ConfigError([ConfigProblem(place, f"skills: {why}")])
    problems, found, files = list[ConfigProblem](), list[SkillSpec](), dict[str, Path]()
    for folder in sorted(each for each in directory.iterdir() if each.is_dir() and each.name[:1] not in "._"):
        try:
            skill = _read(folder, _reachable_from(config))
        except ConfigError as error:
            problems += error.problems
            continue
        if other := files.get(skill.name):
            mistake = f"the name {skill.name!r} is that of {other} already. Give each skill a name of its own."
            problems.append(ConfigProblem(ConfigPlace(folder / FILE, 1, 1), mistake))
        files[skill.name] = folder / FILE
        found.append(skill)
    if problems:
        raise ConfigError(problems)
    return found


def _read(folder: Path, roots: Sequence[Path]) -> SkillSpec:
    document, text = read_front_matter(folder / FILE)
    name, description = _text_of(document, "name"), _text_of(document, "description")
    spec = SkillSpec(name, description, text.strip() and text.strip() + _beside(folder, roots))
    if fault := spec.fault:
        part, mistake = fault
        place = document.at(part).value if part in document.data else ConfigPlace(folder / FILE)
        raise ConfigError([ConfigProblem(place, mistake)])
    return spec


def _text_of(document: Document, key: str) -> str:
    value: Any = document.data.get(key)
    if not isinstance(value, str) or not value.strip():
        what = f"has the {key} {brief(value, 80)}, which is no text" if value is not None else f"has no {key}"
        place = document.at(key) if key in document.data else document.at()
        raise ConfigError([ConfigProblem(place.value, f"the skill {what}. Write '{key}: ...' into its front matter.")])
    return " ".join(value.split())


def _beside(folder: Path, roots: Iterable[Path]) -> str:
    """Return where the other files of a skill are, as the agent's own tools call that place; "" if it has none."""
    if not any(each.name != FILE for each in folder.iterdir()):
        return ""
    path = folder.resolve()
    inside = (str(path.relative_to(root)) for root in roots if path.is_relative_to(root))
    return f"\n\nMore files of this skill are in {next(inside, path)}."


def _reachable_from(config: AgentConfig) -> list[Path]:
    """Return the directories from which the agent's tools name files."""
    roots = list[Path]()
    for number, tool in enumerate(config.tools):
        if isinstance(tool, FilesTool | ShellTool):
            named = tool.root if isinstance(tool, FilesTool) else tool.directory
            roots.append((config.place("tools", number, tool.kind).file.parent / named).resolve())
    return roots
