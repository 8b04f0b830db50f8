"""`selfpager chat AGENT.yaml`: a conversation, streamed, that goes on after a restart."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Generator
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path

import click

from agents.agent import Agent
from agents.cli.common import DONE, FAILED, INTERRUPTED, STOPPED, Shared, common
from agents.cli.completion import AgentFile
from agents.cli.terminal import Printer, stopped_gently
from agents.events import Event
from agents.importing import importer as history
from pager.errors import PagerError

END = frozenset({"/quit", "/exit"})


@click.command("chat", short_help="A conversation that remembers, also over restarts.")
@click.argument("file", metavar="AGENT.yaml", type=AgentFile())
@click.option("--history", "history_file", type=click.Path(path_type=Path), help="A conversation to remember, as JSON.")
@click.option("--json", "json_lines", is_flag=True, help="Print each event as a line of JSON.")
@click.option("--quiet", is_flag=True, help="Only the answers, not what moves in the memory.")
@common
@click.pass_obj
def chat_command(
    shared: Shared,
    file: Path,
    history_file: Path | None,
    json_lines: bool,
    quiet: bool,
) -> int:
    """Talk to the agent in AGENT.yaml. It remembers what was said, also over restarts.

    Type a message and press Enter; /quit or Ctrl-D ends. Without a terminal each line of the input is a message.
    Ctrl-C once stops the turn at its next step, twice at once; your next message goes on from there.
    """
    printer = Printer(json_lines=json_lines, quiet=quiet)
    with Agent.load(file, home=shared.home_path, as_name=shared.as_name, approve=printer.ask) as agent:
        for remark in agent.remarks:
            printer.note(remark)
        if history_file:
            printer.note(f"{history.take(agent.memory, history_file)} turns were taken from {history_file}")
            agent.background.wake()
        printer.embedding(agent.background)
        code = DONE
        if agent.memory.turn_is_open:
            printer.note("going on with the turn that was open")
            code = _turn(agent, printer, agent.resume_stream(), debug=shared.debug)
        return _talk(agent, printer, code, debug=shared.debug)


def _talk(agent: Agent, printer: Printer, code: int, *, debug: bool) -> int:
    """How the last turn ended is how the conversation did."""
    while (line := _read()) is not None:
        if line.strip() in END:
            break
        if not line.strip():
            continue
        code = _turn(agent, printer, agent.stream(line), debug=debug)
    return code


def _turn(agent: Agent, printer: Printer, events: Generator[Event], *, debug: bool) -> int:
    """One turn. However it ends, it is on disk: the next message, or the next start, goes on from there."""
    try:
        with closing(events), stopped_gently(agent):
            stopped = printer.show(events)
        printer.embedding(agent.background)
    except PagerError as error:
        if debug:
            traceback.print_exception(error)
        printer.error(str(error))
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        printer.error("interrupted; the turn is on disk and goes on with your next message")
        return INTERRUPTED
    if stopped.reason != "answered" and not printer.json_lines:
        printer.error(f"stopped ({stopped.reason}): {stopped.text}")
    return STOPPED[stopped.reason]


def _read() -> str | None:
    if sys.stdin.isatty():
        with suppress(ImportError):  # it is not on every system
            import_module("readline")  # what is typed can be edited then, and be longer than a terminal's line
        try:
            return click.prompt("you", prompt_suffix="> ", default="", show_default=False)
        except (click.Abort, EOFError):
            return None
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
