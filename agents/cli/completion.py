"""What the Tab key offers after a command: the names of agents, and YAML files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pager.errors import RejectedError
from pager.home import Home

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SUFFIXES = (".yaml", ".yml")


class AgentName(click.types.StringParamType):
    """The name of an agent. The command finds out if it exists."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            Home(".").files(value)
        except RejectedError as refused:
            self.fail(str(refused), param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        home = Home.locate(ctx.obj.home_path if ctx.obj else None)
        return [CompletionItem(name) for name in home.names() if name.startswith(incomplete)]


class AgentFile(click.Path):
    """A YAML file, here or one folder further down. Without any the shell offers what it would by itself."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = sorted(_files(incomplete))
        return [CompletionItem(path) for path in found] or [CompletionItem(incomplete, type="file")]


def _files(incomplete: str) -> Iterator[str]:
    folder, slash, beginning = incomplete.rpartition("/")
    for path in _inside(Path(f"{folder}{slash}" or ".")):
        if not path.name.startswith(beginning) or (path.name.startswith(".") and not beginning):
            continue
        if path.is_dir():
            yield from (f"{folder}{slash}{path.name}/{file.name}" for file in _inside(path) if _is_yaml(file))
        elif _is_yaml(path):
            yield f"{folder}{slash}{path.name}"


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_yaml(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.is_file()
