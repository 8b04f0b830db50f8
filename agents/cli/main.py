"""`selfpager`: the group of commands, and the one place that turns errors into exit codes.

Exit 0 done, 1 failed, 2 usage or configuration, 3 stopped at a limit, 130 interrupted. After 3 and 130 the work
can be resumed. An error is a sentence on stderr; `--debug` shows its traceback.
"""

import importlib
import io
import sys
import traceback

import click

from agents.cli.common import AS_HELP, DEBUG_LOG, DONE, FAILED, HOME_HELP, INTERRUPTED, USAGE, Shared, shared_options
from agents.cli.visible import say
from agents.config.errors import ConfigError
from agents.logs import log
from pager.errors import PagerError
from pager.safety.redaction import redacted

COMMANDS = {  # command -> (module, what it does)
    "demo": ("agents.cli.demo", "Watch everything at work, offline and without a key."),
    "init": ("agents.cli.init", "Write the YAML file of a first agent."),
    "chat": ("agents.cli.chat", "Talk to an agent that remembers, across restarts."),
    "run": ("agents.cli.run", "Work on a long task; --resume continues after any stop."),
    "tell": ("agents.cli.upkeep", "Send a message to a running agent."),
    "list": ("agents.cli.listing", "List your agents: what they are doing, know and cost."),
    "show": ("agents.cli.show", "Show what an agent remembers, in the terminal."),
    "view": ("agents.cli.show", "Show all agents in a browser, live."),
    "serve": ("agents.cli.serve", "Serve your agents over HTTP; what was begun goes on by itself."),
    "keys": ("agents.cli.keys", "Make, list and end keys of the HTTP API."),
    "trace": ("agents.cli.show", "Follow a text: written, moved, evicted, searched for."),
    "search": ("agents.cli.show", "Search what was stored and said, as the agent would."),
    "facts": ("agents.cli.listing", "List the facts that an agent has stored."),
    "check": ("agents.cli.upkeep", "Check an agent's files; --fix repairs them."),
    "validate": ("agents.cli.configs", "Check the YAML file of an agent."),
    "tools": ("agents.cli.init", "List an agent's own tools, or run one without a model."),
    "render": ("agents.cli.configs", "Show the YAML of an agent with everything resolved."),
    "schema": ("agents.cli.configs", "Print the JSON schema of the YAML, for editors."),
    "export": ("agents.cli.upkeep", "Copy an agent, even a running one, into a file."),
    "import": ("agents.cli.upkeep", "Bring back an exported agent, or import conversations and notes."),
    "mcp": ("agents.cli.show", "Serve an agent's memory to any MCP client."),
    "sleep": ("agents.cli.sleep", "Tidy a memory: see what is proposed, apply it, undo it."),
    "forget": ("agents.cli.forget", "End a fact, or take back what came from a source."),
    "purge": ("agents.cli.upkeep", "Destroy a fact or a step: no file keeps its text."),
    "erase": ("agents.cli.past", "Destroy an agent, and its key."),
    "restore": ("agents.cli.past", "Make another agent of one as it was at a time."),
    "rekey": ("agents.cli.past", "Change the keys of encrypted agents."),
}
COMPLETION = """\b
The Tab key completes commands, agents and files. Add this line to your shell's configuration:
  bash  eval "$(_SELFPAGER_COMPLETE=bash_source selfpager)"
  zsh   eval "$(_SELFPAGER_COMPLETE=zsh_source selfpager)"
  fish  _SELFPAGER_COMPLETE=fish_source selfpager | source
"""


class LazyGroup(click.Group):
    """Imports the module of a command when it runs, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, about = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), f"{cmd_name}_command")
        command.short_help = about
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    commands={name: click.Command(name) for name in COMMANDS},  # their names, for what looks like one of them
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=COMPLETION,
)
@click.version_option(package_name="selfpager")
def cli() -> None:
    """An agent whose memory works like an operating system's.

    \b
    Start here:
      selfpager demo                    watch everything at work, offline
      selfpager init                    write the file of a first agent, agent.yaml
      selfpager chat agent.yaml         talk to it; it remembers
      selfpager list                    see your agents
      selfpager view                    see what they remember, in a browser, live
      selfpager trace agent "my seat"   learn why it does or does not know something
    """  # noqa: D401 - the help of the program


cli.params += shared_options(HOME_HELP, AS_HELP)


def main() -> None:
    """Run the console script."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # bytes that are no text end no conversation
            stream.reconfigure(errors="surrogateescape" if stream is sys.stdin else "backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command line. Return its exit code."""
    shared = Shared()
    try:
        code = cli.main(arguments, prog_name="selfpager", standalone_mode=False, obj=shared)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        usage = io.StringIO()
        error.show(usage)
        say(usage.getvalue(), err=True, nl=False)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        say("interrupted; everything done so far is saved. A turn or a task can be resumed.", err=True)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one place that turns an error into a sentence and a code
        if shared.debug:
            say(redacted("".join(traceback.format_exception(error))), err=True, nl=False)
        text = str(error) if isinstance(error, PagerError) else f"{type(error).__name__}: {error} (--debug shows where)"
        say(f"selfpager: {text}", err=True)
        return USAGE if isinstance(error, ConfigError) else FAILED
    finally:
        log.removeHandler(DEBUG_LOG)
    return code if isinstance(code, int) else DONE
