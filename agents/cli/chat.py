"""`selfpager chat AGENT.yaml`: a streamed conversation that continues after a restart."""

import sys
import traceback
from collections.abc import Generator
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path

import click

from agents.agent import Agent
from agents.cli.common import AS_HELP, DONE, FAILED, INTERRUPTED, STOPPED, Shared, agent_file, command, import_option
from agents.cli.terminal import Printer, begin, stopped_gently
from agents.cli.visible import say
from agents.events import Event
from pager.errors import PagerError

END = frozenset({"/quit", "/exit"})


@command("chat", as_name=AS_HELP)
@agent_file
@import_option
@click.option("--json", "json_lines", is_flag=True, help="Print each event as a line of JSON.")
@click.option("--quiet", is_flag=True, help="Print only the answers.")
def chat_command(shared: Shared, file: Path, conversations: Path | None, json_lines: bool, quiet: bool) -> int:
    """Talk to the agent in AGENT.yaml. It remembers what was said, across restarts.

    Type a message and press Enter; /quit or Ctrl-D ends. Without a terminal each line of the input is a message. The
    first Ctrl-C stops the turn at its next step, the second at once. Your next message goes on with the turn, but tool
    calls that have not run by then are not run. If you start chat again instead, they are.
    """
    printer = Printer(json_lines=json_lines, quiet=quiet)
    with Agent.load(file, home=shared.home_path, as_name=shared.as_name, approve=printer.ask) as agent:
        begin(agent, printer, conversations)
        code = DONE
        if agent.memory.turn_is_open:
            printer.print_dimmed("continuing the open turn")
            code = _turn(agent, printer, agent.resume_stream(), debug=shared.debug)
        while (line := _read()) is not None and line.strip() not in END:
            if line.strip():
                code = _turn(agent, printer, agent.stream(line), debug=shared.debug)
        return code


def _turn(agent: Agent, printer: Printer, events: Generator[Event], *, debug: bool) -> int:
    """Print one turn. It is saved however it ends. The next start or message goes on; a message skips open calls."""
    try:
        with closing(events), stopped_gently(agent):
            stopped = printer.show(events)
        printer.embedding(agent.background)
    except PagerError as error:
        if debug:
            say("".join(traceback.format_exception(error)), err=True, nl=False)
        printer.error(str(error))
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        printer.error("interrupted; the turn is saved and goes on with your next message")
        return INTERRUPTED
    if stopped.reason != "answered" and not printer.json_lines:
        printer.error(f"stopped ({stopped.reason}): {stopped.text}")
    return STOPPED[stopped.reason]


def _read() -> str | None:
    if sys.stdin.isatty():
        with suppress(ImportError):  # not on every system; with it the line can be edited, and be of any length
            import_module("readline")
        try:
            return click.prompt("you", prompt_suffix="> ", default="", show_default=False)
        except (click.Abort, EOFError):
            return None
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
