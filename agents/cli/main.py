"""`selfpager`: the group of commands, what they share, and the one place that turns errors into exit codes.

Exit 0 done, 1 failed, 2 usage or configuration, 3 stopped at a limit, 130 interrupted; after the last two the work
resumes. Errors go to stderr in a sentence; `--debug` shows where they came from.
"""

from __future__ import annotations

import importlib
import io
import sys
import traceback

import click

from agents.cli.common import DEBUG_LOG, DONE, FAILED, INTERRUPTED, USAGE, Shared, common
from agents.cli.visible import harmless
from agents.config.errors import ConfigError
from agents.logs import log
from pager.errors import PagerError

COMMANDS = {  # command -> (module, what it does)
    "demo": ("agents.cli.demo", "The whole story offline: no key, no network, real machinery."),
    "chat": ("agents.cli.chat", "A conversation that remembers, also over restarts."),
    "run": ("agents.cli.run", "A long task with progress; --resume after any end."),
    "tell": ("agents.cli.tell", "A message to a running agent, taken at its next step."),
    "show": ("agents.cli.show", "The tiers of an agent in the terminal."),
    "view": ("agents.cli.view", "The debug view in a browser."),
    "trace": ("agents.cli.trace", "Where a text has been: written, moved, evicted, searched."),
    "check": ("agents.cli.upkeep", "Look over laws and files, both stores; --fix mends."),
    "validate": ("agents.cli.configs", "Check an agent's YAML, with places."),
    "render": ("agents.cli.configs", "Show an agent's configuration as resolved."),
    "schema": ("agents.cli.configs", "Print the JSON schema of the YAML, for editors."),
    "export": ("agents.cli.upkeep", "Copy an agent, also a running one, into a file."),
    "import": ("agents.cli.upkeep", "Bring back an exported agent, or take conversations and notes."),
    "mcp": ("agents.cli.mcp", "Serve an agent's memory to any MCP client."),
    "purge": ("agents.cli.upkeep", "Destroy a fact or a step: no file keeps its text."),
}


HALVES = "surrogateescape"  # bytes that are no UTF-8 come in as halves of characters, which the memory replaces
COMPLETION = """\b
The Tab key completes commands, agents and files, with this line in your shell's configuration:
  bash  eval "$(_SELFPAGER_COMPLETE=bash_source selfpager)"
  zsh   eval "$(_SELFPAGER_COMPLETE=zsh_source selfpager)"
  fish  _SELFPAGER_COMPLETE=fish_source selfpager | source
"""


class LazyGroup(click.Group):
    """Commands whose modules are imported when they run: `--help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        return getattr(module, f"{cmd_name}_command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]):
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], list(COMMANDS), n=1) if args else []
            raise click.UsageError(f"{error.message} Did you mean '{near[0]}'?" if near else error.message) from None


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=COMPLETION,
)
@common
@click.version_option(package_name="selfpager")
def cli() -> None:
    """An agent whose memory works like an operating system's.

    \b
    Start here:
      selfpager demo                          the whole story offline, in half a minute
      selfpager chat configs/assistant.yaml   talk to one that remembers
      selfpager show assistant                what it remembers
      selfpager view                          the same in a browser, live
      selfpager trace assistant "my seat"     why it does or does not know that
    """


def main() -> None:
    """The console script."""
    for stream, errors in ((sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace"), (sys.stdin, HALVES)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)  # what is no text ends no conversation
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command line; its exit code."""
    shared = Shared()
    try:
        code = cli.main(arguments, prog_name="selfpager", standalone_mode=False, obj=shared)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; what was done is on disk and the work resumes.", err=True)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one place that turns an error into a sentence and a code
        return _failed(error, debug=shared.debug)
    finally:
        log.removeHandler(DEBUG_LOG)
    return code if isinstance(code, int) else DONE


def _failed(error: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    if isinstance(error, PagerError):
        click.echo(harmless(f"selfpager: {error}"), err=True)
    else:
        click.echo(harmless(f"selfpager: {type(error).__name__}: {error} (--debug shows where)"), err=True)
    return USAGE if isinstance(error, ConfigError) else FAILED
