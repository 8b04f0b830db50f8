"""Shared by all commands: exit codes, and the options `--home`, `--as` and `--debug`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from agents.cli.completion import AgentName
from agents.logs import log
from pager.home import Home

DONE, FAILED, USAGE, LIMIT, INTERRUPTED = 0, 1, 2, 3, 130
STOPPED = {"answered": DONE, "done": DONE, "steps": LIMIT, "usd": LIMIT, "minutes": LIMIT, "approval": LIMIT,
           "cancelled": INTERRUPTED, "cut": FAILED, "refused": FAILED}  # fmt: skip
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(slots=True)
class Shared:
    """The values of the common options, given before or after the command's name."""

    home_path: Path | None = None
    as_name: str | None = None
    debug: bool = False

    @property
    def home(self) -> Home:
        """Return the home that `--home` names, or the default one."""
        return Home.locate(self.home_path)

    def existing(self, name: str) -> tuple[str, Path]:
        """Return the name of an agent that exists, where `--as` overrides NAME, and its directory."""
        name = self.as_name or name
        return name, self.home.existing(name).directory


def common(function: Function) -> Function:
    """Add the options that every command has, and `selfpager` itself."""
    home = click.option(
        "--home",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=_set_home,
        help="The directory of all agents. Default: $SELFPAGER_HOME, or your data directory.",
    )
    instance = click.option(
        "--as",
        type=AgentName(),
        metavar="NAME",
        expose_value=False,
        callback=_set_as,
        help="Another instance of the same agent, with a memory of its own.",
    )
    debug = click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_set_debug,
        help="Show the traceback of an error, and the log.",
    )
    return home(instance(debug(function)))


def _set_home(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.ensure_object(Shared).home_path = value


def _set_as(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Shared).as_name = value


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Shared).debug = True
        log.addHandler(DEBUG_LOG)


class _OnStderr(logging.Handler):
    """Prints the log in the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


DEBUG_LOG = _OnStderr()
