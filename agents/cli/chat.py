"""`selfpager chat AGENT.yaml`: a conversation, streamed, that goes on after a restart."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from agents import history
from agents.agent import Agent
from agents.cli.common import FAILED, INTERRUPTED, Shared, common
from agents.cli.completion import AgentFile
from agents.cli.terminal import Printer, ask_approval
from pager.errors import PagerError

END = frozenset({"/quit", "/exit"})


@click.command("chat", short_help="A conversation that remembers, also over restarts.")
@click.argument("file", metavar="AGENT.yaml", type=AgentFile())
@click.option("--as", "as_name", metavar="NAME", help="Another instance of the same agent, with a memory of its own.")
@click.option("--history", "history_file", type=click.Path(path_type=Path), help="Turns to remember, as JSON lines.")
@click.option("--json", "json_lines", is_flag=True, help="Print each event as a line of JSON.")
@click.option("--quiet", is_flag=True, help="Only the answers, not what moves in the memory.")
@common
@click.pass_obj
def chat_command(
    shared: Shared,
    file: Path,
    as_name: str | None,
    history_file: Path | None,
    json_lines: bool,
    quiet: bool,
) -> int:
    """Talk to the agent in AGENT.yaml. It remembers what was said, also over restarts.

    Type a message and press Enter; /quit or Ctrl-D ends. Without a terminal each line of the input is a message.
    """
    printer = Printer(json_lines=json_lines, quiet=quiet)
    with Agent.load(file, home=shared.home, as_name=as_name, approve=ask_approval) as agent:
        for remark in agent.remarks:
            printer.note(remark)
        if history_file:
            printer.note(f"{history.take(agent.memory, history_file)} turns were taken from {history_file}")
        if agent.memory.turn_is_open:
            printer.note("going on with the turn that was open")
            printer.show(agent.resume_stream())
        return _talk(agent, printer)


def _talk(agent: Agent, printer: Printer) -> int:
    code = 0
    while (line := _read()) is not None:
        if line.strip() in END:
            break
        if not line.strip():
            continue
        try:
            printer.show(agent.stream(line))
            code = 0
        except PagerError as error:
            # The turn stays open and on disk: the next message, or the next start, goes on with it.
            printer.note(str(error), error=True)
            code = FAILED
        except KeyboardInterrupt:
            printer.note("interrupted; the turn is on disk and goes on with your next message")
            code = INTERRUPTED
    return code


def _read() -> str | None:
    if sys.stdin.isatty():
        try:
            return click.prompt("you", prompt_suffix="> ", default="", show_default=False)
        except (click.Abort, EOFError):
            return None
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
