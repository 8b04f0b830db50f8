"""Shared by all commands: exit codes, arguments, and the options `--home`, `--as` and `--debug`.

Each command lists those of the three that it takes. Before the command's name all of them may stand.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agents.cli.visible import say
from agents.logs import log
from pager.errors import InUseError, RejectedError
from pager.home import Home, Place, check_name
from pager.safety.redaction import redacted
from pager.types import OF_TENANT

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

DONE, FAILED, USAGE, LIMIT, INTERRUPTED = 0, 1, 2, 3, 130
STOPPED = {"answered": DONE, "done": DONE, "failed": FAILED, "steps": LIMIT, "repeated": LIMIT, "usd": LIMIT,
           "minutes": LIMIT, "approval": LIMIT, "calls": LIMIT, "cancelled": INTERRUPTED, "cut": FAILED,
           "refused": FAILED}  # fmt: skip
COMPLETIONS = 1000  # agents that a shell offers
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(slots=True)
class Shared:
    """The values of the common options, given before or after the command's name."""

    home_address: str | None = None
    as_name: str | None = None
    debug: bool = False

    @property
    def home(self) -> Home:
        """Return the home that `--home` names, or the default one."""
        return Home.locate(self.home_address)

    def command(self, *words: str | Path) -> str:
        """Return a command line to copy, with the home and the instance that this one was given."""
        given = (("--home", self.home_address), ("--as", self.as_name))
        options = [word for name, value in given if value for word in (name, value)]
        return shlex.join(map(str, ["selfpager", *words, *options]))

    def existing(self, name: str) -> tuple[str, Place]:
        """Return the name of an agent that exists, where `--as` overrides NAME, and its place."""
        name = self.as_name or name
        return name, self.home.existing(name)

    @contextmanager
    def or_over_http(self, name: str, method: str, path: str = "") -> Generator[None]:
        """Let the error of an agent that is in use say how a `selfpager serve` that has it open does the same."""
        try:
            yield
        except InUseError as error:
            request = f"{method} /v1/agents/{name.rpartition(OF_TENANT)[2]}{path}"
            raise InUseError(f"{error} If that is `selfpager serve`, it does this, too: {request}") from None


class AgentName(click.types.StringParamType):
    """The name of an agent, which the Tab key completes. The command finds out if it exists."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: D102 - of click
        try:
            check_name(value)
        except RejectedError as error:
            self.fail(str(error), param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the agents whose names begin so."""
        from click.shell_completion import CompletionItem

        home = Home.locate(ctx.obj.home_address if ctx.obj else None)
        names = home.names(begin=incomplete, limit=COMPLETIONS)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


HOME_HELP = "The directory, or postgresql:// address, of all agents. Default: $SELFPAGER_HOME, or your data directory."
AS_HELP = "Another instance of the same agent, with a memory of its own."
IN_PLACE_HELP = "Another instance of the agent, in place of NAME."
PATH = click.Path(path_type=Path)
PORT = click.IntRange(0, 65535)
agent_name = click.argument("name", type=AgentName())
agent_file = click.argument("file", metavar="AGENT.yaml", type=PATH)
config_option = click.option(
    "--config", "file", metavar="AGENT.yaml", type=PATH,
    help="The agent's file, for an embedder of Chroma's or an index on a server: only a file can name them.",
)  # fmt: skip
IMPORT_HELP = "A file with earlier conversations to remember."
import_option = click.option("--import", "conversations", type=PATH, help=IMPORT_HELP)


def json_option(text: str) -> Callable[[Function], Function]:
    """Return the option `--json`, which the command gets as `as_line`."""
    return click.option("--json", "as_line", is_flag=True, help=text)


def command(
    name: str, *, home: str | None = HOME_HELP, as_name: str | None = IN_PLACE_HELP
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function, which gets `Shared` first and may return an exit code. Its own options come first.

    `home` and `as_name` are the help texts of `--home` and `--as`, or None for a command that does not take them.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        made = click.command(name)(click.pass_obj(function))
        made.params += shared_options(home, as_name)
        return made

    return decorate


def shared_options(home: str | None, as_name: str | None) -> list[click.Option]:
    """Return `--home` and `--as`, if there is a help text for them, and `--debug`."""
    shared: dict[str, Any] = {"expose_value": False, "callback": _set}
    options: list[click.Option] = []
    if home:
        options.append(click.Option(["--home", "home_address"], metavar="PLACE", help=home, **shared))
    if as_name:
        options.append(click.Option(["--as", "as_name"], type=AgentName(), metavar="NAME", help=as_name, **shared))
    text = "Show the traceback of an error, and the log."
    return [*options, click.Option(["--debug"], is_flag=True, help=text, **shared)]


def _set(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    if value:
        setattr(ctx.ensure_object(Shared), option.name or "", value)
        if option.name == "debug":
            log.addHandler(DEBUG_LOG)


class _OnStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(redacted(self.format(record)), err=True)


DEBUG_LOG = _OnStderr()
