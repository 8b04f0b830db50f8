"""What every command shares: exit codes, `--home` and `--debug`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

DONE, FAILED, USAGE, LIMIT, INTERRUPTED = 0, 1, 2, 3, 130
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(slots=True)
class Shared:
    """What was said before or behind the command's name."""

    home: Path | None = None
    debug: bool = False


def common(function: Function) -> Function:
    """The options that stand on every command, and on `selfpager` itself."""
    home = click.option(
        "--home",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=_set_home,
        help="Where agents live. Default: $SELFPAGER_HOME, or your data directory.",
    )
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show where an error came from."
    )
    return home(debug(function))


def _set_home(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.ensure_object(Shared).home = value


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Shared).debug = True
