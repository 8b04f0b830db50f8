"""`selfpager chat AGENT.yaml`: a streamed conversation that continues after a restart."""

import os
import sys
import traceback
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

from agents.agent import Agent
from agents.cli.common import AS_HELP, DONE, FAILED, INTERRUPTED, STOPPED, Shared, agent_file, command, import_option
from agents.cli.sleep import line_of_sleep
from agents.cli.terminal import Printer, begin, opened, stoppable
from agents.cli.visible import counted, say, visible
from agents.events import Event
from pager import shortened
from pager.errors import PagerError

if TYPE_CHECKING:
    from agents.cli.line_editor import LineEditor

EARLIER = 200  # messages that the arrow keys bring back
CUT = "cut off; what came is kept as the answer (another Ctrl-C leaves)"
NOTHING_CAME = "stopped before the answer began (another Ctrl-C leaves)"
GO_ON = "/resume goes on where it was; a message drops what was not done"


@command("chat", as_name=AS_HELP)
@agent_file
@import_option
@click.option("--json", "json_lines", is_flag=True, help="Print each event as a line of JSON.")
@click.option("--quiet", is_flag=True, help="Print only the answers.")
def chat_command(shared: Shared, file: Path, conversations: Path | None, json_lines: bool, quiet: bool) -> int:
    """Talk to the agent in AGENT.yaml. It remembers what was said, across restarts.

    Type a message and press Enter; /help lists commands, /quit or Ctrl-D ends, also while it works: it goes on when
    you start again. Without a terminal each line of the
    input is a message. Ctrl-C cuts an answer off: what came of it is kept. While a tool runs, the first Ctrl-C waits
    for its result, and the second one does not.
    """
    at_terminal = _has_terminal() and not json_lines
    printer = Printer(json_lines=json_lines, quiet=quiet, draws=at_terminal)
    with opened(shared, file, approve=printer.ask) as agent:
        name = shared.as_name or agent.config.name
        begin(agent, printer, conversations)
        code = DONE
        agent.sleep_when_idle(lambda proposal: printer.print_dimmed(line_of_sleep(proposal, name)))
        editor = _editor(agent, name, printer) if at_terminal else None
        if agent.memory.turn_is_open:
            for line in _left_open(agent):
                printer.print_whole(line)
            code = _turn(agent, printer, agent.resume_stream(), debug=shared.debug)
        while not printer.leaving:
            line = editor.read(told=code == INTERRUPTED) if editor else _read()
            if line is None:
                break
            if not line.strip():
                continue
            if line.startswith("/") or line.strip().lower() in ("exit", "quit"):
                from agents.cli.slash import LEAVING

                if line.strip().lower() in LEAVING:
                    break
                if line.strip() == "/resume" and agent.memory.turn_is_open:
                    code = _turn(agent, printer, agent.resume_stream(), debug=shared.debug)
                else:
                    _command(line, name, agent, draws=at_terminal, to_stderr=json_lines)
                continue
            code = _turn(agent, printer, agent.stream(line), debug=shared.debug)
        # A script is told how its last turn ended. A person has seen it, unless they left in its middle.
        return DONE if editor and not printer.leaving else code


def _left_open(agent: Agent) -> Iterator[str]:
    """Yield what the last process left undone when it ended in the middle of a turn: killed, or at a limit."""
    steps = agent.memory.inspect.steps(0, EARLIER).rows
    asked = next((row for row in steps if row.kind == "user" and not row.purged), None)
    about = f": {shortened(agent.memory.page_text(asked.page_id), 60)!r}" if asked else ""
    yield f"continuing the open turn{about}"
    for call in agent.memory.open_calls:
        if call.begun:
            yield f"{call.name} was at work when the program ended, and may have run"


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _editor(agent: Agent, name: str, printer: Printer) -> "LineEditor":
    from agents.cli.line_editor import LineEditor
    from agents.cli.slash import COMMANDS

    counts = agent.memory.inspect.fact_counts()
    steps = agent.memory.inspect.steps(0, EARLIER)
    said = [agent.memory.page_text(row.page_id) for row in steps.rows[::-1] if row.kind == "user" and not row.purged]
    known = f"it remembers {counted(steps.total, 'step')} and {counted(counts.current, 'fact')}"
    knows = known if steps.total else "it knows nothing yet"
    # Not before the prompt stands: an SDK takes a second to import.
    warns = Thread(target=_warn, args=(agent, printer), name="selfpager asks the model's server", daemon=True)
    say(visible(f"{name}, {agent.config.model.id}; {knows}."), bold=True)
    say("/help lists commands, Ctrl-D leaves.", bold=True)
    return LineEditor(said, lambda: _status(agent), [*COMMANDS, "/quit"], printer.print_dimmed, warns.start)


def _warn(agent: Agent, printer: Printer) -> None:
    """Say while the prompt stands that the model will not answer."""
    if why := agent.model.unreachable():
        printer.error(why)


def _status(agent: Agent) -> str:
    """Return the line below the prompt."""
    window, meter = agent.memory.inspect.window(), agent.meter
    fill = f"window {window.used_tokens / window.usable_tokens:.0%}" if window.usable_tokens else "window empty"
    facts = agent.memory.inspect.fact_counts().current
    money = f" · ${meter.session_usd:.4f}" if meter.has_prices else ""
    return f"{fill} · {counted(facts, 'fact')} · {counted(meter.session_tokens, 'token')}{money} in this session"


def _turn(agent: Agent, printer: Printer, events: Generator[Event], *, debug: bool) -> int:
    """Print one turn. It is saved however it ends. The next start or message goes on; a message skips open calls."""
    try:
        with closing(events), _typing_hidden(agent, printer), stoppable(agent, printer, cuts=True):
            stopped = printer.show(events)
        printer.embedding(agent.background)
    except PagerError as error:
        if debug:
            say("".join(traceback.format_exception(error)), err=True, nl=False)
        printer.error(str(error))
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        text = printer.cut()
        printer.error(CUT if agent.cut(text) else NOTHING_CAME)
        return INTERRUPTED
    if stopped.reason != "answered" and not printer.json_lines:
        printer.error(f"stopped ({stopped.reason}): {stopped.text}")
        if agent.memory.turn_is_open and not printer.leaving:
            printer.print_dimmed(GO_ON)
    return STOPPED[stopped.reason]


def _command(line: str, name: str, agent: Agent, *, draws: bool, to_stderr: bool) -> None:
    """Carry out a line that begins with a slash. A message that is typed meanwhile would not be sent by its Enter."""
    from rich.console import Console

    from agents.cli import slash

    hidden = nullcontext()
    if draws:
        from agents.cli.line_editor import hidden_typing

        hidden = hidden_typing(lambda _: None)
    with hidden:
        slash.run(line, name, agent, Console(stderr=to_stderr))


def _typing_hidden(agent: Agent, printer: Printer):
    """Keep what is typed meanwhile off the screen. Who types that they leave does so at the next step."""
    if not printer.draws:
        return nullcontext()
    from agents.cli.line_editor import hidden_typing

    def on_line(line: str) -> None:
        from agents.cli.slash import LEAVING

        if not line or line.strip().lower() in LEAVING:
            printer.leaving = True
            doing = printer.running_tool or "the answer"
            agent.stop()
            printer.interject(f"leaving when {doing} has come to its next step; Ctrl-C stops it now")

    return hidden_typing(on_line)


def _read() -> str | None:
    """Return the next line of an input that is no terminal, or of a terminal that can only print."""
    if sys.stdin.isatty():
        with suppress(ImportError):  # not on every system; with it the line can be of any length
            import_module("readline")
        try:
            return click.prompt("you", prompt_suffix="> ", default="", show_default=False)
        except (click.Abort, EOFError):
            return None
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
